# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One constant for all that propagation has left alike of those it was split in."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.constants import is_constant_op
from mlir_shard.transforms.function_shardings import rank_of

BROADCAST = "stablehlo.broadcast_in_dim"


@register
class ConstantOrScalarMerger(Pass):
    """Merges constants of a block that agree in type and all attributes, shardings too, and broadcasts of one scalar
    that do. What is in different blocks stays apart."""

    name = "sdy-constant-or-scalar-merger"
    anchor = "func.func"
    summary = "Merges equal constants and broadcasts of scalars that have the same sharding"

    def run(self, op: Any) -> None:
        arrays = ModuleArrays(op)
        mergeable = [_is_mergeable(one) for one in arrays.representatives()]
        counts = Counter(signature for signature in arrays.signatures if mergeable[signature])
        numbers = [op for op, signature in enumerate(arrays.signatures) if counts[signature] > 1]
        blocks = _Blocks(arrays, op)
        first: dict[tuple[int, Any, tuple[int, ...]], int] = {}
        kept_values: dict[int, int] = {}
        merged = []
        for number in numbers:
            operands = tuple(kept_values.get(value, value) for value in arrays.operands(number))
            kept = first.setdefault((arrays.signatures[number], blocks.of(number), operands), number)
            if kept != number:
                kept_values[arrays.results(number)[0]] = arrays.results(kept)[0]
                merged.append((number, kept))
        # All handles come before the first op is erased.
        for one, kept_op in [(arrays.operation(number), arrays.operation(kept)) for number, kept in merged]:
            one.results[0].replace_all_uses_with(kept_op.results[0])
            one.erase()


def _is_mergeable(op: Any) -> bool:
    return is_constant_op(op.name) or (op.name == BROADCAST and rank_of(op.operands[0].type) == 0)


class _Blocks:
    """Which operations are in one block, by keys that are equal for those of one."""

    def __init__(self, arrays: ModuleArrays, root: Any) -> None:
        self._arrays = arrays
        self._root = root
        self._has_one: dict[int, bool] = {}

    def of(self, number: int) -> Any:
        """The operation around where it has a single block, else the block."""
        parent = self._arrays.parents[number]
        if parent not in self._has_one:
            around = self._root if parent < 0 else self._arrays.operation(parent)
            self._has_one[parent] = sum(len(region.blocks) for region in around.regions) == 1
        return parent if self._has_one[parent] else self._arrays.operation(number).block
