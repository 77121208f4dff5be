# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of local programs: `builder` is the protocol, `shard` and `stablehlo` implement it.

`tile_exchange` is the direct exchange of both. `shard_permutations` and `shard_halo` have the collectives that `shard`
builds from several ops, `stablehlo_halo` the halo exchanges in StableHLO, `channels` the numbers of its channels.
"""
