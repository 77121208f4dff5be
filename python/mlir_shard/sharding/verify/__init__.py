# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The invariants of sharding values, as pure functions.

Each function returns the first violation, as the sentence of a diagnostic without the op's name, or None. The functions
check the invariants that Shardy's verifiers check, and further ones that the project's stages rely on.
"""

from __future__ import annotations

from mlir_shard.sharding.verify.collective import (
    check_all_gather,
    check_all_reduce,
    check_all_slice,
    check_all_to_all,
    check_collective,
    check_collective_permute,
    check_reduce_scatter,
    check_replicated_to_unreduced,
    check_sharded_to_unreduced,
    check_unreduced_transition,
)
from mlir_shard.sharding.verify.manual import (
    check_manual_axes,
    check_manual_axes_spelled_out,
    check_manual_values,
    common_mesh,
)
from mlir_shard.sharding.verify.rule import (
    check_edges_on_op,
    check_factor_sizes,
    check_op_sharding_rule,
    check_propagation_edges,
)
from mlir_shard.sharding.verify.tensor import (
    MeshLookup,
    NoShape,
    Shape,
    check_axis_lists,
    check_axis_ref,
    check_device_numbers,
    check_free_of_manual_axes,
    check_mesh,
    check_mesh_axis,
    check_mesh_order,
    check_tensor_sharding,
    check_tensor_sharding_per_value,
)

__all__ = [
    "MeshLookup",
    "NoShape",
    "Shape",
    "check_all_gather",
    "check_all_reduce",
    "check_all_slice",
    "check_all_to_all",
    "check_axis_lists",
    "check_axis_ref",
    "check_collective",
    "check_collective_permute",
    "check_device_numbers",
    "check_edges_on_op",
    "check_factor_sizes",
    "check_free_of_manual_axes",
    "check_manual_axes",
    "check_manual_axes_spelled_out",
    "check_manual_values",
    "check_mesh",
    "check_mesh_axis",
    "check_mesh_order",
    "check_op_sharding_rule",
    "check_propagation_edges",
    "check_reduce_scatter",
    "check_replicated_to_unreduced",
    "check_sharded_to_unreduced",
    "check_tensor_sharding",
    "check_tensor_sharding_per_value",
    "check_unreduced_transition",
    "common_mesh",
]
