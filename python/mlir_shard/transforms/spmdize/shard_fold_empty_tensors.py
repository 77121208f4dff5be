# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nothing is computed or moved for tensors that have no elements."""

from __future__ import annotations

from typing import Any

from mlir_shard.ir import empty_tensors
from mlir_shard.passes.registry import Pass, register


@register
class FoldEmptyTensors(Pass):
    """Puts constants in the place of StableHLO operations, and of moves of sdy, whose results have no elements.

    A concatenation does without what is empty, and a reduction of nothing is its initial values. Collectives and slices
    of what is empty, which StableHLO and the lowering to LLVM partly refuse, do not come about.
    """

    name = "shard-fold-empty-tensors"
    anchor = "builtin.module"
    summary = "Replaces what is computed or moved of tensors without elements"

    def run(self, op: Any) -> bool:
        return empty_tensors.fold(op)
