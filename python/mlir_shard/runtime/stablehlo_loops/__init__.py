# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of StableHLO that the host does not lower, as loops over elements and simpler operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard.host import ir
from mlir_shard.runtime.stablehlo_loops import (
    control_flow,
    factorizations,
    fourier,
    indexed,
    normalization,
    reductions,
    sorting,
    windows,
)

# Of an operation, before which things are built, what its results are then. Its regions may be used up.
_Rewrite = Callable[[Any], list[Any]]

_REWRITES: dict[str, _Rewrite] = {
    "stablehlo.batch_norm_grad": normalization.gradient,
    "stablehlo.batch_norm_inference": normalization.inference,
    "stablehlo.batch_norm_training": normalization.training,
    "stablehlo.case": control_flow.case,
    "stablehlo.cholesky": factorizations.cholesky,
    "stablehlo.fft": fourier.fft,
    "stablehlo.gather": indexed.gather,
    "stablehlo.if": control_flow.if_,
    "stablehlo.optimization_barrier": control_flow.barrier,
    "stablehlo.reduce": reductions.along_nothing,
    "stablehlo.scatter": indexed.scatter,
    "stablehlo.select_and_scatter": windows.select_and_scatter,
    "stablehlo.sort": sorting.sort,
    "stablehlo.triangular_solve": factorizations.triangular_solve,
    "stablehlo.while": control_flow.while_,
}


# Where the host lowers an operation in some forms: those that it does not.
_FORMS: dict[str, Callable[[Any], bool]] = {
    "stablehlo.gather": indexed.has_batch_dimensions,
    "stablehlo.reduce": reductions.is_along_nothing,
}


def legalize(module: Any) -> None:
    """Rewrites all of them in a module, in place."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name in _REWRITES and (op.name not in _FORMS or _FORMS[op.name](op)):
            found.append(op)
        return ir.WalkResult.ADVANCE

    # What regions hold before what holds them: regions are moved.
    module.operation.walk(visit, ir.WalkOrder.POST_ORDER)
    for op in found:
        with ir.InsertionPoint(op), op.location:
            values = _REWRITES[op.name](op)
        for old, new in zip(op.results, values, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
