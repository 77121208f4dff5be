# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meaning of a program: both programs are run on symbols, and their results are compared element by element.

The lemmas must agree with this definition. The package imports nothing else of the checker. Read `terms` for the
elements, `ops.tensors` for the ops, and `symbols` for their effect. `ops` defines the dialects by these ops.
"""
