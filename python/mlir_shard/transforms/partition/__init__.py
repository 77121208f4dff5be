# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The partitioners: the global program becomes the local one that each device runs.

`spmdize` is the one of `shard-spmdize`: `plan`, with `value_placements`, and `op_decisions` decide, `plan_application`
applies, `grid_reshards` plans reshards and `emission` builds them. What is easier on the global program comes before:
`shard_split_windows` and `split_reductions`, see `pipelines`. `sdy_convert_global_to_local` is Shardy's, for StableHLO:
a strict mode of the same planner, `strict_plan`, which moves nothing but what collectives of sdy move, in the form of
`written_collectives`. Both tell ops apart by `named_ops`. `spmdize` plans isomorphic ops once, see `repeated_ops`.
"""

# The passes of files that are not named for one; all others are in the file of their name.
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
