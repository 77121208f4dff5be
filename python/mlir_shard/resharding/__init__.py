# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that bring a tensor from one layout on the devices to another. Imports no MLIR.

Read `tensor_layout`, `grid` and `steps` for what is planned, then `planner`, which compares `seed_plans` with what
`grid_search` finds in the `search_space`; `plan` is the result, `simulation` carries it out. `greedy_plan` is
Shardy's algorithm. `cost/` says what moves cost, `operator/` what is resharded around an op.
"""
