# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops that share the plan of an op."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_shard.dialects import sdy
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.partition.op_decisions import OpPlan, Role
from mlir_shard.transforms.partition.repeated_ops import Reuse


def reuse_of(plans: Sequence[OpPlan], grid: DeviceGrid) -> Reuse:
    """Returns the ops to which the plan of an op applies, given all plans of the op and of those in its regions."""
    if not _is_template(plans):
        return Reuse.NONE
    plan, rule = plans[0], plans[0].rule
    if rule is None or not _sets_types_alone(plan) or sdy.SHARDING_RULE in plan.op.attributes:
        return Reuse.ISOMORPHIC
    # Which factors can be sharded depends on sizes if shards are uneven, dimensions compound, or elements move.
    is_even = all(map(grid.is_even, rule.factor_sizes, plan.factor_axes))
    is_for_any_sizes = is_even and not rule.has_compound_dimensions and not rule.permutation_factors
    return Reuse.ANY_SIZES if is_for_any_sizes else Reuse.ISOMORPHIC


def _is_template(plans: Sequence[OpPlan]) -> bool:
    """Returns whether the plan of an op applies to all isomorphic ops."""
    if len(plans) != 1 or plans[0].captured:
        return False
    role, partition = plans[0].role, plans[0].partition
    is_alone = role in (Role.KEPT, Role.COMPUTED, Role.REPLACED)
    return (is_alone or (role is Role.PASSED_ON and not len(plans[0].op.regions))) and (not partition or partition.pure)


def _sets_types_alone(plan: OpPlan) -> bool:
    """Returns whether the op of a plan becomes local by the types of its results alone."""
    moves = (*plan.operand_reshards, *plan.results.reshards, *plan.halos, *plan.combined, *plan.uneven_edges)
    is_local = plan.role is Role.COMPUTED and plan.partition is not None and plan.partition.sets_types_alone
    return is_local and plan.mask is None and all(one is None for one in moves)
