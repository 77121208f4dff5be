# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of constraints that give their operands shardings before anything propagates."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import shardable_value, sharding_of
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import OpShardingRule, TensorSharding
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.propagation_edges import axis_moves
from mlir_shard.transforms.propagate import debug_attributes
from mlir_shard.transforms.propagate.debug_origins import name_origins
from mlir_shard.transforms.propagate.debug_record import Record
from mlir_shard.transforms.propagate.debug_writing import next_step, write_edges, write_origins


class ConstraintRecord:
    """A record in which the values are those of the IR."""

    def __init__(self, module: Any, *, origins: bool, edges: bool) -> None:
        self._origins, self._edges = origins, edges
        self._constraints: list[Any] = []
        self._record: Record[Any] = Record(
            next_step(ModuleArrays(module).attributes(debug_attributes.PROPAGATION_EDGES)[1])
        )
        for beginning in name_origins(module) if origins else ():
            self._record.begin(beginning.value, beginning.sharding, beginning.origin)

    def applied(self, constraint: Any, before: TensorSharding | None) -> None:
        """Notes a constraint that may have been applied, its operand having had the sharding `before`."""
        operand, result = constraint.operands[0], constraint.results[0]
        after, asked = sharding_of(operand), sharding_of(result)
        mesh = None if after is None else sdy.mesh_of(after, constraint)
        if after == before or mesh is None or mesh.is_maximal:
            return
        rule = OpShardingRule.pointwise(shape_of(result.type), 1)
        old = ShardingProjection.build([before], [asked], rule, mesh)
        new = ShardingProjection.build([after], [asked], rule, mesh)
        if new != old:
            moves = axis_moves(old, new, rule, mesh)
            self._record.step(len(self._constraints), [shardable_value(operand)], [result], moves)
            self._constraints.append(constraint)

    def write(self) -> None:
        """Attaches what is asked for to the module."""
        if self._origins:
            write_origins(self._record.origins.items())
        if self._edges:
            write_edges((op, self._record.moves.get(number, ())) for number, op in enumerate(self._constraints))
