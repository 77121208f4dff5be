# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meaning of a program: both programs are run on symbols, and their results are compared element by element.

This is the definition that the lemmas are held to. It imports nothing of the checker but itself. Read `terms` for the
elements, `ops.tensors` for the ops, and `symbols` for their effect. These ops define the dialects in `ops`.
"""
