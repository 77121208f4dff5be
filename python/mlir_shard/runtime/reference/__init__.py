# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program without sharding, on one device: what a sharded program is compared with.

`unsharded` makes it, `lockstep` runs bodies of manual computations for all devices, `verify` compares results.
"""
