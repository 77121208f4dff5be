# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of moves.

`cost_model` has the objectives, `links` the times, `traffic` and `block_arrays` the elements received. `lower_bound`
has the least bytes that any plan has to receive; `communication` is the cost of one collective of a local program.
"""
