# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every sharding of a tensor carried to every other by the planner, with the plans simulated on every device."""
