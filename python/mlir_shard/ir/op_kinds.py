# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of some names by kinds: a pass decides once for each kind, and visits only operations to change."""

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
"""The group of operations that are not merged with others."""
IDENTITY = -3
"""The group of operations whose results are their operands, for `drop_repeated`."""
_NO_GROUP = -1


class OpKinds:
    """The operations below `root` that have one of the names, in pre-order, by kinds. Valid while no op is erased.

    Operations of one kind have equal names, types, attributes and contents of regions, but may use different values.
    Of attributes named in `ignored`, only the presence is compared. With `neighbours`, the following are equal too: the
    definition of each operand, whether it has other uses, and the user of each result that is used once.
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
        """Returns the operations of the wanted kinds, in pre-order. Calls `is_wanted` with the first of each kind."""
        wanted = [is_wanted(one) for one in self.representatives]
        return _operations(_reader().operations(self._kinds, wanted)) if any(wanted) else []

    def decided(self, decide: Callable[[Any], Decision | None]) -> list[tuple[Any, Decision]]:
        """Returns the operations with the decision on the first of their kind, without those whose decision is None."""
        decisions = [decide(one) for one in self.representatives]
        wanted = [one is not None for one in decisions]
        if not any(wanted):
            return []
        ops = _operations(_reader().operations(self._kinds, wanted))
        of_ops = (decision for kind in self.kinds if (decision := decisions[kind]) is not None)
        return list(zip(ops, of_ops, strict=True))

    def drop_repeated(self, groups: Sequence[int | None]) -> bool:
        """Replaces each operation by an earlier one of its group with the same operands, in its block or an enclosing
        one, and erases unused ones. Returns whether anything has changed. `groups` has the group of each kind, None for
        operations that are kept unchanged."""
        return _reader().drop_repeated(self._kinds, [_NO_GROUP if one is None else one for one in groups])

    def merge(
        self,
        groups: Sequence[tuple[int, int] | None],
        most: int,
        may_wait: Callable[[str], bool],
        pack: Callable[[list[Any], Any], None],
    ) -> bool:
        """Merges operations of a block that are independent of each other. Returns whether anything has changed.

        Operations are delayed, with the users of their results, until an operation needs them that cannot be delayed.

        Args:
            groups: for each kind the group in which operations may be merged, and the size of an operation; None for
                operations that are kept unchanged.
            most: the greatest sum of the sizes of operations that are merged into one.
            may_wait: returns whether operations of a name may be delayed, if they have results and no memref operands.
            pack: replaces its second argument, an operation that has the operands and results of several. Called once
                for merges that are equal except for operands. Operations with a region are merged into one with the
                region of the first.
        """

        def pack_operations(capsules: list[Any], placeholder: Any) -> None:
            pack(_operations(capsules), ir.Operation._CAPICreate(placeholder))

        native = [(_NO_GROUP, 0) if one is None else one for one in groups]
        return _reader().merge(self._kinds, native, most, may_wait, pack_operations)


def operations_of_results(
    root: Any,
    names: Sequence[str],
    definers: Sequence[str],
    count: int = 1,
    *,
    once: bool = False,
    through: Sequence[str] = (),
) -> list[Any]:
    """Returns the operations below `root` that have one of the names and whose first `count` operands, or for 0 any
    operand, are results of operations that have one of the names `definers`, with `once` results that are used once; in
    pre-order.

    Between a result and the operand may be operations that have one of the names `through`, whose results are used
    once.
    """
    return _operations(_reader().of_results(root.operation._CAPIPtr, names, definers, count, once, through))
