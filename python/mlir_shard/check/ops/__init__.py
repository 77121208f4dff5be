# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The definitions of the ops of dialects, by the ops on tensors of `kernel.tensors`.

Read `reading`, what they share, then `structured`, `stablehlo`, `places`, `tosa`, `upstream` and `collectives`.
"""
