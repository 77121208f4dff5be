# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `shard-expand-merged-dims`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below, replace_with
from mlir_shard.ir.op_kinds import OpKinds
from mlir_shard.ir.values import defining_op, insertion_point_after, replace_uses, users, uses_of
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
    """Computes on the dimensions that a reshape merges, where a later reshape splits the merged one again.

    A merged dimension can be sharded as far as its first part is sharded, or divided whole: a batch matmul of torch,
    whose batch dimension merges that of the batch, sharded by data, with the heads, sharded by model, would gather
    one of the two. So merging reshapes move down over elementwise ops, matmuls, transposes, broadcasts and reductions,
    which get the dimensions that were merged instead, until they meet the reshapes that split them, and both vanish.

    That is done where fewer reshapes are left of those that hang together by such ops. Ops with shardings stay as they
    are. Structured ops of linalg become `linalg.generic`, as does `tosa.matmul`, which has three dimensions.
    """

    name = "shard-expand-merged-dims"
    summary = "Compute on the dimensions that reshapes merge and split again"
    needs = RESHAPES

    def run(self, function: Any) -> bool:
        merges = {op.results[0]: merged for op, merged in OpKinds(function, *RESHAPES).decided(_merged_by)}
        if not merges:
            return False
        analysis = _Analysis(merges)
        chosen = analysis.worth_expanding()
        if not chosen:
            return False
        _Rewriting(analysis, chosen).apply(function)
        return True


def _merged_by(reshape: Any) -> Expansion | None:
    """The dimensions that a reshape merges; None where it merges none, or stays as it is."""
    source, target = reshape.operands[0].type, reshape.results[0].type
    if not source.has_static_shape or not target.has_static_shape or _is_fixed(reshape):
        return None
    return merged_dims(source.shape, target.shape)


def _is_fixed(op: Any) -> bool:
    return sdy.SHARDING in op.attributes


def _expanded_ports(op: Any, how: Expandable, known: Mapping[Any, Expansion]) -> dict[int, Expansion] | None:
    """Into what operands and results are expanded, by number, where those in `known` are; None if they do not agree."""
    numbered = [*enumerate(op.operands), *((-1 - number, result) for number, result in enumerate(op.results))]
    values = {number: value for number, value in numbered if isinstance(value.type, ir.RankedTensorType)}
    found = {number: list(unexpanded(value)) for number, value in values.items()}
    wanted = {number: known[value] for number, value in values.items() if value in known}
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


def _repeated(value: Any, expansion: Expansion) -> tuple[Expandable, dict[int, Expansion]] | None:
    """How to make an expanded value anew that repeats its elements, as a constant does; None if it does not."""
    op = defining_op(value, *_REPEATING)
    how = expandable(op) if op is not None and not _is_fixed(op) else None
    if op is None or how is None or (ports := _expanded_ports(op, how, {value: expansion})) is None:
        return None
    operands = [(operand, ports[number]) for number, operand in enumerate(op.operands) if number in ports]
    is_repeated = all(wanted == unexpanded(one) or _repeated(one, wanted) is not None for one, wanted in operands)
    return (how, ports) if is_repeated else None


