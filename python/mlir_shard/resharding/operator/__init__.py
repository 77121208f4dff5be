# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshards around one op.

`common_axes` and `op_assignment` choose the axes that it computes along, `op_reshards` has the reshards that follow.
`cheapest_reshards` compares both with Shardy's choice by `op_cost`, of an `op_problem`; what reshards cost is in
`reshard_prices`.
"""
