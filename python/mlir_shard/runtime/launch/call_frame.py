# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memref descriptors of calls through the C interface, laid out once: calls of small programs take microseconds.

The descriptor of a tensor has two pointers, allocated and aligned, the offset, then sizes and strides in elements.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.runtime.error import RunError

_WORD = 8
# Positions in a descriptor.
_ALIGNED, _OFFSET, _SIZES = 1, 2, 3

Words = Any


class CallFrame:
    """The descriptors of one call at a time.

    Args:
        arguments: the types of the program's local arguments; their arrays must be C-contiguous.
        results: the types of the program's local results.
        free: frees memory that the program has allocated.
    """

    def __init__(
        self, arguments: Sequence[TensorSpec], results: Sequence[TensorSpec], free: Callable[[int | None], object]
    ) -> None:
        descriptors = [_descriptor(one) for one in (*results, *arguments)]
        places = [sum(map(len, descriptors[:index])) for index in range(len(descriptors) + 1)]
        # The results are in one structure.
        structures = [*places[:1][: len(results)], *places[len(results) : -1]]
        size = places[-1]
        self._words: Words = (ctypes.c_int64 * (size + 2 * len(structures)))(*chain.from_iterable(descriptors))
        begin = ctypes.addressof(self._words)
        for index, place in enumerate(structures):
            self._words[size + index] = begin + place * _WORD
            self._words[size + len(structures) + index] = begin + (size + index) * _WORD
        self._addresses = begin + (size + len(structures)) * _WORD
        self._inputs = places[len(results) : -1]
        self._outputs = [_Output(spec, place, free) for spec, place in zip(results, places, strict=False)]

    def __call__(self, function: Callable[[int], object], inputs: Sequence[Array]) -> None:
        """Calls a function, which takes the address of the addresses of pointers to structures."""
        words = self._words
        for place, array in zip(self._inputs, inputs, strict=True):
            words[place] = words[place + _ALIGNED] = array.ctypes.data
        function(self._addresses)

    def results(self, inputs: Sequence[Array]) -> list[Array]:
        """Returns the results of the last call, which had these inputs; results may share memory with them."""
        words, owners = self._words, dict(zip(map(self._words.__getitem__, self._inputs), inputs, strict=True))
        return [one.array(words, owners) for one in self._outputs]


class _Output:
    """A result of a program.

    Args:
        place: the position of its descriptor in the words.
    """

    def __init__(self, spec: TensorSpec, place: int, free: Callable[[int | None], object]) -> None:
        self._spec, self._place, self._free = spec, place, free
        self._dtype = arrays.storage_dtype(spec.element_type)
        self._layout = _descriptor(spec)[_OFFSET:]
        self._end = place + _OFFSET + len(self._layout)
        self._memory_type = _memory_type(prod(spec.shape) * self._dtype.itemsize)

    def array(self, words: Words, owners: dict[int, Any]) -> Array:
        """Returns the array that the descriptor refers to; the array keeps the owner of its memory alive."""
        place, spec = self._place, self._spec
        allocated = words[place]
        owner = owners.get(allocated)
        if owner is None:
            owner = owners[allocated] = _Allocated(allocated, self._free)
        layout = words[place + _OFFSET : self._end]
        if layout != self._layout:
            return _strided(words[place + _ALIGNED], layout, spec, self._dtype, owner)
        if self._memory_type is None:
            return np.empty(spec.shape, self._dtype)
        memory = self._memory_type.from_address(words[place + _ALIGNED])
        memory.owner = owner
        return np.ndarray(spec.shape, self._dtype, memory)


def _descriptor(spec: TensorSpec) -> list[int]:
    """Returns the descriptor of a contiguous tensor, with zeros for its pointers."""
    shape = spec.shape
    return [0, 0, 0, *shape, *(prod(shape[dim + 1 :]) for dim in range(len(shape)))]


def _memory_type(size: int) -> Any:
    """Returns a ctypes type for memory of `size` bytes with a reference to its owner; None for 0 bytes."""
    return type("Memory", (ctypes.c_char * size,), {}) if size else None


def _strided(aligned: int, layout: Sequence[int], spec: TensorSpec, dtype: Any, owner: object) -> Array:
    """Returns an array on memory that is not contiguous."""
    offset, *rest = layout
    sizes, strides = tuple(rest[: len(rest) // 2]), rest[len(rest) // 2 :]
    if sizes != spec.shape:
        raise RunError(f"the program returned a tensor of shape {arrays.shape_text(sizes)}, but its type is {spec}")
    if 0 in sizes:
        return np.empty(sizes, dtype)
    extent = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    memory = _memory_type(extent * dtype.itemsize).from_address(aligned + offset * dtype.itemsize)
    memory.owner = owner
    return np.ndarray(sizes, dtype, memory, 0, tuple(stride * dtype.itemsize for stride in strides))


class _Allocated:
    """Memory that a program has allocated."""

    def __init__(self, address: int, free: Callable[[int | None], object]) -> None:
        self._address, self._free = address, free

    def __del__(self) -> None:
        self._free(self._address)
