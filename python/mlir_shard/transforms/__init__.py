# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes, in the stages that a module goes through.

Read `normalize`, `propagate`, `reshard`, `partition` and `communication` in this order; `reshard` and `partition` use
`halo` for ops that move elements. The files here are shared by several stages.
"""
