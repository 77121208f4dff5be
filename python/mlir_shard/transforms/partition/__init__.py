# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The partitioners: the global program becomes the local one that each device runs.

`spmdize` is the one of `shard-spmdize`: `plan`, with `value_placements`, and `op_decisions` decide, `plan_application`
applies, `grid_reshards` plans reshards and `emission` builds them. `shard_reshape_parts`, with `products_of_parts`,
`shard_split_windows`, `shard_split_scatters`, `shard_split_top_k` and `split_reductions` first rewrite the global
program, see `pipelines`. `sdy_convert_global_to_local` is Shardy's, for StableHLO: a strict mode of the same planner,
`strict_plan`, which communicates only by collectives of sdy, in the form of `written_collectives`. Both classify ops by
`named_ops`.
`spmdize` plans isomorphic ops once, see `repeated_ops`.
"""

# The passes in files with other names; every other pass is in the file of its name.
PASSES = {
    "pipelines": (
        "shard-spmdize",
        "spmd-pipeline",
    ),
    "split_reductions": (
        "shard-reduce-in-blocks",
        "shard-scan-in-blocks",
        "shard-split-reductions",
    ),
}
