# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs StableHLO operations on extreme values, by LLVM and by XLA, and compares the results. From the folder `test`,

    python -m random_programs.extreme_values [--elements f32,i8]

prints the operations whose results differ. Values are NaN, infinities, zeros of both signs, the least and greatest
numbers, numbers halfway between integers, shifts by more than the width, divisors of zero, and indices out of range.
StableHLO leaves some of the results to the implementation; they have to be XLA's all the same. Subnormal numbers are
left out, because XLA flushes them to zero on CPUs. Exits with 1 if results differ.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.program import Port, Program
from random_programs.execution import RIGHT
from random_programs.whole_programs import outcome, reference

FLOATS = ("f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2")
SIGNED, UNSIGNED = ("i64", "i32", "i16", "i8", "i4"), ("ui64", "ui32", "ui16", "ui8")
BOOLEAN = "i1"
COMPLEX = ("complex<f32>", "complex<f64>")
ELEMENTS = (*FLOATS, *SIGNED, *UNSIGNED, BOOLEAN, *COMPLEX)
# Relative to the magnitude of each element, unlike in `execution`, and at least a unit in the last place.
_TOLERANCES = {"f64": 1e-12, "f32": 3e-6, "f16": 2e-3, "bf16": 1.6e-2, "complex<f32>": 1e-5, "complex<f64>": 1e-12}
_OF_FLOATS = (
    *("abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one"),
    *("logistic", "negate", "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
)
_OF_TWO_FLOATS = ("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract")
_OF_INTEGERS = ("count_leading_zeros", "negate", "not", "popcnt")
_OF_TWO_BITS = ("and", "maximum", "minimum", "multiply", "or", "xor", "add")
_OF_TWO_INTEGERS = (
    *(*_OF_TWO_BITS, "divide", "power", "remainder", "subtract"),
    *("shift_left", "shift_right_arithmetic", "shift_right_logical"),
)
# Not the functions with a branch cut or a pole, near which the engines round differently.
_OF_COMPLEX = ("cosine", "exponential", "log", "negate", "sign", "sine", "tanh")
_OF_TWO_COMPLEX = ("add", "divide", "multiply", "subtract")
_DIRECTIONS = ("EQ", "GE", "GT", "LE", "LT", "NE")
_DIRECTION = "comparison_direction = #stablehlo<comparison_direction {}>"
_KIND = "compare_type = #stablehlo<comparison_type {}>"
_RESULT = re.compile(r"^result (\d+)")
# XLA counts the bits of a sign that it has extended.
_NOT_COMPARED = {("popcnt", "i4")}


def values(element: str) -> Array:
    """Returns the extreme values of an element type."""
    dtype = arrays.numpy_dtype(element)
    if element == BOOLEAN:
        return np.array([False, True])
    with np.errstate(over="ignore", invalid="ignore"):
        if element in COMPLEX:
            parts = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e3, -1e-3])
            return np.asarray(parts[:, None] + 1j * parts, dtype).reshape(-1)
        if element in FLOATS:
            of = ml_dtypes.finfo(dtype)
            limits = [float(of.max), -float(of.max), float(of.smallest_normal), np.inf, -np.inf, np.nan]
            halves = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.49999997, -0.75, 3, 1e-3, 3.1415927]
            powers = [88, -88, 127, 128, 255, 256, -129, 2.0**31, 2.0**32, -(2.0**63), 2.0**63, 1e10]
            return np.array([*halves, *powers, *limits]).astype(dtype)
    limits_of = ml_dtypes.iinfo(dtype)
    least, most, width = int(limits_of.min), int(limits_of.max), int(limits_of.bits)
    wanted = [0, 1, 2, 3, 5, 7, 31, 32, 63, 64, 100, -1, -2, -3, -7, width - 1, width, width + 1]
    limits_and_near = [least, least + 1, most // 2 + 1, most - 1, most]
    return np.array(sorted({one for one in (*wanted, *limits_and_near) if least <= one <= most}), np.object_).astype(
        dtype
    )


def pairs(element: str) -> tuple[Array, Array]:
    """Returns all pairs of extreme values, or of some for complex numbers."""
    one = values(element)[:: 5 if element in COMPLEX else 1]
    return np.repeat(one, len(one)), np.tile(one, len(one))


@dataclass(frozen=True, slots=True)
class _Line:
    """An operation on `%a` and `%b`, the pairs of extreme values, with its type and the types of its results."""

    name: str
    text: str
    results: tuple[str, ...]


def _lines(element: str) -> list[_Line]:
    """Returns the operations on the pairs of an element type."""
    count = len(pairs(element)[0])

    def type_of(other: str) -> str:
        return f"tensor<{count}x{other}>"

    own = type_of(element)

    def line(name: str, operands: int = 2, result: str = element, properties: str = "", label: str = "") -> _Line:
        given, types = ", ".join(("%a", "%b", "%a")[:operands]), ", ".join([own] * operands)
        given += f") <{{{properties}}}>" if properties else ")"
        text = f'"stablehlo.{name}"({given} : ({types}) -> {type_of(result)}'
        return _Line(label or name, text, (type_of(result),))

    def compared(kind: str) -> list[_Line]:
        return [
            line("compare", 2, BOOLEAN, f"{_DIRECTION.format(direction)}, {_KIND.format(kind)}", f"{direction} {kind}")
            for direction in (("EQ", "NE") if element in COMPLEX else _DIRECTIONS)
        ]

    if element in COMPLEX:
        part = element[len("complex<") : -1]
        return [
            *(line(name, 1) for name in _OF_COMPLEX),
            *(line(name, 1, part) for name in ("abs", "imag", "real")),
            *map(line, _OF_TWO_COMPLEX),
            *compared("FLOAT"),
        ]
    if element == BOOLEAN:
        return [line("not", 1), *map(line, _OF_TWO_BITS), *compared("UNSIGNED"), *_sorted(element, count, "UNSIGNED")]
    converted = [line("convert", 1, other, label=f"convert to {other}") for other in (*FLOATS, *SIGNED, *UNSIGNED)]
    if element in FLOATS:
        return [
            *(line(name, 1) for name in _OF_FLOATS),
            line("is_finite", 1, BOOLEAN),
            line("reduce_precision", 1, properties="exponent_bits = 5 : i32, mantissa_bits = 2 : i32"),
            *map(line, _OF_TWO_FLOATS),
            line("clamp", 3),
            *compared("FLOAT"),
            *compared("TOTALORDER"),
            *converted,
            *_sorted(element, count, "TOTALORDER"),
        ]
    is_signed = element in SIGNED
    kind = "SIGNED" if is_signed else "UNSIGNED"
    return [
        *(line(name, 1) for name in (*_OF_INTEGERS, *(("abs", "sign") if is_signed else ()))),
        *map(line, _OF_TWO_INTEGERS),
        line("clamp", 3),
        *compared(kind),
        *converted,
        *_sorted(element, count, kind),
        *_indexed(element, count),
    ]


def _sorted(element: str, count: int, kind: str) -> list[_Line]:
    """Returns a sort of the left elements, with the right ones, which shows that it is stable."""
    scalar, own = f"tensor<{element}>", f"tensor<{count}x{element}>"
    text = (
        f'"stablehlo.sort"(%a, %b) <{{dimension = 0 : i64, is_stable = true}}> ({{\n'
        f"  ^bb0(%l: {scalar}, %r: {scalar}, %x: {scalar}, %y: {scalar}):\n"
        f'    %c = "stablehlo.compare"(%l, %r) <{{{_DIRECTION.format("GT")}, {_KIND.format(kind)}}}> : '
        f"({scalar}, {scalar}) -> tensor<i1>\n    stablehlo.return %c : tensor<i1>\n"
        f"  }}) : ({own}, {own}) -> ({own}, {own})"
    )
    return [_Line("sort", text, (own, own))]


def _indexed(element: str, count: int) -> list[_Line]:
    """Returns operations on %table and %updates whose indices are the pairs; a scatter skips those out of range."""
    if element in ("i4", "ui64"):
        # XLA refuses indices of 4 bits. The greater half of ui64 is negative for the lowering to LLVM.
        return []
    own, table, starts = f"tensor<{count}x{element}>", "tensor<5x6xf32>", f"tensor<{count}x2x{element}>"
    slices, updates = f"tensor<{count}x2x3xf32>", f"tensor<{count}x2x3xi32>"
    numbers = "index_vector_dim = 1>"
    gather = (
        f'"stablehlo.gather"(%table, %pairs) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], '
        f"start_index_map = [0, 1], {numbers}, slice_sizes = array<i64: 2, 3>}}> : ({table}, {starts}) -> {slices}"
    )
    scatter = (
        f'"stablehlo.scatter"(%sums, %pairs, %updates) <{{scatter_dimension_numbers = #stablehlo.scatter<'
        f"update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], {numbers}}}> ({{\n"
        "  ^bb0(%l: tensor<i32>, %r: tensor<i32>):\n    %s = stablehlo.add %l, %r : tensor<i32>\n"
        f"    stablehlo.return %s : tensor<i32>\n  }}) : (tensor<5x6xi32>, {starts}, {updates}) -> tensor<5x6xi32>"
    )
    pairs_ = (
        f"stablehlo.concatenate %columns_a, %columns_b, dim = 1 : (tensor<{count}x1x{element}>, "
        f"tensor<{count}x1x{element}>) -> {starts}"
    )
    columns = [
        _Line("", f"stablehlo.reshape %{one} : ({own}) -> tensor<{count}x1x{element}>", (f"%columns_{one}",))
        for one in "ab"
    ]
    constants = [
        _Line("", f"stablehlo.iota dim = 1 : {table}", ("%table",)),
        _Line("", "stablehlo.constant dense<0> : tensor<5x6xi32>", ("%sums",)),
        _Line("", f"stablehlo.iota dim = 0 : {updates}", ("%updates",)),
    ]
    return [
        *(*columns, _Line("", pairs_, ("%pairs",)), *constants),
        _Line("gather", gather, (slices,)),
        _Line("scatter", scatter, ("tensor<5x6xi32>",)),
    ]


def program(element: str) -> tuple[str, list[str]]:
    """Returns the text of the program with all operations of an element type, and the operation of each result."""
    body, returned, types, names = [], [], [], []
    for number, line in enumerate(_lines(element)):
        if (line.name, element) in _NOT_COMPARED:
            continue
        if not line.name:
            body.append(f"  {line.results[0]} = {line.text}")
            continue
        several = len(line.results) > 1
        body.append(f"  %r{number}{f':{len(line.results)}' if several else ''} = {line.text}")
        returned += [f"%r{number}#{index}" if several else f"%r{number}" for index in range(len(line.results))]
        types += line.results
        names += [line.name] * len(line.results)
    own = f"tensor<{len(pairs(element)[0])}x{element}>"
    lines = [f"func.func @main(%a: {own}, %b: {own}) -> ({', '.join(types)}) {{", *body]
    return "\n".join([*lines, f"  return {', '.join(returned)} : {', '.join(types)}", "}"]), names


def inputs(lowered: Program) -> list[Array]:
    """Returns the pairs of extreme values for the program of an element type."""
    return list(pairs(lowered.arguments[0].spec.element_type))


def difference(got: Array, wanted: Array, port: Port) -> str:
    """Describes the wrong elements of a result; empty if it is right. NaN equals NaN, but -0 differs from 0."""
    element = port.spec.element_type
    wrong = got != wanted
    if element in COMPLEX:
        sides = [(got.real, wanted.real), (got.imag, wanted.imag)]
        wrong = np.logical_or(*(_are_wrong(one, other, element, np.abs(wanted)) for one, other in sides))
    elif arrays.is_float(element):
        wrong = _are_wrong(got, wanted, element, np.abs(wanted.astype(np.float64)))
    if not wrong.any():
        return ""
    shown = [f"{got[tuple(at)]} at {tuple(map(int, at))} where it is {wanted[tuple(at)]}" for at in np.argwhere(wrong)]
    return f"{port.name}: {len(shown)} of {got.size} elements differ: {', '.join(shown[:4])}"


def _are_wrong(got: Array, wanted: Array, element: str, scale: Array) -> Array:
    of = ml_dtypes.finfo(got.dtype)
    tolerance, least = _TOLERANCES.get(element, float(of.eps)), float(of.smallest_normal)
    one, other = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(one - other) <= tolerance * np.where(np.isfinite(scale), scale, 0)
    are_tiny = (np.abs(one) <= least) & (np.abs(other) <= least)
    has_sign = (np.signbit(one) == np.signbit(other)) | (element in COMPLEX)
    same = (one == other) & has_sign | np.isnan(one) & np.isnan(other)
    return ~(same | near & (one != other) | are_tiny & (one != other))


def main() -> int:
    """Compares the programs of element types."""
    parser = argparse.ArgumentParser(
        prog="python -m random_programs.extreme_values",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--elements", default=",".join(ELEMENTS), help="the element types, separated by commas")
    arguments = parser.parse_args()
    wrong = 0
    with reference() as xla:
        for element in arguments.elements.split(","):
            text, names = program(element)
            found = outcome(text, inputs, xla, difference)
            wrong += found.kind != RIGHT
            print(f"{element}, {len(set(names))} operations: {found.kind}")
            for one in found.detail.split("; ") if found.detail else ():
                print("  " + _RESULT.sub(lambda result, of=names: of[int(result[1])], one))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
