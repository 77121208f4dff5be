# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that make reshards explicit and turn them into collectives.

Read `pipelines`, then `sdy_insert_explicit_reshards` with `compatible_ops`, and `sdy_reshard_to_collectives` with
`planned_collectives`. `cleanup` has the small passes of the export.
"""

# The passes in files with other names; every other pass is in the file of its name.
PASSES = {
    "cleanup": (
        "sdy-drop-sharding-and-mesh",
        "sdy-drop-sharding-rules",
        "sdy-remove-all-gather-reduce-scatter-for-cmv1",
        "sdy-remove-sharding-groups",
        "sdy-remove-sub-axes-in-input-output-shardings",
        "sdy-sharding-constraint-to-reshard",
        "shard-barrier-to-reshard",
    ),
    "pipelines": (
        "sdy-export-pipeline",
        "shard-reshard",
    ),
    "unreduced_axes": ("sdy-verify-unreduced-axes",),
}