class _Analysis:
    """The values that can be expanded, from the results of merging reshapes on, and the ops among them.

    Attributes:
        merges: the results of the merging reshapes.
        expansions: of the values.
        ops: those that can be computed on expanded operands, with how they are.
    """

    def __init__(self, merges: Mapping[Any, Expansion]) -> None:
        self.merges = merges
        refused: set[Any] = set()
        while True:
            self.expansions: dict[Any, Expansion] = dict(merges)
            self.ops: dict[Any, tuple[Expandable, dict[int, Expansion]]] = {}
            conflicting = self._flow(refused)
            if conflicting is None:
                return
            # What followed from it is to be found anew.
            refused.add(conflicting)

    def _flow(self, refused: set[Any]) -> Any | None:
        """Expands what can be; returns an op whose operands would be expanded in different ways, None without one."""
        pending = list(self.merges)
        while pending:
            value = pending.pop()
            around = value.owner.parent
            for op in users(value):
                if op in refused or op.parent != around or (op.name in RESHAPES and op.results[0] in self.merges):
                    continue
                how = self.ops[op][0] if op in self.ops else None if _is_fixed(op) else expandable(op)
                if how is None:
                    continue
                ports = _expanded_ports(op, how, self.expansions)
                if ports is None and op.name in RESHAPES and op not in self.ops:
                    # It splits the merged dimensions.
                    continue
                if ports is None:
                    return op
                self.ops[op] = how, ports
                for number, result in enumerate(op.results):
                    if ports[-1 - number] != self.expansions.get(result, unexpanded(result)):
                        self.expansions[result] = ports[-1 - number]
                        pending.append(result)
        return None

    def worth_expanding(self) -> set[Any]:
        """The values of those parts of the program that have fewer reshapes when they are expanded."""
        chosen: set[Any] = set()
        for part, ops in self._parts():
            splits = {
                (operand, wanted)
                for op in ops
                for number, operand in enumerate(op.operands)
                if operand not in part
                and (wanted := self.ops[op][1].get(number)) is not None
                and without_ones(expanded_shape(wanted)) != without_ones(operand.type.shape)
            }
            saved = sum(self._saved(value) - self.is_needed(value) for value in part)
            if saved > sum(_repeated(*one) is None for one in splits):
                chosen |= part
        return chosen

    def is_needed(self, value: Any) -> bool:
        """Whether something uses a value that cannot use the expanded one."""
        return any(not self.is_served(op, value) for op in users(value))

    def is_served(self, op: Any, value: Any) -> bool:
        """Whether an op that uses a value can use the expanded one: one of `ops`, or a reshape that splits it so."""
        if op in self.ops or op.name not in RESHAPES:
            return op in self.ops
        return not _is_fixed(op) and {*cuts(expanded_shape(self.expansions[value]))} <= {
            *cuts(op.results[0].type.shape)
        }

    def _saved(self, value: Any) -> int:
        """How many reshapes vanish with the expanded value: the one that makes it, and those that split it."""
        expanded = without_ones(expanded_shape(self.expansions[value]))
        around = [op.results[0] for op in users(value) if op.name in RESHAPES and not _is_fixed(op)]
        if value in self.merges:
            around.append(value.owner.operands[0])
        return sum(without_ones(one.type.shape) == expanded for one in around)

    def _parts(self) -> Iterator[tuple[set[Any], set[Any]]]:
        """The values in sets that no op connects, each with the ops between them."""
        left = set(self.expansions)
        while left:
            part: set[Any] = set()
            ops: set[Any] = set()
            pending = [next(iter(left))]
            while pending:
                value = pending.pop()
                if value not in left:
                    continue
                left.remove(value)
                part.add(value)
                for op in (*users(value), value.owner):
                    if op in self.ops:
                        ops.add(op)
                        pending += [*op.operands, *op.results]
            yield part, ops


class _Rewriting:
    """Computes the values `chosen` expanded."""

    def __init__(self, analysis: _Analysis, chosen: set[Any]) -> None:
        self._analysis = analysis
        # The expanded forms of values, each by its expansion.
        self._made: dict[tuple[Any, Expansion], Any] = {}
        self._chosen = chosen
        # What may have no uses then.
        self._replaced: dict[Any, None] = {}

    def apply(self, function: Any) -> None:
        """Rewrites what the function computes."""
        analysis = self._analysis
        for op in list(ops_below(function)):
            with op.location:
                if op in analysis.ops and not self._chosen.isdisjoint((*op.operands, *op.results)):
                    self._compute(op, *analysis.ops[op], ir.InsertionPoint(op))
                elif op.name in RESHAPES and op.operands[0] in self._chosen and analysis.is_served(op, op.operands[0]):
                    source = op.operands[0]
                    made = self._made[source, analysis.expansions[source]]
                    with ir.InsertionPoint(op):
                        replace_with(op, [reshaped(made, op.results[0].type.shape, op.name)])
                elif op.name in RESHAPES and op.results[0] in self._chosen:
                    expansion = analysis.expansions[op.results[0]]
                    with ir.InsertionPoint(op):
                        made = reshaped(op.operands[0], expanded_shape(expansion), op.name)
                    self._made[op.results[0], expansion] = made
                    self._replaced[op] = None
        for op in reversed(self._replaced):
            if op in analysis.ops:
                self._merge_where_needed(op)
            if not any(True for result in op.results for _ in result.uses):
                op.erase()

    def _compute(self, op: Any, how: Expandable, ports: Mapping[int, Expansion], point: Any) -> None:
        operands = [
            self._expanded(operand, ports[number], op) if number in ports else operand
            for number, operand in enumerate(op.operands)
        ]
        made = computed(op, operands, how, ports, point)
        for number, result in enumerate(op.results):
            self._made[result, ports[-1 - number]] = made[number]
        self._replaced[op] = None

    def _expanded(self, value: Any, expansion: Expansion, user: Any) -> Any:
        if expansion == unexpanded(value) and value not in self._chosen:
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
        """Merges the dimensions of results again for those that cannot use the expanded ones."""
        for number, result in enumerate(op.results):
            if uses := uses_of(result):
                made = self._made[result, self._analysis.ops[op][1][-1 - number]]
                with op.location, insertion_point_after(made):
                    replace_uses(uses, reshaped(made, result.type.shape, _reshape_for(op)))


def _reshape_for(op: Any) -> str:
    """The reshape of the dialect of an op."""
    return _RESHAPE_OF.get(op.name.partition(".")[0], "tensor.expand_shape")
