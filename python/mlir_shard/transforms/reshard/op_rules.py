# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding rules of the ops of a function, of which most are those of their signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from mlir_shard.sharding import OpShardingRule

Rule = OpShardingRule | None


class OpRules(Mapping[int, Rule]):
    """The ops of a function that may be resharded around, in pre-order, each with its rule, None where it has none.

    Args:
        ops: the ops.
        signatures: that of each op of the function.
        of_signatures: the rule of each signature.
        own: the rules of ops that do not go by their signature alone.
    """

    def __init__(
        self, ops: list[int], signatures: Sequence[int], of_signatures: Sequence[Rule], own: Mapping[int, Rule]
    ) -> None:
        self.ops = ops
        self.own = own
        self._signatures = signatures
        self._of_signatures = of_signatures

    @cached_property
    def _known(self) -> frozenset[int]:
        return frozenset(self.ops)

    def __getitem__(self, op: int) -> Rule:
        if op not in self._known:
            raise KeyError(op)
        return self.own[op] if op in self.own else self._of_signatures[self._signatures[op]]

    def __iter__(self) -> Iterator[int]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    def where(self, holds: Callable[[OpShardingRule], object]) -> list[int]:
        """The ops that have a rule of which it holds, which is asked once for each signature."""
        of_signatures = [rule is not None and bool(holds(rule)) for rule in self._of_signatures]
        own = {op: rule is not None and bool(holds(rule)) for op, rule in self.own.items()}
        if not (any(of_signatures) or any(own.values())):
            return []
        signatures = self._signatures
        return [op for op in self.ops if (own[op] if op in own else of_signatures[signatures[op]])]
