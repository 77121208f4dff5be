# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A function read into arrays, with the shardings of its values by number; and the rules of its ops."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import ARGUMENT_OWNERS, body_shardings, manual_axes, sharding_of
from mlir_shard.dialects.data_flow_edges import Boundary, are_known, has_edges, known_edges
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.sharding import OpShardingRule, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.data_flow_edges import EDGE, MANUAL
from mlir_shard.transforms.shardings import Side, shardings_of

UNSHARDED = 0


class ShardedFunction:
    """The operations and values of a function by number, with the number of each value's sharding.

    Equal shardings have equal numbers, a missing one is UNSHARDED. The function is read once: `replaced` records that
    users of a value get another one. `any_sizes` is passed to `ModuleArrays`.
    """

    def __init__(self, function: Any, any_sizes: Callable[[str], bool] | None = None) -> None:
        self.arrays = ModuleArrays(function, (sdy.SHARDING,), any_sizes)
        self.representatives = self.arrays.representatives()
        self.shardings: list[TensorSharding | None] = [None]
        self._by_sharding: dict[TensorSharding | None, int] = {None: UNSHARDED}
        self.numbers = array("i", [UNSHARDED]) * self.arrays.value_count
        self._origins: dict[int, int] = {}
        self._edges: dict[int, _Edges] = {}
        self._read(function)

    def sharding_of(self, value: int) -> TensorSharding | None:
        """Returns the sharding of a value."""
        return self.shardings[self.numbers[value]]

    def number(self, sharding: TensorSharding | None) -> int:
        """Returns the number of a sharding."""
        number = self._by_sharding.setdefault(sharding, len(self.shardings))
        if number == len(self.shardings):
            self.shardings.append(sharding)
        return number

    @property
    def has_barriers(self) -> bool:
        """Whether some value is the result of a propagation barrier."""
        return bool(self._origins)

    def replaced(self, value: int, sharding: TensorSharding | None) -> None:
        """Records that users of a value now use another value, with this sharding."""
        self.numbers[value] = self.number(sharding)
        self._origins.pop(value, None)

    def number_before_barriers(self, value: int) -> int:
        """Returns the number of the sharding of a value, or of the value before a chain of propagation barriers."""
        return self.numbers[self._origins.get(value, value)]

    def in_post_order(self, ops: list[int]) -> list[int]:
        """Returns operations, given in pre-order, with each after the operations inside it."""
        parents = self.arrays.parents
        if all(parents[op] < 0 for op in ops):
            return ops
        # In pre-order, the operations inside one follow it directly, so that it ends at the last of them.
        ends = list(range(len(self.arrays)))
        for op in reversed(ends):
            if parents[op] >= 0:
                ends[parents[op]] = max(ends[parents[op]], ends[op])
        return sorted(ops, key=lambda op: (ends[op], -op))

    def disagreeing_edges(self, op: int) -> list[int] | None:
        """Returns the data-flow edges of an op that have a source without the sharding that the edge needs, by number.

        Returns None if the shardings of the edges are not known.
        """
        edges = self._edges.get(self.arrays.signatures[op])
        if edges is None:
            return None
        numbers, found = self.numbers, []
        for index, edge in enumerate(known_edges(edges.name, Boundary(*self.arrays.boundary(op)))):
            needed = numbers[edge.owner] if edges.sources is None else edges.sources[index]
            if any(numbers[source] != needed for source in edge.sources):
                found.append(index)
        return found

    def _read(self, function: Any) -> None:
        arrays = self.arrays
        arrays.set_result_numbers(sdy.SHARDING, self._numbers_of, self.numbers)
        own, around, barriers = {}, set(), set()
        # An `sdy.data_flow_edge` has the sharding of its owner.
        has_edge_ops = any(op.name == EDGE for op in self.representatives)
        for signature, op in enumerate(self.representatives):
            if has_edges(op.name):
                around.add(signature)
                if are_known(op.name) and not has_edge_ops:
                    self._edges[signature] = self._edges_of(op)
            elif op.name == "sdy.propagation_barrier":
                barriers.add(signature)
            elif sdy.sharding_key(op) != sdy.SHARDING:
                own[signature] = [self.number(sdy.get_sharding(result)) for result in op.results]
        if own or around or barriers:
            read = {*own, *around, *barriers}
            for op in arrays.with_signatures([one in read for one in range(len(self.representatives))]):
                signature = arrays.signatures[op]
                if signature in own:
                    for value, number in zip(arrays.results(op), own[signature], strict=True):
                        self.numbers[value] = number
                elif signature in self._edges:
                    self._read_edges(op, self._edges[signature])
                elif signature in around:
                    self._read_around_edges(arrays.operation(op))
                else:
                    operand = arrays.operands(op)[0]
                    self._origins[arrays.results(op)[0]] = self._origins.get(operand, operand)
        blocks = function.regions[0].blocks
        if len(blocks) and len(blocks[0].arguments):
            # Arguments are read before all ops, so their numbers are consecutive.
            first = arrays.number_of(blocks[0].arguments[0]) or 0
            for index, sharding in enumerate(shardings_of(function, Side.ARGUMENTS)):
                self.numbers[first + index] = self.number(sharding)

    def _numbers_of(self, attribute: Any) -> list[int]:
        value = sdy.value(attribute)
        return [self.number(one) for one in value.shardings] if isinstance(value, TensorShardingPerValue) else []

    def _edges_of(self, op: Any) -> _Edges:
        """Returns the shardings of the edges of an op, which are those of all ops of its signature."""
        if op.name not in ARGUMENT_OWNERS:
            return _Edges(op.name)
        results = [sdy.get_sharding(result) for result in op.results]
        arguments = body_shardings(op) or [None] * len(op.regions[0].blocks[0].arguments)
        owners = list(map(self.number, [*arguments, *results]))
        if op.name != MANUAL:
            return _Edges(op.name, owners)
        outside = sdy.value(op.attributes["in_shardings"]).shardings
        inside = [None if one is None else one.without_axes(manual_axes(op)) for one in results]
        return _Edges(op.name, owners, list(map(self.number, [*outside, *inside])))

    def _read_edges(self, op: int, edges: _Edges) -> None:
        for index, edge in enumerate(known_edges(edges.name, Boundary(*self.arrays.boundary(op)))):
            if edges.owners is not None:
                self.numbers[edge.owner] = edges.owners[index]
            for target in edge.other_targets:
                self.numbers[target] = self.numbers[edge.owner]

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


