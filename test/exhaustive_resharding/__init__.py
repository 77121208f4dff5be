# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans the resharding from every sharding of a tensor to every other one, and simulates the plans on every device."""
