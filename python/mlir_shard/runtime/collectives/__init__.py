# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives on MPI.

`shard_collectives` and `stablehlo_collectives` legalize the two dialects of collectives on tensors, `shard_to_mpi`
lowers them on memory. Below these: `point_to_point` messages, `group_exchange` in a group, `groups`, `element_types`,
`buffers`, and the calls in `library`.
"""
