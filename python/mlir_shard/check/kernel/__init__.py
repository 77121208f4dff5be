# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program means: both programs are run on symbols, and their results compared element by element.

This is the definition that the lemmas are held to. It imports nothing of the checker but itself. Read `terms`, what an
element is; `tensors`, which ops there are; and `symbols`, what they do. The dialects in `ops` are defined by these ops.
"""
