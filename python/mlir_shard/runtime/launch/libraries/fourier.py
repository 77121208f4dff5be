# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms (`stablehlo.fft`), computed with SciPy, or with NumPy where SciPy is not installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from mlir_shard.runtime.arrays import Array

TARGET = "fourier"
FORM, RANK = "form", "rank"
# The types of transforms in the order of StableHLO's enumeration, whose numbers are the option `form`.
FORMS = ("FFT", "IFFT", "RFFT", "IRFFT")


def compute(options: Mapping[str, int], operands: Sequence[Array], results: Sequence[Array]) -> None:
    """Computes the result in place: the transform along the last `rank` dimensions."""
    (operand,), (result,), form = operands, results, FORMS[options[FORM]]
    if not operand.size or not result.size:
        result[...] = 0
        return
    dims = range(operand.ndim - options[RANK], operand.ndim)
    # The operand of a transform to real numbers has half of the spectrum; the length is that of the result.
    lengths = [(result if form == "IRFFT" else operand).shape[dim] for dim in dims]
    result[...] = getattr(_library(), f"{form.lower()}n")(operand, s=lengths, axes=tuple(dims))


@cache
def _library() -> Any:
    try:
        from scipy import fft
    except ImportError:
        from numpy import fft
    return fft
