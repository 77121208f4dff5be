# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of a program as NumPy arrays: element types, random inputs and shards of a tensor.

Element types have their names in MLIR's syntax. Between processes and in compiled code, arrays have the storage dtype:
that of the elements, or unsigned integers for element types that NumPy supports only with the package ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mlir_shard.runtime.error import RunError
from mlir_shard.sharding.layout import Box

Array = npt.NDArray[Any]

_OF_ML_DTYPES = {
    "bf16": "bfloat16",
    "f8E3M4": "float8_e3m4",
    "f8E4M3": "float8_e4m3",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    **{f"{sign}{bits}": f"int{bits}" for sign in ("i", "si") for bits in (2, 4)},
    **{f"ui{bits}": f"uint{bits}" for bits in (2, 4)},
}
FLOAT8 = tuple(name for name in _OF_ML_DTYPES if name.startswith("f8"))
"""The 8-bit float types."""
_STORAGE: dict[str, Any] = dict.fromkeys(_OF_ML_DTYPES, np.uint8) | {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "complex<f64>": np.complex128,
    "complex<f32>": np.complex64,
    "bf16": np.uint16,
    "i1": np.bool_,
    "index": np.int64,
    **{f"{sign}{bits}": f"int{bits}" for sign in ("i", "si") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """The type of a tensor: its shape and the name of its element type. A scalar has rank 0 and no shape in text."""

    shape: tuple[int, ...]
    element_type: str
    is_scalar: bool = False

    def __str__(self) -> str:
        if self.is_scalar:
            return self.element_type
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element_type}>"


def is_supported(element_type: str) -> bool:
    """Returns whether tensors of this element type can be passed to a compiled program."""
    return element_type in _STORAGE


def storage_dtype(element_type: str) -> np.dtype[Any]:
    """Returns the dtype of arrays in compiled code."""
    return np.dtype(_STORAGE[element_type])


def numpy_dtype(element_type: str) -> np.dtype[Any]:
    """Returns the dtype of the user's arrays; raises RunError if it requires ml_dtypes, which is not installed."""
    if element_type not in _OF_ML_DTYPES:
        return storage_dtype(element_type)
    try:
        import ml_dtypes
    except ModuleNotFoundError as error:
        raise RunError(f"{element_type} arrays need the package ml_dtypes: pip install ml_dtypes") from error
    return np.dtype(getattr(ml_dtypes, _OF_ML_DTYPES[element_type]))


def is_float(element_type: str) -> bool:
    """Returns whether elements are floats or complex: their results depend on the order of operations."""
    return element_type.startswith(("f", "bf")) or is_complex(element_type)


def is_complex(element_type: str) -> bool:
    """Returns whether elements are complex numbers: a real and an imaginary part, two consecutive floats."""
    return element_type.startswith("complex")


def checked(name: str, array: Array, spec: TensorSpec) -> Array:
    """Returns `array` in storage form, C-contiguous; raises RunError if its shape or dtype differs from `spec`."""
    expected = numpy_dtype(spec.element_type)
    # NumPy's file format does not support the types of ml_dtypes: it loads such an array as raw bytes.
    if spec.element_type in _OF_ML_DTYPES and array.dtype == np.dtype(f"V{expected.itemsize}"):
        array = array.view(expected)
    if array.shape != spec.shape:
        raise RunError(f"{name} of the program is {spec}, but the given array has shape {shape_text(array.shape)}")
    if array.dtype != expected:
        raise RunError(f"{name} of the program is {spec}, but the given array has dtype {array.dtype}, not {expected}")
    return np.ascontiguousarray(array).reshape(spec.shape).view(storage_dtype(spec.element_type))


def presented(array: Array, element_type: str) -> Array:
    """Returns an array in storage form with the dtype of the user's arrays."""
    return array.view(numpy_dtype(element_type))


def stored(array: Array) -> Array:
    """Returns a user's array in storage form, C-contiguous."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.name in _OF_ML_DTYPES.values() else array


def random(spec: TensorSpec, generator: np.random.Generator, positive: bool = False) -> Array:
    """Returns a random array.

    Floats, and both parts of complex numbers, have a standard normal distribution. If `positive` is set, floats are
    uniform between 0.5 and 1.5. Integers are from 0 to 9, those of 4 bits from 0 to 7, those of 1 or 2 bits 0 or 1.
    """
    dtype = numpy_dtype(spec.element_type)
    if is_complex(spec.element_type):
        parts = np.asarray(generator.standard_normal((*spec.shape, 2)))
        return parts.view(np.complex128).reshape(spec.shape).astype(dtype)
    if is_float(spec.element_type):
        draw = partial(generator.uniform, 0.5, 1.5) if positive else generator.standard_normal
        return np.asarray(draw(size=spec.shape)).astype(dtype)
    if spec.element_type == "i1":
        return np.asarray(generator.integers(0, 2, spec.shape)).astype(dtype)
    most = {"2": 2, "4": 8}.get(spec.element_type.lstrip("sui"), 10)
    return np.asarray(generator.integers(0, most, spec.shape)).astype(dtype)


def cut(array: Array, box: Box | None, local_shape: Sequence[int]) -> Array:
    """Returns the shard of `array` at `box`, padded with zeros to `local_shape`.

    Without a box the shard is all zeros.
    """
    block = np.zeros(tuple(local_shape), array.dtype)
    if box is None:
        return block
    block[box.local_slices] = array[box.slices]
    return block


def shape_text(shape: tuple[int, ...]) -> str:
    """Returns a shape as text for messages."""
    return "x".join(map(str, shape)) if shape else "()"
