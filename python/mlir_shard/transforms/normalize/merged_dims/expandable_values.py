# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of a function that can be expanded, from the results of merging reshapes on, and the ops among them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.values import defining_op
from mlir_shard.transforms.normalize.merged_dims.expandable_ops import expandable
from mlir_shard.transforms.normalize.merged_dims.expanded_dims import (
    RESHAPES,
    Expandable,
    Expansion,
    expanded_shape,
    merged_dims,
    unexpanded,
)

_REPEATING = (
    "arith.constant",
    "linalg.fill",
    "stablehlo.broadcast_in_dim",
    "stablehlo.constant",
    "stablehlo.iota",
    "tensor.empty",
    "tosa.const",
)


def is_fixed(op: Any) -> bool:
    """Returns whether an op has a sharding, and is not to be changed."""
    return sdy.SHARDING in op.attributes


def _expanded_ports(
    how: Expandable, own: Mapping[int, Expansion], wanted: Mapping[int, Expansion]
) -> dict[int, Expansion] | None:
    """Returns the expansions of operands and results, by number, if some of them are expanded; None if they conflict.

    `own` has the shapes of all tensors among them, and `wanted` the expansions of some.
    """
    found = {number: list(shape) for number, shape in own.items()}
    left = {(number, dim) for number, one in wanted.items() for dim, sizes in enumerate(one) if len(sizes) > 1}
    for ports in how.factors:
        asked = {wanted[number][dim] for number, dim in ports if (number, dim) in left.difference(how.stretched)}
        if len(asked) > 1:
            return None
        for sizes in asked:
            left.difference_update(ports)
            for number, dim in ports:
                found[number][dim] = (1,) * len(sizes) if (number, dim) in how.stretched else sizes
    return None if left else {number: tuple(expansion) for number, expansion in found.items()}


def _ports(op: Any) -> Iterator[tuple[int, Any]]:
    """Yields the operands and results that are tensors, by number."""
    for number, value in (
        *enumerate(op.operands),
        *((-1 - number, result) for number, result in enumerate(op.results)),
    ):
        if isinstance(value.type, ir.RankedTensorType):
            yield number, value


def rebuilt(value: Any, expansion: Expansion) -> tuple[Expandable, dict[int, Expansion]] | None:
    """Returns how to build the expanded form of a value whose elements come from few others, from those; or None."""
    op = defining_op(value, *_REPEATING)
    how = expandable(op) if op is not None and not is_fixed(op) else None
    if op is None or how is None:
        return None
    values = dict(_ports(op))
    own = {number: unexpanded(one) for number, one in values.items()}
    ports = _expanded_ports(how, own, {number: expansion for number, one in values.items() if one == value})
    return None if ports is None else (how, ports)


