# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dimensions that are expanded: those without which reshapes merge and split more dimensions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from mlir_shard.resharding.operator.reshape import ReshapeGroup, reshape_groups
from mlir_shard.transforms.normalize.merged_dims.expandable_values import ExpandableValues, is_repeated
from mlir_shard.transforms.normalize.merged_dims.expanded_dims import (
    Expandable,
    Expansion,
    expanded_shape,
    without_ones,
)

_Dim = tuple[int, int]
"""The number of a value, and one of its dimensions."""
_Ports = Sequence[tuple[int, int]]
"""The numbers of operands and results, each with a dimension."""


@dataclass(frozen=True, slots=True)
class ChosenExpansions:
    """The values to expand, and the ops that use or make them and can be computed so, each with its expansion.

    Ops are keyed by their first result: an `ir.Operation` hashes its operands, which change.
    """

    expansions: Mapping[Any, Expansion]
    ops: Mapping[Any, tuple[Expandable, Mapping[int, Expansion]]]


def chosen_expansions(function: Any, merges: Mapping[Any, Expansion]) -> ChosenExpansions | None:
    """Returns the dimensions that are worth to be expanded, from those of `merges` on; None if none are."""
    return _Choice(ExpandableValues(function, merges)).chosen()


class _Choice:
    """The choice among the dimensions of values that can be expanded.

    Dimensions that one factor of an op or one reshape connects are expanded together. Their gain is the number of
    merges and splits that reshapes no longer make.
    """

    def __init__(self, values: ExpandableValues) -> None:
        self._values = values
        self._parents: dict[_Dim, _Dim] = {}
        self._gains: dict[_Dim, int] = defaultdict(int)
        self._known_factors: dict[int, list[tuple[_Ports, _Ports]]] = {}

    def chosen(self) -> ChosenExpansions | None:
        """Returns the expansions of all dimensions with a positive gain; None without such dimensions."""
        values = self._values
        for dims in self._connected():
            for one in dims[1:]:
                self._parents[self._root(one)] = self._root(dims[0])
        for dim, gain in self._changes():
            self._gains[self._root(dim)] += gain
        # Operands from elsewhere, which only add reshapes, are read last: mostly nothing is left to gain before.
        if all(gain <= 0 for gain in self._gains.values()):
            return None
        for dim in self._splits():
            self._gains[self._root(dim)] -= 1
        expansions = {value: self._restricted(value, one) for value, one in values.expansions.items()}
        made = {values.arrays.value(value): one for value, one in expansions.items() if _is_expanded(one)}
        if not made:
            return None
        ops = {}
        for op, (how, ports) in values.ops.items():
            chosen = self._ports(op, how, ports)
            if any(map(_is_expanded, chosen.values())):
                ops[values.arrays.value(values.arrays.results(op)[0])] = how, chosen
        return ChosenExpansions(made, ops)

    def _root(self, dim: _Dim) -> _Dim:
        while (above := self._parents.setdefault(dim, dim)) != dim:
            self._parents[dim] = self._parents[above]
            dim = above
        return dim

    def _is_chosen(self, dim: _Dim) -> bool:
        return self._gains[self._root(dim)] > 0

    def _restricted(self, value: int, expansion: Expansion) -> Expansion:
        """Returns the expansion of the dimensions of a value that are chosen."""
        return tuple(
            [sizes if self._is_chosen((value, dim)) else (prod(sizes),) for dim, sizes in enumerate(expansion)]
        )

    def _ports(self, op: int, how: Expandable, ports: Mapping[int, Expansion]) -> dict[int, Expansion]:
        """Returns the expansions of the operands and results of an op along the factors that are chosen."""
        found = {number: list(one) for number, one in self._values.kind(op).own.items()}
        for dims, factor in self._factors(op, how, ports):
            if self._is_chosen(dims[0]):
                for number, dim in factor:
                    found[number][dim] = ports[number][dim]
        return {number: tuple(one) for number, one in found.items()}

    def _factors(
        self, op: int, how: Expandable, ports: Mapping[int, Expansion]
    ) -> Iterator[tuple[list[_Dim], Sequence[tuple[int, int]]]]:
        """Yields the dimensions of expanded values along each factor of an op that is expanded, and its ports."""
        numbered, known = self._values.numbered(op), self._values.expansions
        for factor, expanded in self._expanded_factors(how, ports):
            dims = [(numbered[number], dim) for number, dim in expanded if numbered[number] in known]
            if dims:
                yield dims, factor

    def _expanded_factors(self, how: Expandable, ports: Mapping[int, Expansion]) -> list[tuple[_Ports, _Ports]]:
        """Returns the factors of an op that are expanded, with those dimensions; once for isomorphic ops."""
        # Isomorphic ops share their ports, which the values hold.
        found = self._known_factors.get(id(ports))
        if found is None:
            of_factors = (
                (factor, [(number, dim) for number, dim in factor if len(ports[number][dim]) > 1])
                for factor in how.factors
            )
            found = self._known_factors[id(ports)] = [(factor, dims) for factor, dims in of_factors if dims]
        return found

    def _groups(self, reshape: int) -> Iterator[tuple[ReshapeGroup, list[_Dim], int]]:
        """Yields the groups of a reshape, with their expanded dimensions, and how many reshapes the expansion saves."""
        values = self._values
        (operand,), (result,) = values.arrays.operands(reshape)[:1], values.arrays.results(reshape)
        own = values.kind(reshape).own
        source, target = (values.expansions.get(one, own[number]) for one, number in ((operand, 0), (result, -1)))
        for group in _groups_between(tuple(expanded_shape(own[0])), tuple(expanded_shape(own[-1]))):
            dims = [(operand, dim) for dim in group.operand_dims if len(source[dim]) > 1]
            dims += [(result, dim) for dim in group.result_dims if len(target[dim]) > 1]
            if dims:
                sides = [source[dim] for dim in group.operand_dims], [target[dim] for dim in group.result_dims]
                after = _groups_between(*(tuple(expanded_shape(tuple(side))) for side in sides))
                yield group, dims, (not group.is_pass_through) - sum(not one.is_pass_through for one in after)

    def _connected(self) -> Iterator[list[_Dim]]:
        """Yields the dimensions that are expanded together."""
        for op, (how, ports) in self._values.ops.items():
            for dims, _ in self._factors(op, how, ports):
                yield dims
        for reshape in self._values.reshapes:
            for _, dims, _ in self._groups(reshape):
                yield dims

    def _changes(self) -> Iterator[tuple[_Dim, int]]:
        """Yields the merges and splits that reshapes make less, each with a dimension that is expanded."""
        values, arrays = self._values, self._values.arrays
        for reshape in values.reshapes:
            for _, dims, saved in self._groups(reshape):
                yield dims[0], saved
        for value, expansion in values.expansions.items():
            # Users that cannot use the expanded form get the merged one.
            if any(op not in values.ops and op not in values.reshapes for op in arrays.users(value)):
                yield from (((value, dim), -1) for dim, sizes in enumerate(expansion) if len(without_ones(sizes)) > 1)

    def _splits(self) -> Iterator[_Dim]:
        """Yields a dimension that is expanded for each reshape that splits an operand from elsewhere."""
        values, arrays = self._values, self._values.arrays
        split: set[tuple[int, int, tuple[int, ...]]] = set()
        for op, (how, ports) in values.ops.items():
            numbered = values.numbered(op)
            if all(number < 0 or values.expansions.get(numbered[number]) == one for number, one in ports.items()):
                continue
            for dims, factor in self._factors(op, how, ports):
                if not self._is_chosen(dims[0]):
                    continue
                for number, dim in factor:
                    value, sizes = numbered[number], ports[number][dim]
                    if number < 0 or len(without_ones(sizes)) <= 1 or (value, dim, sizes) in split:
                        continue
                    if value in values.expansions and values.expansions[value][dim] == sizes:
                        continue
                    # An operand from elsewhere is split, except along dimensions that repeat its elements.
                    alone = [*values.kind(op).own[number]]
                    alone[dim] = sizes
                    if not is_repeated(arrays.value(value), tuple(alone)):
                        split.add((value, dim, sizes))
                        yield dims[0]


def _is_expanded(expansion: Expansion) -> bool:
    return any(len(sizes) > 1 for sizes in expansion)


@lru_cache(maxsize=1024)
def _groups_between(source: tuple[int, ...], target: tuple[int, ...]) -> tuple[ReshapeGroup, ...]:
    return reshape_groups(source, target)
