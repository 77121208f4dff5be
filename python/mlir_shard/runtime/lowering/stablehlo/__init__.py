# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of StableHLO that the host does not lower, as operations that it does.

`operations` names them all; `element_loops`, `sorting` and `linear_algebra` have those that become loops.
"""
