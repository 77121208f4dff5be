# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What no device can compute on its blocks is computed on larger ones, or on whole tensors."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.transforms.gathers import Gathers, remarks_above, shard_bytes
from mlir_shard.transforms.reshard.unreduced_axes import REDUCING_COLLECTIVES
from mlir_shard.transforms.shardings import meshes_around
from mlir_shard.transforms.spmdize.block_computations import NotOnBlocksError
from mlir_shard.transforms.spmdize.block_trials import BlockTrials
from mlir_shard.transforms.spmdize.larger_blocks import Arrangement, larger_blocks
from mlir_shard.transforms.spmdize.local_plan import ElsewhereError, LocalPlanner, Signature, ops_in, text_of
from mlir_shard.transforms.spmdize.placed_values import Placed, PlacedValues
from mlir_shard.transforms.spmdize.repeated_ops import RepeatedOps
from mlir_shard.transforms.spmdize.whole_tensors import bring, gather_operand, slice_result


@register
class ComputeWhole(Pass):
    """Gathers the operands of ops that cannot be computed on the blocks these are in, and slices their results.

    Which ops these are `sdy-convert-global-to-local` says, whose decisions are asked: what would be an error there is
    computed here on larger blocks, with those dimensions whole that are in the way, or on whole tensors. Operands that
    have to be elsewhere, as what a function returns, are gathered and sliced again. Shards have to be even.
    """

    name = "shard-compute-whole"
    anchor = "builtin.module"
    summary = "Computes ops on larger blocks, or whole, that cannot be computed on the blocks of their tensors"

    remarks_above: int | None = remarks_above()

    def run(self, op: Any) -> bool:
        if _is_convertible(op):
            return False
        values = PlacedValues(meshes_around(op))
        functions = operations_named(op, "func.func")
        signatures = {one.attributes["sym_name"].value: Signature.of(one, values) for one in functions}
        gathers = Gathers(self.remarks_above)
        changes = _Changes(LocalPlanner(values, signatures), values, gathers)
        for function in functions:
            signature = changes.planner.enter(function)
            for inner in list(ops_in(function)):
                changes.settle(inner, signature)
        gathers.remark()
        return changes.are_any


def _is_convertible(module: Any) -> bool:
    """Whether the conversion takes a module as it is, asked once for ops that are alike."""
    repeated = RepeatedOps(module, REDUCING_COLLECTIVES)
    trials = BlockTrials()
    try:
        values = PlacedValues(meshes_around(module), repeated)
        functions = operations_named(module, "func.func")
        signatures = {one.attributes["sym_name"].value: Signature.of(one, values) for one in functions}
        planner = LocalPlanner(values, signatures)
        for plan in [plan for function in functions for plan in planner.plan_repeated(function, repeated)]:
            trials.check(plan)
    except PassFailure:
        # What is wrong is said, or put right, op by op.
        return False
    return True


class _Changes:
    """Gathers and slices around ops until the conversion takes them."""

    def __init__(self, planner: LocalPlanner, values: PlacedValues, gathers: Gathers) -> None:
        self.planner = planner
        self.are_any = False
        self._values = values
        self._trials = BlockTrials()
        self._gathers = gathers

    def settle(self, op: Any, signature: Signature) -> None:
        """Changes what is around one op; PassFailure where that is no help."""
        while True:
            try:
                plan = self.planner.plan_op(op, signature)
                if plan is not None:
                    self._trials.check(plan)
            except ElsewhereError as error:
                self._bring(error)
            except NotOnBlocksError as error:
                self._compute_elsewhere(op, error)
                return
            else:
                return

    def _bring(self, error: ElsewhereError) -> None:
        user, number = error.user, error.operand
        value = user.operands[number]
        have = self._values.of(value)
        with ir.InsertionPoint(user), user.location:
            brought = bring(value, have, error.wanted)
        if brought is None:
            raise error
        user.operands[number] = brought
        what = f"has operand {number} gathered and sliced, to be {text_of(error.wanted)}"
        self._done(user, what, _missing_bytes(value.type, have, None))

    def _compute_elsewhere(self, op: Any, error: NotOnBlocksError) -> None:
        computations = self.planner.computations
        have = Arrangement(tuple(map(self._values.of, op.operands)), tuple(map(self._values.of, op.results)))
        for blocks in larger_blocks(have, computations.rule_of(op), computations.unshardable(op)):
            try:
                if not blocks.is_whole:
                    self._trials.check(self.planner.on_blocks(op, blocks.operands, blocks.results))
                owed = computations.lost_sums(op, have.operands, blocks.operands)
            except PassFailure:
                continue
            pairs = {*zip(op.operands, have.operands, blocks.operands, strict=True)}
            received = sum(_missing_bytes(value.type, one, wanted) for value, one, wanted in pairs)
            self._done(op, f"{_described(have, blocks)}: {error.why}", received)
            for number, (placed, wanted) in enumerate(zip(have.operands, blocks.operands, strict=True)):
                if placed is not None:
                    gather_operand(op, number, placed.mesh, wanted)
            first = next((one for one in have.operands if one is not None), None)
            for number, (placed, made) in enumerate(zip(have.results, blocks.results, strict=True)):
                on = placed or first
                if on is not None and (owed or placed != made):
                    slice_result(op, number, on, made, owed)
                self._values.set(op.results[number], made)
            return
        raise error

    def _done(self, op: Any, what: str, received: int) -> None:
        self.are_any = True
        self._gathers.add(op, what, received)


def _missing_bytes(type_: Any, have: Placed | None, wanted: Placed | None) -> int:
    """The bytes by which the shard that is wanted of a tensor is larger than the one that there is."""
    shards = [
        shard_bytes(type_, None if one is None else one.sharding, None if one is None else one.mesh)
        for one in (have, wanted)
    ]
    return max(0, shards[1] - shards[0])


def _described(have: Arrangement, blocks: Arrangement) -> str:
    if blocks.is_whole:
        return "is computed whole on every device"
    pairs = enumerate(zip(have.operands, blocks.operands, strict=True))
    gathered = [
        f"operand {number} gathered to be {text_of(wanted)}" for number, (old, wanted) in pairs if old != wanted
    ]
    return f"is computed on larger shards, {', '.join(gathered) or 'those of its operands'}"
