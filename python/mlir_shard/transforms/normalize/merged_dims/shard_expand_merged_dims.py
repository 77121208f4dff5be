# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `shard-expand-merged-dims`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import ops_below, replace_with
from mlir_shard.ir.op_kinds import OpKinds
from mlir_shard.ir.values import defining_op, insertion_point_after, replace_uses, uses_of
from mlir_shard.passes.registry import FunctionPass, register
from mlir_shard.transforms.normalize.merged_dims.expandable_ops import computed, expandable
from mlir_shard.transforms.normalize.merged_dims.expanded_dims import (
    RESHAPES,
    Expandable,
    Expansion,
    cuts,
    expanded_shape,
    merged_dims,
    reshaped,
    unexpanded,
    without_ones,
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
_RESHAPE_OF = {"stablehlo": "stablehlo.reshape", "tosa": "tosa.reshape"}


@register
class ShardExpandMergedDims(FunctionPass):
    """Computes on the original dimensions that a reshape merges, if a later reshape splits the merged dimension again.

    A merged dimension can be sharded only as its first part is sharded, or along its entire size. For example, a batch
    matmul of torch merges the batch dimension, sharded by data, with the heads, sharded by model, and would gather one
    of the two. This pass moves merging reshapes down over elementwise ops, matmuls, transposes, broadcasts and
    reductions, which then compute on the original dimensions, until the reshapes meet those that split them and both
    are erased.

    A group of reshapes that such ops connect is rewritten only if fewer reshapes remain. Ops with shardings are not
    changed. Structured ops of linalg become `linalg.generic`, as does `tosa.matmul`, which has three dimensions.
    """

    name = "shard-expand-merged-dims"
    summary = "Replaces ops on merged dimensions by ops on the dimensions before the merge"
    needs = RESHAPES

    def run(self, function: Any) -> bool:
        merges = {op.results[0]: merged for op, merged in OpKinds(function, *RESHAPES).decided(_merged_by)}
        if not merges:
            return False
        chosen = _Analysis(function, merges).worth_expanding()
        if chosen is None:
            return False
        _Rewriting(chosen).apply(function)
        return True


def _merged_by(reshape: Any) -> Expansion | None:
    """Returns the dimensions that a reshape merges; None if it merges none, or is not to be changed."""
    source, target = reshape.operands[0].type, reshape.results[0].type
    if not source.has_static_shape or not target.has_static_shape or _is_fixed(reshape):
        return None
    return merged_dims(source.shape, target.shape)


def _is_fixed(op: Any) -> bool:
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


def _repeated(value: Any, expansion: Expansion) -> tuple[Expandable, dict[int, Expansion]] | None:
    """Returns how to build the expanded form of a value that repeats its elements, such as a constant, or None."""
    op = defining_op(value, *_REPEATING)
    how = expandable(op) if op is not None and not _is_fixed(op) else None
    if op is None or how is None:
        return None
    values = dict(_ports(op))
    own = {number: unexpanded(one) for number, one in values.items()}
    ports = _expanded_ports(how, own, {number: expansion for number, one in values.items() if one == value})
    if ports is None:
        return None
    operands = [(operand, ports[number]) for number, operand in enumerate(op.operands) if number in ports]
    is_repeated = all(wanted == unexpanded(one) or _repeated(one, wanted) is not None for one, wanted in operands)
    return (how, ports) if is_repeated else None


def _splits(reshaped_to: Sequence[int], expansion: Expansion) -> bool:
    """Returns whether a reshape to a shape splits the dimensions of a value as its expansion does."""
    return {*cuts(expanded_shape(expansion))} <= {*cuts(reshaped_to)}


@dataclass(frozen=True, slots=True)
class _Kind:
    """The properties that ops of one signature share.

    Attributes:
        how: how the ops are expanded; None if they are not.
        own: the shapes of the operands and results that are static tensors, by number.
        is_reshape: whether the ops are reshapes of static tensors.
        is_fixed: whether the ops are not to be changed.
    """

    how: Expandable | None
    own: Mapping[int, Expansion]
    is_reshape: bool
    is_fixed: bool

    @staticmethod
    def of(op: Any) -> _Kind:
        """Returns the kind of an op."""
        is_fixed = _is_fixed(op)
        own = {number: unexpanded(value) for number, value in _ports(op) if value.type.has_static_shape}
        is_reshape = op.name in RESHAPES and {0, -1} <= own.keys()
        return _Kind(None if is_fixed else expandable(op), own, is_reshape, is_fixed)

    def shape(self, number: int) -> list[int]:
        """Returns the shape of an operand or a result."""
        return expanded_shape(self.own[number])


class _Analysis:
    """The values that can be expanded, from the results of merging reshapes on, and the ops among them.

    Values and ops are numbers of a function that is read once; most ops are isomorphic to another one.
    """

    def __init__(self, function: Any, merges: Mapping[Any, Expansion]) -> None:
        self._arrays = ModuleArrays(function)
        self._kinds: dict[int, _Kind] = {}
        self._known_ports: dict[Hashable, dict[int, Expansion] | None] = {}
        numbered = {self._arrays.number_of(value): expansion for value, expansion in merges.items()}
        self._merges = {value: expansion for value, expansion in numbered.items() if value is not None}
        refused: set[int] = set()
        while True:
            self._expansions: dict[int, Expansion] = dict(self._merges)
            # The ops that can be computed on expanded operands, each with its expansion.
            self._ops: dict[int, tuple[Expandable, dict[int, Expansion]]] = {}
            conflicting = self._flow(refused)
            if conflicting is None:
                return
            # The expansions that followed from this op are computed again without it.
            refused.add(conflicting)

    def _kind(self, op: int) -> _Kind:
        signature = self._arrays.signatures[op]
        # An op that is built from its regions has a kind of its own, keyed by its number as -1 - op.
        found = self._kinds.get(signature) or self._kinds.get(-1 - op)
        if found is None:
            found = _Kind.of(self._arrays.operation(op))
            is_built = found.how is not None and found.how.build is not None
            self._kinds[-1 - op if is_built else signature] = found
        return found

    def _numbered(self, op: int) -> list[tuple[int, int]]:
        results = ((-1 - number, value) for number, value in enumerate(self._arrays.results(op)))
        return [*enumerate(self._arrays.operands(op)), *results]

    def _ports_of(self, op: int, how: Expandable, kind: _Kind) -> dict[int, Expansion] | None:
        known = self._expansions
        wanted = tuple([(number, known[value]) for number, value in self._numbered(op) if value in known])
        key = (id(kind), wanted)
        if key not in self._known_ports:
            self._known_ports[key] = _expanded_ports(how, kind.own, dict(wanted))
        return self._known_ports[key]

    def _flow(self, refused: set[int]) -> int | None:
        """Expands all values that can be; returns an op whose operands would have conflicting expansions, or None."""
        arrays, expansions = self._arrays, self._expansions
        pending = list(self._merges)
        while pending:
            value = pending.pop()
            around = arrays.parents[arrays.definers[value]]
            for op in arrays.users(value):
                if op in refused or arrays.parents[op] != around:
                    continue
                kind = self._kind(op)
                if kind.how is None or (kind.is_reshape and arrays.results(op)[0] in self._merges):
                    continue
                ports = self._ports_of(op, kind.how, kind)
                if ports is None and kind.is_reshape and op not in self._ops:
                    # It splits the merged dimensions.
                    continue
                if ports is None:
                    return op
                self._ops[op] = kind.how, ports
                for number, result in enumerate(arrays.results(op)):
                    if ports[-1 - number] != expansions.get(result, kind.own[-1 - number]):
                        expansions[result] = ports[-1 - number]
                        pending.append(result)
        return None

    def worth_expanding(self) -> _Chosen | None:
        """Returns the parts of the program that have fewer reshapes when they are expanded; None without such parts."""
        values: set[int] = set()
        for part, ops in self._parts():
            saved = sum(self._saved(value) - self._is_needed(value) for value in part)
            if saved > 0 and saved > self._num_added(part, ops):
                values |= part
        if not values:
            return None
        touching = [op for op in self._ops if any(value in values for _, value in self._numbered(op))]
        return _Chosen(
            {self._arrays.value(value): self._expansions[value] for value in values},
            {self._arrays.value(self._arrays.results(op)[0]): self._ops[op] for op in touching},
        )

    def _num_added(self, part: set[int], ops: set[int]) -> int:
        """Returns the number of reshapes that expand operands from outside of a part, except of repeated elements."""
        split = {
            (operand, wanted)
            for op in ops
            for number, operand in enumerate(self._arrays.operands(op))
            if operand not in part
            and (wanted := self._ops[op][1].get(number)) is not None
            and without_ones(expanded_shape(wanted)) != without_ones(self._kind(op).shape(number))
        }
        return sum(_repeated(self._arrays.value(one), wanted) is None for one, wanted in split)

    def _is_needed(self, value: int) -> bool:
        """Returns whether a value has a user that cannot use its expanded form."""
        return any(not self._is_served(op, value) for op in self._arrays.users(value))

    def _is_served(self, op: int, value: int) -> bool:
        """Returns whether a user can use the expanded form of a value: an op in `_ops`, or a reshape that splits it."""
        if op in self._ops:
            return True
        kind = self._kind(op)
        return kind.is_reshape and not kind.is_fixed and _splits(kind.shape(-1), self._expansions[value])

    def _saved(self, value: int) -> int:
        """Returns the number of reshapes that the expanded form removes: those that make or split the value."""
        expanded = without_ones(expanded_shape(self._expansions[value]))
        kinds = map(self._kind, self._arrays.users(value))
        around = [kind.shape(-1) for kind in kinds if kind.is_reshape and not kind.is_fixed]
        if value in self._merges:
            around.append(self._kind(self._arrays.definers[value]).shape(0))
        return sum(without_ones(shape) == expanded for shape in around)

    def _parts(self) -> Iterator[tuple[set[int], set[int]]]:
        """Yields the values in sets that no op connects, each with the ops between them."""
        arrays = self._arrays
        left = set(self._expansions)
        while left:
            part: set[int] = set()
            ops: set[int] = set()
            pending = [next(iter(left))]
            while pending:
                value = pending.pop()
                if value not in left:
                    continue
                left.remove(value)
                part.add(value)
                for op in (*arrays.users(value), arrays.definers[value]):
                    if op in self._ops and op not in ops:
                        ops.add(op)
                        pending += [*arrays.operands(op), *arrays.results(op)]
            yield part, ops


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The values to expand, and the ops that use or make them and can be computed so, each with its expansion.

    Ops are keyed by their first result: an `ir.Operation` hashes its operands, which change.
    """

    expansions: Mapping[Any, Expansion]
    ops: Mapping[Any, tuple[Expandable, Mapping[int, Expansion]]]


class _Rewriting:
    """The rewriting of a function that computes the expanded forms of the values `chosen`."""

    def __init__(self, chosen: _Chosen) -> None:
        # The expanded forms of values, each by its expansion.
        self._made: dict[tuple[Any, Expansion], Any] = {}
        self._chosen = chosen
        # The ops that may have no uses left, by their first results.
        self._replaced: dict[Any, Any] = {}

    def apply(self, function: Any) -> None:
        """Rewrites the ops of a function."""
        expansions = self._chosen.expansions
        for op in list(ops_below(function)):
            with op.location:
                if (how := self._how(op)) is not None:
                    self._compute(op, *how, ir.InsertionPoint(op))
                elif op.name in RESHAPES and self._is_split_by(op):
                    source = op.operands[0]
                    made = self._made[source, expansions[source]]
                    with ir.InsertionPoint(op):
                        replace_with(op, [reshaped(made, op.results[0].type.shape, op.name)])
                elif op.name in RESHAPES and op.results[0] in expansions:
                    expansion = expansions[op.results[0]]
                    with ir.InsertionPoint(op):
                        made = reshaped(op.operands[0], expanded_shape(expansion), op.name)
                    self._made[op.results[0], expansion] = made
                    self._replaced[op.results[0]] = op
        for op in reversed(self._replaced.values()):
            if self._how(op) is not None:
                self._merge_where_needed(op)
            if not any(True for result in op.results for _ in result.uses):
                op.erase()

    def _how(self, op: Any) -> tuple[Expandable, Mapping[int, Expansion]] | None:
        return self._chosen.ops.get(op.results[0]) if len(op.results) else None

    def _is_split_by(self, reshape: Any) -> bool:
        expansion = self._chosen.expansions.get(reshape.operands[0])
        return expansion is not None and not _is_fixed(reshape) and _splits(reshape.results[0].type.shape, expansion)

    def _compute(self, op: Any, how: Expandable, ports: Mapping[int, Expansion], point: Any) -> None:
        operands = [
            self._expanded(operand, ports[number], op) if number in ports else operand
            for number, operand in enumerate(op.operands)
        ]
        made = computed(op, operands, how, ports, point)
        for number, result in enumerate(op.results):
            self._made[result, ports[-1 - number]] = made[number]
        self._replaced[op.results[0]] = op

    def _expanded(self, value: Any, expansion: Expansion, user: Any) -> Any:
        if expansion == unexpanded(value) and value not in self._chosen.expansions:
            return value
        key = value, expansion
        if key not in self._made:
            repeated = _repeated(value, expansion)
            if repeated is not None:
                self._compute(value.owner, *repeated, ir.InsertionPoint.after(value.owner))
            else:
                with insertion_point_after(value):
                    self._made[key] = reshaped(value, expanded_shape(expansion), _reshape_for(user))
        return self._made[key]

    def _merge_where_needed(self, op: Any) -> None:
        """Merges the dimensions of results again for users that cannot use the expanded form."""
        for number, result in enumerate(op.results):
            if uses := uses_of(result):
                made = self._made[result, self._chosen.ops[op.results[0]][1][-1 - number]]
                with op.location, insertion_point_after(made):
                    replace_uses(uses, reshaped(made, result.type.shape, _reshape_for(op)))


def _reshape_for(op: Any) -> str:
    """Returns the name of the reshape in the dialect of an op."""
    return _RESHAPE_OF.get(op.name.partition(".")[0], "tensor.expand_shape")
