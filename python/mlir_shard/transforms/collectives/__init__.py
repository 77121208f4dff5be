# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of local programs: `builder` is the protocol, `shard` and `stablehlo` implement it.

`shard_permutations`, `shard_halo` and `shard_exchange` have what `shard` builds of several ops, `stablehlo_exchange` a
direct exchange in StableHLO, `channels` the numbers of its channels.
"""
