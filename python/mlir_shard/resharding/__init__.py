# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that bring a tensor from one layout on the devices to another. Imports no MLIR.

Read `tensor_layout`, `grid` and `steps` for the problem, then `planner`, which compares `seed_plans` with the result of
`grid_search`, whose search is native (`lib/resharding/reshard_search.h`). `plan` is the result, and `simulation`
executes it. `greedy_plan` is Shardy's algorithm. `cost/` is the cost model, and `operator/` chooses the reshards around
an op.
"""
