# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of StableHLO, a file for each family of ops, registered on import of this package.

Corresponding dimensions and the types of their factors are those of Shardy's rule registry. Sharding and partition
rules of a family are in one file, except the partition rules of gather and scatter.
"""

from __future__ import annotations

from mlir_shard.rules.stablehlo import (
    compute,
    custom_calls,
    gather_scatter,
    layout,
    local_gather_scatter,
    shifts,
    slicing,
    windows,
)

__all__ = [
    "compute",
    "custom_calls",
    "gather_scatter",
    "layout",
    "local_gather_scatter",
    "shifts",
    "slicing",
    "windows",
]
