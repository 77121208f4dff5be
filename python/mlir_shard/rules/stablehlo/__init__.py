# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of StableHLO, a file for each kind of op, registered on import of this package.

Which dimensions correspond, and what kind of factor each is, follows Shardy's rule registry.
"""

from __future__ import annotations

from mlir_shard.rules.stablehlo import (
    collectives,
    contraction,
    custom_calls,
    data_flow,
    elementwise,
    gather_scatter,
    linear_algebra,
    normalization,
    random,
    reduction,
    reshape,
    shape,
    slicing,
    sort,
    windows,
)
from mlir_shard.rules.stablehlo.custom_calls import custom_call_rule

__all__ = [
    "collectives",
    "contraction",
    "custom_call_rule",
    "custom_calls",
    "data_flow",
    "elementwise",
    "gather_scatter",
    "linear_algebra",
    "normalization",
    "random",
    "reduction",
    "reshape",
    "shape",
    "slicing",
    "sort",
    "windows",
]
