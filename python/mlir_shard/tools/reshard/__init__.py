# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Input and output of shard-reshard: meshes and shardings in short, and plans as text, pictures and data."""
