# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One constant for all that propagation has left alike of those it was split in."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.function_shardings import rank_of
from mlir_shard.transforms.operations import numbers_named

BROADCAST = "stablehlo.broadcast_in_dim"
# Operations that hold the value of their result in an attribute; the bindings cannot be asked for MLIR's trait.
CONSTANTS = (
    "arith.constant",
    "complex.constant",
    "func.constant",
    "index.bool.constant",
    "index.constant",
    "sdy.constant",
    "shape.const_shape",
    "shape.const_size",
    "stablehlo.constant",
    "tosa.const",
    "tosa.const_shape",
)


@register
class ConstantOrScalarMerger(Pass):
    """Merges constants of a block that agree in type and all attributes, shardings too, and broadcasts of one scalar
    that do. What is in different blocks stays apart."""

    name = "sdy-constant-or-scalar-merger"
    anchor = "func.func"
    summary = "Merges equal constants and broadcasts of scalars that have the same sharding"

    def run(self, op: Any) -> None:
        arrays = ModuleArrays(op)
        numbers = numbers_named(arrays, BROADCAST, *CONSTANTS)
        counts = Counter(arrays.signatures[number] for number in numbers)
        repeated = [number for number in numbers if counts[arrays.signatures[number]] > 1]
        first: dict[tuple[int, Any, Any], Any] = {}
        # All handles come before the first is erased.
        for number, one in [(number, arrays.operation(number)) for number in repeated]:
            scalar = one.operands[0] if one.name == BROADCAST else None
            if scalar is not None and rank_of(scalar.type) > 0:
                continue
            kept = first.setdefault((arrays.signatures[number], one.block, scalar), one)
            if kept is not one:
                one.results[0].replace_all_uses_with(kept.results[0])
                one.erase()
