# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The comparison of results with those of the unsharded program, in f64 too if in doubt, or with given arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlir_shard.runtime import arrays
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.execution import Result, run_program
from mlir_shard.runtime.reference import verify
from mlir_shard.runtime.reference.precise import widened_inputs
from mlir_shard.runtime.reference.verify import Comparison, Tolerance
from mlir_shard.tools.run.arguments import RunArguments

if TYPE_CHECKING:
    from mlir_shard.tools.run.report import Progress
    from mlir_shard.tools.run.steps import Prepared


def comparisons(prepared: Prepared, results: Sequence[Result], progress: Progress) -> list[Comparison] | None:
    """Compares each result with the expected one; returns None if nothing is expected."""
    tolerance = _tolerance(prepared.arguments)
    if prepared.expected is not None:
        return [
            verify.compare(result.array, _as_given(one, result), result.port.spec.element_type, "", tolerance)
            for result, one in zip(results, prepared.expected, strict=True)
        ]
    if prepared.compiled.unsharded is None:
        return None
    progress.say("running it without sharding")
    expected = run_program(prepared.compiled.unsharded, prepared.inputs, prepared.backend.alone)
    found = [
        verify.compare(result.array, right.array, result.port.spec.element_type, coarsest, tolerance)
        for result, right, coarsest in zip(results, expected, prepared.compiled.coarsest, strict=True)
    ]
    if tolerance is None and any(
        not one.is_equal and arrays.is_float(result.port.spec.element_type)
        for one, result in zip(found, results, strict=True)
    ):
        return _without_rounding(prepared, results, expected, found, progress)
    return found


def _tolerance(arguments: RunArguments) -> Tolerance | None:
    if arguments.rtol is None and arguments.atol is None:
        return None
    return Tolerance(arguments.rtol or 0.0, arguments.atol or 0.0)


def _as_given(expected: Any, result: Result) -> Any:
    # NumPy's files do not support bfloat16: the elements of such an array are read as two untyped bytes.
    return expected.view(result.array.dtype) if expected.dtype == np.dtype("V2") else expected


def _without_rounding(
    prepared: Prepared,
    results: Sequence[Result],
    expected: Sequence[Result],
    found: list[Comparison],
    progress: Progress,
) -> list[Comparison]:
    """Returns the comparisons without differences that rounding explains; all if the program cannot run in f64."""
    progress.say("running it without sharding in f64")
    program = prepared.compiled.precise()
    if program is None:
        return found
    inputs = widened_inputs(program, prepared.inputs)
    try:
        precise = run_program(program, inputs, prepared.backend.alone)
    except RunError:
        return found
    scale = max((_greatest(one) for one in (*inputs, *(one.array for one in precise))), default=0.0)
    return [
        one
        if one.is_equal or not arrays.is_float(result.port.spec.element_type)
        else verify.within_rounding(
            one, result.array, right.array, exact.array, result.port.spec.element_type, scale, coarsest
        )
        for one, result, right, exact, coarsest in zip(
            found, results, expected, precise, prepared.compiled.coarsest, strict=True
        )
    ]


def _greatest(array: Any) -> float:
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind in "fc" else np.zeros(0)
    return float(finite.max()) if finite.size else 0.0
