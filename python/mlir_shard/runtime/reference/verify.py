# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the results of a sharded program with those of the unsharded program, at the precision of their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlir_shard.ir.editing import functions, ops_in
from mlir_shard.ir.values import is_token
from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array

# Some hundred to some thousand units in the last place of each type, for the rounding of long sums and exponentials.
# An attention layer from JAX differs from itself by 1.2e-5 in f32, and by 6e-16 in f64.
TOLERANCES = {"f64": 1e-12, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2} | dict.fromkeys(arrays.FLOAT8, 0.3)
TOLERANCES |= {f"complex<{part}>": TOLERANCES[part] for part in ("f32", "f64")}


# The tolerance for another order of the same operations, as a multiple of the average rounding error of a result's
# elements relative to f64.
_TIMES_ROUNDING = 16.0


@dataclass(frozen=True, slots=True)
class Difference:
    """An element out of tolerance: its index, its value and the expected value."""

    index: tuple[int, ...]
    actual: Any
    expected: Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """The greatest absolute and relative errors, the number of elements out of tolerance, and the worst of them.

    by_rounding: whether elements count as equal only because rounding explains the difference, see `within_rounding`.
    """

    absolute: float
    relative: float
    count: int = 0
    worst: Difference | None = None
    by_rounding: bool = False

    @property
    def is_equal(self) -> bool:
        """Whether all elements are within the tolerance."""
        return not self.count

    def described(self, name: str, size: int) -> str:
        """Returns a sentence about the worst element of the result `name` of `size` elements."""
        assert self.worst is not None
        at = f" at [{', '.join(map(str, self.worst.index))}]" if self.worst.index else ""
        values = f"{self.worst.actual} in place of {self.worst.expected}"
        return f"{name} is {values}{at}, and {self.count} of {size} elements differ"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The tolerance of floats: |actual - expected| <= absolute + relative * |expected|, as in NumPy."""

    relative: float
    absolute: float


def compare(
    actual: Array, expected: Array, element_type: str, coarsest: str = "", tolerance: Tolerance | None = None
) -> Comparison:
    """Compares arrays of the same shape and element type. NaN equals NaN, and an infinity equals itself.

    Args:
        coarsest: the coarsest float type in the computation of floats, if it is coarser than theirs.
        tolerance: the tolerance of floats; by default that of the type, relative to the magnitude of the element or to
            the mean magnitude of the elements, whichever is greater.
    """
    if not arrays.is_float(element_type):
        wrong = np.asarray(actual != expected)
        difference = _greatest_difference(actual[wrong], expected[wrong])
        return _comparison(difference, 1.0 if wrong.any() else 0.0, wrong, wrong, actual, expected)
    error, magnitude = _errors(actual, expected, element_type)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(error == 0, 0.0, error / magnitude)
    if tolerance is None:
        off = relative > max(TOLERANCES[element_type], TOLERANCES.get(coarsest, 0.0))
    else:
        size = np.abs(np.where(np.isfinite(expected), expected, 0.0).astype(_widest(element_type)))
        off = error > tolerance.absolute + tolerance.relative * size
    return _comparison(_greatest(error), _greatest(relative), off, error, actual, expected)


def within_rounding(
    comparison: Comparison,
    actual: Array,
    expected: Array,
    precise: Array,
    element_type: str,
    scale: float,
    coarsest: str = "",
) -> Comparison:
    """Returns the comparison without differences that rounding explains, such as those of a gradient that is zero.

    Args:
        precise: the result in f64; its difference from `expected` is the rounding error.
        scale: the greatest magnitude of an argument or result. Rounding explains only differences that are small
            relative to it.
    """
    tolerance = max(TOLERANCES[element_type], TOLERANCES.get(coarsest, 0.0))
    rounding, _ = _errors(expected, precise, element_type)
    error, magnitude = _errors(actual, precise, element_type)
    finite = rounding[np.isfinite(rounding)]
    usual = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    off = error > min(_TIMES_ROUNDING * usual, tolerance * scale) + tolerance * magnitude
    found = _comparison(comparison.absolute, comparison.relative, off, error, actual, expected)
    return replace(found, by_rounding=found.is_equal)


def _errors(actual: Array, expected: Array, element_type: str) -> tuple[Array, Array]:
    """Returns the absolute error of each element, and the magnitude that its relative error refers to."""
    got, wanted = actual.astype(_widest(element_type)), expected.astype(_widest(element_type))
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.where(same, 0.0, np.abs(got - wanted))
    # Elements that are not finite and differ have an infinite error.
    error = np.where(np.isfinite(got) & np.isfinite(wanted) | same, error, np.inf)
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = float(finite.mean()) if finite.size else 0.0
    return error, np.where(np.isfinite(wanted), np.maximum(np.abs(wanted), scale), 1.0)


def _widest(element_type: str) -> Any:
    return np.complex128 if arrays.is_complex(element_type) else np.float64


def _comparison(
    absolute: float, relative: float, off: Array, error: Array, actual: Array, expected: Array
) -> Comparison:
    if not off.any():
        return Comparison(absolute, relative)
    flat = int(np.argmax(np.where(off, error, -1)))
    index = tuple(map(int, np.unravel_index(flat, off.shape)))
    return Comparison(absolute, relative, int(off.sum()), Difference(index, actual.flat[flat], expected.flat[flat]))


def _greatest_difference(got: Array, wanted: Array) -> float:
    """Returns the greatest difference of integers, without overflow, or of booleans as 0 and 1."""
    return max((float(abs(int(a) - int(b))) for a, b in zip(got.flat, wanted.flat, strict=True)), default=0.0)


def _greatest(values: Array) -> float:
    return float(values.max()) if values.size else 0.0


def coarsest_floats(module: Any, function: Any) -> tuple[str, ...]:
    """Returns the name of the coarsest float type in the computation of each result except tokens; "" without floats.

    An f32 that is computed from numbers in bf16 is only as accurate as they are.
    """
    defined = functions(module)
    blocks = function.regions[0].blocks
    if len(blocks) > 1:
        results = function.attributes["function_type"].value.results
        everywhere = _coarsest(_inside(function, defined, {}, set()))
        return (everywhere,) * sum(not is_token(one) for one in results)
    known: dict[Any, str] = {}
    for op in blocks[0].operations:
        found = _coarsest(_inside(op.operation, defined, known, set()))
        known.update((result, found) for result in op.operation.results)
    return tuple(
        _coarsest([known.get(value, ""), _float(value.type)])
        for value in op.operation.operands
        if not is_token(value.type)
    )


def _inside(root: Any, defined: Mapping[str, Any], known: Mapping[Any, str], called: set[str]) -> set[str]:
    """Returns the float types of the values in an operation and its callees, and of values used from outside."""
    found: set[str] = set()
    for op in ops_in(root):
        found.update(_float(value.type) for value in (*op.results, *op.operands))
        found.update(known.get(value, "") for value in op.operands)
        callee = op.attributes["callee"].value if op.name == "func.call" else ""
        if callee in defined and callee not in called:
            called.add(callee)
            found.update(_inside(defined[callee], defined, {}, called))
    return found


def _coarsest(names: Iterable[str]) -> str:
    return max(names, key=lambda name: TOLERANCES.get(name, 0.0), default="")


def _float(type_: Any) -> str:
    name = str(getattr(type_, "element_type", type_))
    return name if name in TOLERANCES else ""
