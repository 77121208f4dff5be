# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding as plain values: meshes, axes, tensor shardings, factors and rules. Does not import MLIR."""

from __future__ import annotations

from mlir_shard.sharding.axes import AxisRef, SubAxisInfo
from mlir_shard.sharding.collective import AllToAllParam, AllToAllParamList, AxisRefList, ListOfAxisRefLists, ManualAxes
from mlir_shard.sharding.mesh import Mesh, MeshAxis
from mlir_shard.sharding.propagation_edges import (
    AxisToPropagationDetails,
    EdgeNodeType,
    EdgeValueRef,
    PropagationDirection,
    PropagationEdges,
    PropagationOneStep,
)
from mlir_shard.sharding.rule import DimMapping, OpShardingRule, TensorMapping, factor_index, factor_symbol
from mlir_shard.sharding.tensor import DimensionSharding, ReductionOp, TensorSharding, TensorShardingPerValue

__all__ = [
    "AllToAllParam",
    "AllToAllParamList",
    "AxisRef",
    "AxisRefList",
    "AxisToPropagationDetails",
    "DimMapping",
    "DimensionSharding",
    "EdgeNodeType",
    "EdgeValueRef",
    "ListOfAxisRefLists",
    "ManualAxes",
    "Mesh",
    "MeshAxis",
    "OpShardingRule",
    "PropagationDirection",
    "PropagationEdges",
    "PropagationOneStep",
    "ReductionOp",
    "SubAxisInfo",
    "TensorMapping",
    "TensorSharding",
    "TensorShardingPerValue",
    "factor_index",
    "factor_symbol",
]
