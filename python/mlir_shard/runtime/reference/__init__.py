# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The unsharded program on one device, with which a sharded program is compared.

`unsharded` builds it, `lockstep` builds bodies of manual computations for all devices, `verify` compares results.
"""
