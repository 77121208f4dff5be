# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts the global program, compatible with its shardings, to the local program in StableHLO, op by op."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.type_runs import length_attribute
from mlir_shard.ir import editing
from mlir_shard.ir.editing import operations_named
from mlir_shard.ods.model import OPERAND_LENGTHS, RESULT_LENGTHS
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.stablehlo import (
    CollectiveForms,
    StablehloProgram,
)
from mlir_shard.transforms.device_grid import DeviceGrid, GridError
from mlir_shard.transforms.gathers import Gathers, remarks_above
from mlir_shard.transforms.limits import is_by_replica
from mlir_shard.transforms.partition.plan_application import localize_signature
from mlir_shard.transforms.partition.repeated_ops import RepeatedOps
from mlir_shard.transforms.partition.strict_plan import StrictApplication, StrictPlanner, even_signature
from mlir_shard.transforms.shardings import used_axes


def refresh_lengths(op: Any) -> None:
    """Updates the lengths of runs of equal types of an op of sdy, after its types have changed."""
    if OPERAND_LENGTHS in op.attributes:
        op.attributes[OPERAND_LENGTHS] = length_attribute([value.type for value in op.operands])
    if RESULT_LENGTHS in op.attributes:
        op.attributes[RESULT_LENGTHS] = length_attribute([value.type for value in op.results])


@register
class ConvertGlobalToLocal(Pass):
    """Gives every tensor its local type, and replaces collectives of sdy by those of StableHLO.

    Shards have to be even, every op has to be computable on the shards of its tensors, and every reshard has to be a
    collective, as after `sdy-insert-explicit-reshards`, `sdy-resolve-permutation-factors`, `sdy-reshard-to-collectives`
    and `sdy-pad-for-divisibility`. Any other program is an error. Ops become local by the partition rules of
    `mlir_shard.interfaces.partition_rule`; by default, the same op is applied to shards. Manual computations are
    inlined. Shardings and meshes are kept; `sdy-drop-sharding-and-mesh` removes them.
    """

    name = "sdy-convert-global-to-local"
    anchor = "builtin.module"
    summary = "Converts the global program to the local program, with StableHLO collectives"

    per_dim_all_gather: bool = option(
        False, "gather each dimension separately, instead of all dimensions of a tensor at once"
    )
    combine_multi_dimension_reduce_scatter: bool = option(
        False, "combine a reduce-scatter of several dimensions into one, instead of an all-reduce and slices"
    )
    enable_rgv3: bool = option(False, "describe replica groups by mesh axes, except for sub-axes")
    replica_count: int = option(1, "the number of replicas; if greater than 1, replica_id identifies a device")
    partition_count: int = option(1, "the number of partitions")
    remarks_above: int | None = remarks_above()

    def run(self, op: Any) -> None:
        by_replica = is_by_replica(op, self.replica_count, self.partition_count)
        forms = CollectiveForms(self.per_dim_all_gather, self.combine_multi_dimension_reduce_scatter, self.enable_rgv3)
        gathers = Gathers(self.remarks_above)
        program = StablehloProgram(Channels.of(op), by_replica, forms)
        convert_global_to_local(op, program, gathers)
        gathers.remark()


def convert_global_to_local(module: Any, program: StablehloProgram, gathers: Gathers) -> None:
    """Converts a module as the pass does, with the collectives of `program`.

    Raises PassFailure if an op cannot become local.
    """
    used, refs = used_axes(module)
    try:
        grid = DeviceGrid.of_separate_meshes(used, refs)
    except GridError as error:
        raise PassFailure(str(error), module) from error
    several = ((name, mesh) for name, mesh in refs.items() if isinstance(name, str) and mesh.total_size > 1)
    program_mesh = next(several, None)
    functions = operations_named(module, "func.func")
    signatures = {one.attributes["sym_name"].value: even_signature(one, grid) for one in functions}
    repeated = RepeatedOps(module, reuses=False)
    planner = StrictPlanner(grid, signatures, repeated, gathers, draws_on_first=program_mesh is not None)
    plans = [plan for function in functions for plan in planner.plan_function(function)]
    application = StrictApplication(grid, program, program_mesh)
    for function in functions:
        signature, type_ = signatures[function.attributes["sym_name"].value], function.attributes["function_type"].value
        pairs = ((type_.inputs, signature.arguments), (type_.results, signature.results))
        localize_signature(function, *(list(map(grid.local_type, *of)) for of in pairs))
    for plan in plans:
        application.apply(plan)
    # Sharding rules describe global tensors.
    editing.remove_attributes(module, sdy.SHARDING_RULE)
    for named in operations_named(module, "sdy.named_computation", "sdy.return"):
        refresh_lengths(named)
