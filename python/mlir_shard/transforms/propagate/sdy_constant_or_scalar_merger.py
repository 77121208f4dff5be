# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One constant for all that propagation has left alike of those it was split in."""

from __future__ import annotations

from typing import Any

from mlir_shard._native import ExpressionKind as Kind
from mlir_shard.asm.module import native_host
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.constants import constant_ops
from mlir_shard.transforms.constant_expressions import expression_kind
from mlir_shard.transforms.function_shardings import rank_of
from mlir_shard.transforms.operations import first_names

BROADCAST = "stablehlo.broadcast_in_dim"
_MERGED = (Kind.CONSTANT, Kind.OF_CONSTANTS, Kind.ASKED_EACH, Kind.EXPANSION)


@register
class ConstantOrScalarMerger(Pass):
    """Merges constants of a block that agree in type and all attributes, shardings too, and broadcasts of one scalar
    that do. What is in different blocks stays apart.

    With `expressions` all that `sdy-constant-or-scalar-splitter` splits is merged.
    """

    name = "sdy-constant-or-scalar-merger"
    anchor = "func.func"
    summary = "Merges equal constants and broadcasts of scalars that have the same sharding"

    expressions: bool = option(False, "Merge whole constant expressions, tensors without content among them")

    def run(self, op: Any) -> None:
        names = first_names(op) if self.expressions else [*constant_ops(), BROADCAST]
        native_host().merge_equal(op.operation._CAPIPtr, names, _of_expressions if self.expressions else _of_constants)


def _of_constants(capsule: Any) -> list[int] | None:
    op = ir.Operation._CAPICreate(capsule)
    return [] if op.name != BROADCAST or rank_of(op.operands[0].type) == 0 else None


def _of_expressions(capsule: Any) -> list[int] | None:
    """The operands that have to be constant for the op to be an expression: all but scalars, which are shared."""
    op = ir.Operation._CAPICreate(capsule)
    if len(op.results) != 1 or expression_kind(op) not in _MERGED:
        return None
    is_constant_op = op.name in constant_ops()
    if rank_of(op.results[0].type) == 0 and not is_constant_op:
        return None
    return [index for index, operand in enumerate(op.operands) if rank_of(operand.type) > 0]
