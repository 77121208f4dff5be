# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshards around one op.

`common_axes` has Shardy's choice of the axes that the op computes along, `op_assignment` the cheapest choice, and
`op_reshards` the reshards for a choice. `cheapest_reshards` has the reshards of the cheapest choice by `op_cost`, for
an `op_problem`, among the `factor_candidates` of its `op_form`; `reshard_prices` has the costs of reshards.
"""
