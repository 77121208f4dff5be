# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Execution on PJRT devices: `xla_module` lowers modules for XLA, `nested_slices` prevents wrong simplifications by
XLA, and `executable` compiles and calls programs."""
