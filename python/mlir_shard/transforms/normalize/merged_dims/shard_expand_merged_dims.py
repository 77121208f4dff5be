# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `shard-expand-merged-dims`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below, replace_with
from mlir_shard.ir.op_kinds import OpKinds
from mlir_shard.ir.values import insertion_point_after, replace_uses, uses_of
from mlir_shard.passes.registry import FunctionPass, register
from mlir_shard.transforms.normalize.merged_dims.chosen_expansions import ChosenExpansions, chosen_expansions
from mlir_shard.transforms.normalize.merged_dims.expandable_ops import computed
from mlir_shard.transforms.normalize.merged_dims.expandable_values import is_fixed, rebuilt
from mlir_shard.transforms.normalize.merged_dims.expanded_dims import (
    RESHAPES,
    Expandable,
    Expansion,
    expanded_shape,
    merged_dims,
    reshaped,
    unexpanded,
)

_RESHAPE_OF = {"stablehlo": "stablehlo.reshape", "tosa": "tosa.reshape"}


@register
class ShardExpandMergedDims(FunctionPass):
    """Computes on the original dimensions that a reshape merges, if a later reshape splits the merged dimension again.

    A merged dimension can be sharded only as its first part is sharded, or along its entire size. For example, a batch
    matmul of torch merges the batch dimension, sharded by data, with the heads, sharded by model, and would gather one
    of the two. This pass moves merging reshapes down over elementwise ops, matmuls, transposes, broadcasts, reductions,
    slices, pads and concatenations, which then compute on the original dimensions, until the reshapes meet those that
    split them and both are erased.

    Dimensions that such ops and reshapes connect are expanded together, and only if reshapes merge and split fewer
    dimensions afterwards. Ops with shardings are not changed. Structured ops of linalg become `linalg.generic`, as does
    `tosa.matmul`, which has three dimensions.
    """

    name = "shard-expand-merged-dims"
    summary = "Replaces ops on merged dimensions by ops on the dimensions before the merge"
    needs = RESHAPES

    def run(self, function: Any) -> bool:
        merges = {op.results[0]: merged for op, merged in OpKinds(function, *RESHAPES).decided(_merged_by)}
        if not merges:
            return False
        chosen = chosen_expansions(function, merges)
        if chosen is None:
            return False
        _Rewriting(chosen).apply(function)
        return True


def _merged_by(reshape: Any) -> Expansion | None:
    """Returns the dimensions that a reshape merges; None if it merges none, or is not to be changed."""
    source, target = reshape.operands[0].type, reshape.results[0].type
    if not source.has_static_shape or not target.has_static_shape or is_fixed(reshape):
        return None
    return merged_dims(source.shape, target.shape)


class _Rewriting:
    """The rewriting of a function that computes the expanded forms of the values `chosen`."""

    def __init__(self, chosen: ChosenExpansions) -> None:
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
                elif self._is_reshaped(op):
                    self._reshape(op)
        for op in reversed(self._replaced.values()):
            if self._how(op) is not None or (op.name in RESHAPES and op.operands[0] in expansions):
                self._merge_where_needed(op)
            if not any(True for result in op.results for _ in result.uses):
                op.erase()

    def _how(self, op: Any) -> tuple[Expandable, Mapping[int, Expansion]] | None:
        return self._chosen.ops.get(op.results[0]) if len(op.results) else None

    def _is_reshaped(self, op: Any) -> bool:
        """Returns whether an op is a reshape between other shapes in the expanded program."""
        if op.name not in RESHAPES or is_fixed(op) or not op.results[0].type.has_static_shape:
            return False
        return any(value in self._chosen.expansions for value in (op.operands[0], op.results[0]))

    def _reshape(self, op: Any) -> None:
        (result,), source = op.results, op.operands[0]
        expansions = self._chosen.expansions
        with ir.InsertionPoint(op):
            if source in expansions:
                source = self._made[source, expansions[source]]
            expansion = expansions.get(result, unexpanded(result))
            made = reshaped(source, expanded_shape(expansion), op.name)
            if result in expansions:
                self._made[result, expansion] = made
                self._replaced[result] = op
            else:
                replace_with(op, [made])

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
            known = rebuilt(value, expansion)
            if known is not None:
                self._compute(value.owner, *known, ir.InsertionPoint.after(value.owner))
            else:
                known_form = self._made.get((value, self._chosen.expansions.get(value, expansion)), value)
                with insertion_point_after(known_form):
                    self._made[key] = reshaped(known_form, expanded_shape(expansion), _reshape_for(user))
        return self._made[key]

    def _merge_where_needed(self, op: Any) -> None:
        """Merges the dimensions of results again for users that cannot use the expanded form."""
        for number, result in enumerate(op.results):
            if uses := uses_of(result):
                how = self._how(op)
                expansion = self._chosen.expansions[result] if how is None else how[1][-1 - number]
                made = self._made[result, expansion]
                with op.location, insertion_point_after(made):
                    replace_uses(uses, reshaped(made, result.type.shape, _reshape_for(op)))


def _reshape_for(op: Any) -> str:
    """Returns the name of the reshape in the dialect of an op."""
    return _RESHAPE_OF.get(op.name.partition(".")[0], "tensor.expand_shape")
