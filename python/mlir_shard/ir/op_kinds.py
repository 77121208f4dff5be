# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of some names by kinds: a pass decides once for each, and looks at those alone that it may change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar

from mlir_shard import _native
from mlir_shard.asm.module import host_library
from mlir_shard.host import ir


@cache
def _reader() -> _native.KindReader:
    return _native.KindReader(host_library())


def _operations(capsules: list[Any]) -> list[Any]:
    return [ir.Operation._CAPICreate(capsule) for capsule in capsules]


Decision = TypeVar("Decision")

OWN_GROUP = -2
"""The group of an operation that is merged with no other one."""
IDENTITY = -3
"""The group of operations whose results are their operands, for `drop_repeated`."""
_NO_GROUP = -1


class OpKinds:
    """The operations below `root` that have one of the names, in pre-order, by kinds. Valid while nothing is erased.

    Operations of one kind agree in name, types, attributes and what is in their regions, but not in the values that
    they use. Attributes named in `ignored` count by whether they are there. With `neighbours` they agree, too, in what
    makes each operand, in whether it has other uses, and in what uses each result if that is used once.
    """

    def __init__(self, root: Any, *names: str, ignored: Sequence[str] = (), neighbours: bool = False) -> None:
        self._kinds = _reader().read(root.operation._CAPIPtr, names, ignored, neighbours)

    def __len__(self) -> int:
        return len(self._kinds)

    @cached_property
    def representatives(self) -> list[Any]:
        """The first operation of each kind."""
        return _operations(_reader().representatives(self._kinds))

    @property
    def kinds(self) -> list[int]:
        """The number of the kind of each operation."""
        return self._kinds.kinds

    def where(self, is_wanted: Callable[[Any], bool]) -> list[Any]:
        """The operations whose kind is wanted, asked of the first of each kind; in pre-order."""
        wanted = [is_wanted(one) for one in self.representatives]
        return _operations(_reader().operations(self._kinds, wanted)) if any(wanted) else []

    def decided(self, decide: Callable[[Any], Decision | None]) -> list[tuple[Any, Decision]]:
        """The operations with what is decided of the first of their kind, but for those where that is None."""
        decisions = [decide(one) for one in self.representatives]
        wanted = [one is not None for one in decisions]
        if not any(wanted):
            return []
        ops = _operations(_reader().operations(self._kinds, wanted))
        of_ops = (decision for kind in self.kinds if (decision := decisions[kind]) is not None)
        return list(zip(ops, of_ops, strict=True))

    def drop_repeated(self, groups: Sequence[int | None]) -> bool:
        """Replaces each operation by an earlier one of its group that has the same operands, in its block or one around
        it, and erases those without uses; returns whether there was any. `groups` has one for each kind, None for
        operations that stay as they are."""
        return _reader().drop_repeated(self._kinds, [_NO_GROUP if one is None else one for one in groups])

    def merge(
        self,
        groups: Sequence[tuple[int, int] | None],
        most: int,
        may_wait: Callable[[str], bool],
        pack: Callable[[list[Any], Any], None],
    ) -> bool:
        """Merges operations of a block that do not need each other; returns whether there was anything to change.

        They are delayed, with the operations that use their results, until an operation needs them that cannot be.

        Args:
            groups: for each kind a group, of whose operations several may become one, and their size; None for those
                that stay as they are.
            most: what the sizes of merged operations add up to at most.
            may_wait: whether operations of a name may be delayed if they have results, and no operand in memory.
            pack: replaces an operation, its second argument, that has the operands and results of several. Called once
                for several that are equal but for operands. Operations with a region become one with the region of
                the first.
        """

        def pack_operations(capsules: list[Any], placeholder: Any) -> None:
            pack(_operations(capsules), ir.Operation._CAPICreate(placeholder))

        native = [(_NO_GROUP, 0) if one is None else one for one in groups]
        return _reader().merge(self._kinds, native, most, may_wait, pack_operations)


def operations_of_results(
    root: Any, names: Sequence[str], definers: Sequence[str], count: int = 1, *, once: bool = False
) -> list[Any]:
    """The operations below `root` that have one of the names, and of which the first `count` operands, or for 0 one of
    all, are each a result of an operation that has one of the names `definers`, with `once` one that is used once; in
    pre-order."""
    return _operations(_reader().of_results(root.operation._CAPIPtr, names, definers, count, once))
