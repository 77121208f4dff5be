# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of the attributes in which propagation says where shardings came from.

Shardy's pass that removes them leaves SHARDING_ORIGIN_NAME alone, so it is not in ALL.
"""

from __future__ import annotations

SHARDING_ORIGIN_NAME = "sdy.sharding_origin_name"
SHARDING_ORIGINS = "sdy.sharding_origins"
PROPAGATION_EDGES = "sdy.propagation_edges"
BLOCK_ARG_SHARDING_ORIGINS = "sdy.block_arg_sharding_origins"
BLOCK_ARG_PROPAGATION_EDGES = "sdy.block_arg_propagation_edges"
RESULT_SHARDING_ORIGINS = "sdy.result_sharding_origins"
RESULT_PROPAGATION_EDGES = "sdy.result_propagation_edges"

ALL = (
    SHARDING_ORIGINS,
    PROPAGATION_EDGES,
    BLOCK_ARG_SHARDING_ORIGINS,
    BLOCK_ARG_PROPAGATION_EDGES,
    RESULT_SHARDING_ORIGINS,
    RESULT_PROPAGATION_EDGES,
)
