# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one contraction, in any layout and type, and their results by NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from runtime.in_process import run

DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
}
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
SIZES = dict(zip("bhmnkl", (3, 2, 24, 28, 40, 5), strict=True))
BITS = {"f32": 1e-5, "f64": 1e-12, "complex<f32>": 1e-5, "complex<f64>": 1e-12, "bf16": 1e-2, "f16": 2e-3}


def tensor(letters: str, element_type: str) -> str:
    return f"tensor<{''.join(f'{SIZES[one]}x' for one in letters)}{element_type}>"


def contract(equation: str, input_type: str, type_: str) -> str:
    """Returns a program that adds a contraction to an argument."""
    inputs, result = equation.split("->")
    operands = [*inputs.split(","), result]
    loops = sorted({*equation} & {*SIZES})
    maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(one)})>" for one in operands)
    a, b, c = (tensor(one, t) for one, t in zip(operands, (input_type, input_type, type_), strict=True))
    return f"""
      func.func @main(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
        %0 = linalg.contract indexing_maps = [{maps}] ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
        return %0 : {c}
      }}"""


def drawn(letters: str, element_type: str, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    shape = [SIZES[one] for one in letters]
    if element_type in INTEGERS:
        dtype = INTEGERS[element_type]
        bounds = np.iinfo(dtype)
        return draw.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
    values = draw.standard_normal(shape)
    if "complex" in element_type:
        values = values + 1j * draw.standard_normal(shape)
    return values.astype(DTYPES[element_type])


def check(text: str, equation: str, input_type: str, type_: str) -> None:
    inputs, result = equation.split("->")
    arrays = [drawn(one, input_type, seed) for seed, one in enumerate(inputs.split(","))]
    initial = drawn(result, type_, 2)
    (got,) = run(text, *arrays, initial)
    if type_ in INTEGERS:
        # Sums wrap around.
        sums = np.einsum(equation, *(one.astype(np.int64) for one in arrays)) + initial
        np.testing.assert_array_equal(got, sums.astype(INTEGERS[type_]))
        return
    exact = np.complex128 if "complex" in type_ else np.float64
    wanted = np.einsum(equation, *(one.astype(exact) for one in arrays)) + initial.astype(exact)
    np.testing.assert_allclose(got.astype(exact), wanted, rtol=BITS[type_], atol=BITS[type_] * np.abs(wanted).max())


EQUATIONS = (
    "mk,kn->mn",
    "km,kn->mn",
    "mk,nk->mn",
    "km,nk->mn",
    "mk,kn->nm",
    "bmk,bkn->bmn",
    "mbk,kbn->bnm",
    "bmhk,bnhk->bhmn",
    "bhmn,bnhk->bmhk",
    "mkl,lkn->mn",
    "mhk,kn->mhn",
    "mkl,klnb->mbn",
    "mk,k->m",
    "k,kn->n",
    "bmk,bmk->b",
    "mkl,mkl->",
    "mk,lk->lm",
    "km,k->m",
    "k,nk->n",
    "bmk,bk->bm",
)
