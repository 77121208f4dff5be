# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The global program, compatible with its shardings, becomes the program that one device runs, in StableHLO."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.ir import editing
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.stablehlo import CollectiveForms, StablehloProgram
from mlir_shard.transforms.gathers import Gathers, bytes_of, remarks_above
from mlir_shard.transforms.partition.local_plan import DRAWING, LocalPlanner, OpPlan, Signature
from mlir_shard.transforms.partition.localization import Localization, localize_signature, refresh_lengths
from mlir_shard.transforms.partition.placed_values import PlacedValues
from mlir_shard.transforms.partition.repeated_ops import RepeatedOps
from mlir_shard.transforms.partition.verified_repetition import partition_verified, verify_repetition
from mlir_shard.transforms.reshard.unreduced_axes import REDUCING_COLLECTIVES
from mlir_shard.transforms.shardings import meshes_around


@register
class ConvertGlobalToLocal(Pass):
    """Gives every tensor the type of a device's block, and makes StableHLO collectives of those of sdy.

    Shards have to be even, every op computable on the blocks that its tensors are in, and every reshard a collective:
    what `sdy-insert-explicit-reshards`, `sdy-resolve-permutation-factors`, `sdy-reshard-to-collectives` and
    `sdy-pad-for-divisibility` leave. Any other program is an error. Ops become local by the partition rules
    of `mlir_shard.interfaces.partition_rule`, and by default they are the same on blocks. Manual computations are
    inlined. Shardings and meshes stay where they are, as `sdy-drop-sharding-and-mesh` removes them.
    """

    name = "sdy-convert-global-to-local"
    anchor = "builtin.module"
    summary = "Converts the global program to the program of one device, with StableHLO collectives"

    per_dim_all_gather: bool = option(False, "gather dimensions one by one, not all of a tensor at once")
    combine_multi_dimension_reduce_scatter: bool = option(
        False, "reduce and scatter several dimensions at once, not by an all-reduce and slices"
    )
    enable_rgv3: bool = option(False, "name groups of devices by mesh axes, where those are no sub-axes")
    replica_count: int = option(1, "the number of replicas; more than 1 are told apart by replica_id")
    partition_count: int = option(1, "the number of partitions")
    remarks_above: int | None = remarks_above()
    verify_repetition: bool = verify_repetition()

    def run(self, op: Any) -> None:
        if self.replica_count > 1 and self.partition_count > 1:
            counts = f"{self.replica_count} replicas of {self.partition_count} partitions"
            raise PassFailure(f"{counts} cannot be told apart: replica-count or partition-count has to be 1", op)
        if self.verify_repetition:
            partition_verified(op, self._partition)
        else:
            self._partition(op, True)

    def _partition(self, op: Any, reuses: bool) -> None:
        forms = CollectiveForms(self.per_dim_all_gather, self.combine_multi_dimension_reduce_scatter, self.enable_rgv3)
        gathers = Gathers(self.remarks_above if reuses else None)
        program = StablehloProgram(Channels.of(op), self.replica_count > 1, forms)
        convert_global_to_local(op, program, gathers, reuses=reuses)
        gathers.remark()


def convert_global_to_local(module: Any, program: StablehloProgram, gathers: Gathers, *, reuses: bool = True) -> None:
    """What the pass does, with the collectives of `program`. Raises PassFailure where an op cannot become local."""
    repeated = RepeatedOps(module, REDUCING_COLLECTIVES, reuses=reuses)
    values = PlacedValues(meshes_around(module), repeated)
    functions = operations_named(module, "func.func")
    signatures = {one.attributes["sym_name"].value: Signature.of(one, values) for one in functions}
    planner = LocalPlanner(values, signatures)
    plans = [plan for function in functions for plan in planner.plan_repeated(function, repeated)]
    first = program.channels.next_free
    localization = Localization(program, values.program_mesh)
    for function in functions:
        localize_signature(function, signatures[function.attributes["sym_name"].value])
    for plan in plans:
        if plan.op.name == DRAWING and values.program_mesh is not None:
            received = bytes_of(value.type for value in plan.op.results)
            gathers.add(plan.op, "draws on the first device, which sends what it drew to all others", received)
        repeated.carry_out(plan.op, partial(_carry_out, localization, plan))
    program.channels.renumber(module, first)
    # Rules are of whole tensors.
    editing.remove_attributes(module, sdy.SHARDING_RULE)
    for named in operations_named(module, "sdy.named_computation", "sdy.return"):
        refresh_lengths(named)


def _carry_out(localization: Localization, plan: OpPlan, op: Any) -> None:
    localization.carry_out(plan if op is plan.op else replace(plan, op=op))
