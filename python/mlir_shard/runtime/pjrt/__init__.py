# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running on devices of PJRT: `xla_module` makes what XLA runs, and `nested_slices` keeps it from being simplified
wrongly; `executable` compiles and calls it."""