@dataclass(frozen=True, slots=True)
class _Edges:
    """The shardings of the data-flow edges of ops of one signature, by the number of the edge.

    owners: the shardings of their owners, by number; None if results have their shardings like those of other ops.
    sources: the shardings that the sources must have, by number; None if these are the owners' shardings.
    """

    name: str
    owners: Sequence[int] | None = None
    sources: Sequence[int] | None = None


Rule = OpShardingRule | None


class OpRules(Mapping[int, Rule]):
    """The ops of a function that may need reshards around them, in pre-order, each with its rule, None if it has none.

    Args:
        ops: the ops.
        signatures: the signature of each op of the function.
        of_forms: for each signature, the rule of one that may have other sizes.
        rule_of: returns the rule of a signature.
        own: the rules of ops whose rule depends on more than their signature.
    """

    def __init__(
        self,
        ops: list[int],
        signatures: Sequence[int],
        of_forms: Sequence[Rule],
        rule_of: Callable[[int], Rule],
        own: Mapping[int, Rule],
    ) -> None:
        self.ops = ops
        self.own = own
        self._signatures = signatures
        self._of_forms = of_forms
        self._rule_of = cache(rule_of)

    @cached_property
    def _known(self) -> frozenset[int]:
        return frozenset(self.ops)

    def __getitem__(self, op: int) -> Rule:
        if op not in self._known:
            raise KeyError(op)
        return self.own[op] if op in self.own else self._rule_of(self._signatures[op])

    def of_form(self, op: int) -> Rule:
        """Returns the rule of an op, possibly with the factor sizes of an op of other sizes."""
        return self.own[op] if op in self.own else self._of_forms[self._signatures[op]]

    def __iter__(self) -> Iterator[int]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    def where(self, holds: Callable[[OpShardingRule], object]) -> list[int]:
        """Returns the ops with a rule for which `holds` is true, whatever the sizes of factors."""
        of_signatures = [rule is not None and bool(holds(rule)) for rule in self._of_forms]
        own = {op: rule is not None and bool(holds(rule)) for op, rule in self.own.items()}
        if not (any(of_signatures) or any(own.values())):
            return []
        signatures = self._signatures
        return [op for op in self.ops if (own[op] if op in own else of_signatures[signatures[op]])]
