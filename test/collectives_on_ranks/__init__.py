# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every collective of upstream's shard dialect on MPI ranks, against its definition on NumPy arrays."""