def is_repeated(value: Any, expansion: Expansion) -> bool:
    """Returns whether the expanded form of a value is built without reshapes, such as that of a constant."""
    if (found := rebuilt(value, expansion)) is None:
        return False
    ports = found[1]
    operands = [(operand, ports[number]) for number, operand in enumerate(value.owner.operands) if number in ports]
    return all(wanted == unexpanded(one) or is_repeated(one, wanted) for one, wanted in operands)


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties that ops of one signature share.

    Attributes:
        how: how the ops are expanded; None if they are not.
        own: the shapes of the operands and results that are static tensors, by number.
        is_reshape: whether the ops are reshapes of static tensors that may be changed.
    """

    how: Expandable | None
    own: Mapping[int, Expansion]
    is_reshape: bool

    @staticmethod
    def of(op: Any) -> Kind:
        """Returns the kind of an op."""
        own = {number: unexpanded(value) for number, value in _ports(op) if value.type.has_static_shape}
        may_change = not is_fixed(op)
        return Kind(
            expandable(op) if may_change else None, own, may_change and op.name in RESHAPES and {0, -1} <= own.keys()
        )


class ExpandableValues:
    """The values that can be expanded, from the results of merging reshapes on, and the ops among them.

    Values and ops are numbers of a function that is read once; most ops are isomorphic to another one.

    Attributes:
        expansions: the expansions of values.
        ops: the ops that can be computed on expanded operands, each with its expansion.
        reshapes: the reshapes of expanded values, and those that make them.
    """

    def __init__(self, function: Any, merges: Mapping[Any, Expansion]) -> None:
        self.arrays = ModuleArrays(function)
        self._kinds: dict[int, Kind] = {}
        self._known_ports: dict[Hashable, dict[int, Expansion] | None] = {}
        self._numbered: dict[int, dict[int, int]] = {}
        numbered = {self.arrays.number_of(value): expansion for value, expansion in merges.items()}
        self._merges = {value: expansion for value, expansion in numbered.items() if value is not None}
        refused: set[int] = set()
        while True:
            self.expansions: dict[int, Expansion] = {}
            self.ops: dict[int, tuple[Expandable, dict[int, Expansion]]] = {}
            self.reshapes = {self.arrays.definers[value] for value in self._merges}
            conflicting = self._flow(refused)
            if conflicting is None:
                return
            # The expansions that followed from this op are computed again without it.
            refused.add(conflicting)

    def kind(self, op: int) -> Kind:
        """Returns the kind of an op."""
        signature = self.arrays.signatures[op]
        # An op that is built from its regions has a kind of its own, keyed by its number as -1 - op.
        found = self._kinds.get(signature) or self._kinds.get(-1 - op)
        if found is None:
            found = Kind.of(self.arrays.operation(op))
            is_built = found.how is not None and found.how.build is not None
            self._kinds[-1 - op if is_built else signature] = found
        return found

    def numbered(self, op: int) -> dict[int, int]:
        """Returns the operands and results of an op by number."""
        found = self._numbered.get(op)
        if found is None:
            found = self._numbered[op] = dict(enumerate(self.arrays.operands(op)))
            for number, value in enumerate(self.arrays.results(op)):
                found[-1 - number] = value
        return found

    def _ports_of(self, op: int, how: Expandable, kind: Kind) -> dict[int, Expansion] | None:
        known = self.expansions
        wanted = tuple([(number, known[value]) for number, value in self.numbered(op).items() if value in known])
        key = (id(kind), wanted)
        if key not in self._known_ports:
            self._known_ports[key] = _expanded_ports(how, kind.own, dict(wanted))
        return self._known_ports[key]

    def _flow(self, refused: set[int]) -> int | None:
        """Expands all values that can be; returns an op whose operands would have conflicting expansions, or None."""
        arrays = self.arrays
        # In the order of the program, so that a merge of expanded dimensions is known before its users are visited.
        pending = sorted(self._merges)
        while pending:
            value = heappop(pending)
            if value not in self.expansions:
                self.expansions[value] = self._merges[value]
            definer = arrays.definers[value]
            # The definer is visited again because a user may have expanded further dimensions of its result.
            for op in (*arrays.users(value), *([definer] if definer in self.ops else [])):
                if op in refused or arrays.parents[op] != arrays.parents[definer]:
                    continue
                kind = self.kind(op)
                if kind.is_reshape:
                    for found in self._expand_reshape(op, kind):
                        heappush(pending, found)
                    continue
                if kind.how is None:
                    continue
                ports = self._ports_of(op, kind.how, kind)
                if ports is None:
                    return op
                self.ops[op] = kind.how, ports
                for found in self._expand(op, kind, ports):
                    heappush(pending, found)
        return None

    def _expand_reshape(self, op: int, kind: Kind) -> list[int]:
        """Expands the result of a reshape like its operand; returns it if that is new."""
        self.reshapes.add(op)
        (operand,), (result,) = self.arrays.operands(op)[:1], self.arrays.results(op)
        expansion = merged_dims(expanded_shape(self.expansions[operand]), expanded_shape(kind.own[-1]))
        if expansion is None or expansion == self.expansions.get(result):
            return []
        self.expansions[result] = expansion
        return [result]

    def _expand(self, op: int, kind: Kind, ports: Mapping[int, Expansion]) -> list[int]:
        """Expands the results of an op and operands that their ops can make so; returns the values that are new."""
        found = []
        for number, value in self.numbered(op).items():
            if number not in ports or ports[number] == self.expansions.get(value, kind.own[number]):
                continue
            if number < 0 or self._can_be_refined(value, ports[number]):
                self.expansions[value] = ports[number]
                found.append(value)
        return found

    def _can_be_refined(self, value: int, expansion: Expansion) -> bool:
        """Returns whether the op of an expanded value can expand more of its dimensions without reshapes."""
        definer = self.arrays.definers[value]
        if value not in self.expansions or definer not in self.ops:
            return False
        how, before = self.ops[definer]
        numbered = self.numbered(definer)
        result = next(number for number, one in numbered.items() if number < 0 and one == value)
        after = _expanded_ports(how, self.kind(definer).own, {**before, result: expansion})
        return after is not None and all(
            after[number] == before[number] or numbered[number] in self.expansions for number in before if number >= 0
        )
