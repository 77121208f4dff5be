# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of descriptors of arguments and results of compiled functions, which Python functions read and write here."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from mlir_shard.runtime import RunError
from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.runtime.launch.call_frame import CallFrame

Words = ctypes.Array[ctypes.c_int64]


def function(counts: Sequence[int], body: Callable[..., None]) -> Callable[[int], None]:
    """Returns a function with the C interface, whose structures have these numbers of words."""

    def call(addresses: int) -> None:
        pointers = (ctypes.c_void_p * len(counts)).from_address(addresses)
        structures = [ctypes.c_void_p.from_address(one or 0).value or 0 for one in pointers]
        body(*((ctypes.c_int64 * count).from_address(one) for count, one in zip(counts, structures, strict=True)))

    return call


def returned(array: Array, layout: Sequence[int], spec: TensorSpec, freed: list[int | None]) -> list[Array]:
    """Returns the results of a program without arguments that has allocated this memory."""
    frame = CallFrame([], [spec], freed.append)

    def body(words: Words) -> None:
        words[0] = words[1] = array.ctypes.data
        words[2:] = layout

    frame(function([3 + 2 * len(spec.shape)], body), [])
    return frame.results([])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (2, 0)])
def test_a_result_in_the_memory_of_an_argument(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    frame = CallFrame([TensorSpec(shape, "i32")], [TensorSpec(shape, "i32")], lambda _: pytest.fail("it is not ours"))
    words = 3 + 2 * len(shape)

    def body(result: Words, argument: Words) -> None:
        result[:] = argument[:]

    for _ in range(2):
        frame(function([words, words], body), [array])
        (found,) = frame.results([array])
        np.testing.assert_array_equal(found, array)
        assert np.shares_memory(found, array) == bool(array.size)


def test_a_strided_view_with_offset_is_read_by_its_strides() -> None:
    array = np.arange(24, dtype=np.float64).reshape(4, 6)
    (found,) = returned(array, [7, 2, 3, 6, 2], TensorSpec((2, 3), "f64"), [])
    np.testing.assert_array_equal(found, array[1:3, 1::2])


@pytest.mark.parametrize("layout", [[0, 2, 3, 3, 1], [0, 2, 3, 1, 2]])
def test_memory_is_freed_with_its_last_array(layout: list[int]) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    freed: list[int | None] = []
    (found,) = returned(array, layout, TensorSpec((2, 3), "f32"), freed)
    row = found[1]
    del found
    assert not freed
    # The memory is freed immediately, without a garbage collection.
    gc.disable()
    try:
        del row
        assert freed == [array.ctypes.data]
    finally:
        gc.enable()


def test_an_argument_lives_as_long_as_a_result_in_its_memory() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    alive = weakref.ref(array)
    frame = CallFrame([TensorSpec((2, 3), "f32")], [TensorSpec((2, 3), "f32")], lambda _: None)

    def body(result: Words, argument: Words) -> None:
        result[:] = argument[:]

    frame(function([7, 7], body), [array])
    (found,) = frame.results([array])
    del array
    assert alive() is not None
    np.testing.assert_array_equal(found[1], [3, 4, 5])
    del found
    assert alive() is None


def test_two_results_and_arguments_are_told_apart() -> None:
    spec = TensorSpec((2,), "i64")
    one, two = np.array([1, 2]), np.array([3, 4])
    frame = CallFrame([spec, spec], [spec, spec], lambda _: None)

    def body(results: Words, first: Words, second: Words) -> None:
        results[:5], results[5:] = second[:], first[:]

    frame(function([10, 5, 5], body), [one, two])
    found = frame.results([one, two])
    np.testing.assert_array_equal(found, [[3, 4], [1, 2]])


def test_another_shape_than_the_type_is_refused() -> None:
    array = np.zeros((2, 3), np.float32)
    with pytest.raises(RunError, match=r"returned a tensor of shape 2x3, but its type is tensor<3x2xf32>"):
        returned(array, [0, 2, 3, 3, 1], TensorSpec((3, 2), "f32"), [])
