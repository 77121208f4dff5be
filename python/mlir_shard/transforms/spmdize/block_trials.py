# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether partition rules make ops local, tried on copies of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from mlir_shard.host import ir
from mlir_shard.rules.partition import set_result_types
from mlir_shard.rules.reduction import reduction_kind
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram
from mlir_shard.transforms.spmdize.block_computations import NotOnBlocksError
from mlir_shard.transforms.spmdize.local_plan import OpPlan
from mlir_shard.transforms.spmdize.localization import Localization
from mlir_shard.transforms.spmdize.placed_values import local_type


class BlockTrials:
    """Carries out plans as the conversion does, each once for equal ops, and leaves the program as it is."""

    def __init__(self) -> None:
        self._localization = Localization(StablehloProgram(Channels(1)), None)
        self._found: dict[Hashable, str | None] = {}

    def check(self, plan: OpPlan) -> None:
        """Raises NotOnBlocksError where the partition rule of a plan cannot make its op local."""
        if plan.on_blocks is None or plan.on_blocks.partition.localize is set_result_types:
            return
        key = _key(plan)
        if key not in self._found:
            self._found[key] = self._failure(plan)
        why = self._found[key]
        if why is not None:
            raise NotOnBlocksError(plan.op, why)

    def _failure(self, plan: OpPlan) -> str | None:
        op = plan.op
        scratch = ir.Module.create(op.location)
        with ir.InsertionPoint(scratch.body), op.location:
            copy = op.clone().operation
        with ir.InsertionPoint.at_block_begin(scratch.body), op.location:
            for number, (value, placed) in enumerate(zip(op.operands, plan.operands, strict=True)):
                type_ = local_type(placed, value.type)
                stand_in = ir.Operation.create("builtin.unrealized_conversion_cast", [type_], [])
                copy.operands[number] = stand_in.results[0]
        try:
            self._localization.carry_out(replace(plan, op=copy))
        except NotOnBlocksError as error:
            return error.why
        return None


def _key(plan: OpPlan) -> Hashable:
    op = plan.op
    types = tuple(value.type for value in (*op.operands, *op.results))
    attributes = frozenset((name, op.attributes[name]) for name in op.attributes)
    placed = tuple(one and (one.sharding, one.mesh) for one in (*plan.operands, *plan.results))
    return op.name, types, attributes, placed, reduction_kind(op) if len(op.regions) else None
