# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move elements along sharded dimensions, as pads, slices and windows do, with exchanges between neighbours.

`sdy_resolve_permutation_factors` and `shard_rotate_shards` are the passes; each family of ops has a file, and all of
them use `halo_exchange`.
"""
