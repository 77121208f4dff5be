# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives on MPI.

`shard_collectives` and `stablehlo_collectives` legalize collectives of the two dialects on tensors; `shard_to_mpi`
lowers them to MPI on memory. They use `point_to_point` for messages, `group_exchange` for collectives in a group,
`groups`, `element_types`, `buffers`, and `library` for the calls.
"""
