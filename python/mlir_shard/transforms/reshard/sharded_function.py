# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function read into flat arrays, with the sharding that users of each of its values see."""

from __future__ import annotations

from array import array
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.shardings import Side, shardings_of

UNSHARDED = 0


class ShardedFunction:
    """The operations and values of a function by number, with the number of each value's sharding.

    Equal shardings have equal numbers, and none at all has UNSHARDED. Whoever puts something in the place of a value
    says so by `replaced`, and `changed` has the values of which that was said: what is read here is the function as it
    was.
    """

    def __init__(self, function: Any) -> None:
        self.arrays = ModuleArrays(function, (sdy.SHARDING,))
        self.representatives = self.arrays.representatives()
        self.shardings: list[TensorSharding | None] = [None]
        self._by_sharding: dict[TensorSharding | None, int] = {None: UNSHARDED}
        self.numbers = array("i", [UNSHARDED]) * self.arrays.value_count
        self.changed: set[int] = set()
        self._origins: dict[int, int] = {}
        self._read(function)

    def sharding_of(self, value: int) -> TensorSharding | None:
        """The sharding of a value."""
        return self.shardings[self.numbers[value]]

    def number(self, sharding: TensorSharding | None) -> int:
        """The number of a sharding."""
        number = self._by_sharding.setdefault(sharding, len(self.shardings))
        if number == len(self.shardings):
            self.shardings.append(sharding)
        return number

    @property
    def has_barriers(self) -> bool:
        """Whether some value has passed a propagation barrier."""
        return bool(self._origins)

    def replaced(self, value: int, sharding: TensorSharding | None) -> None:
        """Says that users of a value have another one now, with this sharding."""
        self.numbers[value] = self.number(sharding)
        self.changed.add(value)
        self._origins.pop(value, None)

    def number_before_barriers(self, value: int) -> int:
        """The number of the sharding of a value, or of the one it passes a chain of propagation barriers from."""
        return self.numbers[self._origins.get(value, value)]

    def in_post_order(self, ops: list[int]) -> list[int]:
        """The operations, which are in pre-order, each after those inside it."""
        parents = self.arrays.parents
        if all(parents[op] < 0 for op in ops):
            return ops
        # Pre-order numbers the operations inside one right after it, so the last of them says where it ends.
        ends = list(range(len(self.arrays)))
        for op in reversed(ends):
            if parents[op] >= 0:
                ends[parents[op]] = max(ends[parents[op]], ends[op])
        return sorted(ops, key=lambda op: (ends[op], -op))

    def _read(self, function: Any) -> None:
        arrays = self.arrays
        arrays.set_result_numbers(sdy.SHARDING, self._numbers_of, self.numbers)
        own, edges, barriers = {}, set(), set()
        for signature, op in enumerate(self.representatives):
            if has_edges(op.name):
                edges.add(signature)
            elif op.name == "sdy.propagation_barrier":
                barriers.add(signature)
            elif sdy.sharding_key(op) != sdy.SHARDING:
                own[signature] = [self.number(sdy.get_sharding(result)) for result in op.results]
        if own or edges or barriers:
            for op, signature in enumerate(arrays.signatures):
                if signature in own:
                    for value, number in zip(arrays.results(op), own[signature], strict=True):
                        self.numbers[value] = number
                elif signature in edges:
                    self._read_around_edges(arrays.operation(op))
                elif signature in barriers:
                    operand = arrays.operands(op)[0]
                    self._origins[arrays.results(op)[0]] = self._origins.get(operand, operand)
        blocks = function.regions[0].blocks
        if len(blocks) and len(blocks[0].arguments):
            # They are read before anything that could use them, so their numbers come one after the other.
            first = arrays.number_of(blocks[0].arguments[0]) or 0
            for index, sharding in enumerate(shardings_of(function, Side.ARGUMENTS)):
                self.numbers[first + index] = self.number(sharding)

    def _numbers_of(self, attribute: Any) -> list[int]:
        value = sdy.value(attribute)
        return [self.number(one) for one in value.shardings] if isinstance(value, TensorShardingPerValue) else []

    def _read_around_edges(self, op: Any) -> None:
        for result in op.results:
            self._set_value(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self._set_value(argument)

    def _set_value(self, value: Any) -> None:
        number = self.arrays.number_of(value)
        if number is not None:
            self.numbers[number] = self.number(sharding_of(value))
