# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of dividing global arrays into the ranks' parts and of reassembling them, with an engine without ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.execution import check_inputs, random_inputs, run_program
from mlir_shard.runtime.program import Lowered, Port, Program
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.layout import device_box

MESH = Mesh([("x", 2), ("y", 3)])


def port(name: str, spec: TensorSpec, axes: Sequence[Sequence[str]]) -> Port:
    sharding = TensorSharding.closed_with([[AxisRef(axis) for axis in dim] for dim in axes], "mesh")
    local = tuple(size or 0 for size in sharding.local_shape(spec.shape, MESH))
    boxes = tuple(device_box(sharding, MESH, spec.shape, device) for device in MESH.devices)
    return Port(name, spec, TensorSpec(local, spec.element_type), boxes)


@dataclass
class Local:
    """An engine in which every rank applies a function to its rank and its shard of the only argument."""

    function: Callable[[int, Array], Array]

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        (argument,) = program.arguments
        blocks = [arrays.cut(inputs[0], box, argument.local.shape) for box in argument.boxes]
        return [[self.function(rank, block)] for rank, block in enumerate(blocks)]


def identity_program(spec: TensorSpec, axes: Sequence[Sequence[str]]) -> Program:
    return Program(Lowered(""), "main", (port("argument 0", spec, axes),), (port("result 0", spec, axes),), 6)


@pytest.mark.parametrize("shape", [(6, 6), (7, 5), (2, 2), (1, 4), (0, 3)])
@pytest.mark.parametrize("axes", [((), ()), (("x",), ("y",)), (("y", "x"), ()), ((), ("x", "y")), (("y",), ())])
def test_what_is_cut_is_put_together(shape: tuple[int, int], axes: Sequence[Sequence[str]]) -> None:
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    program = identity_program(TensorSpec(shape, "i32"), axes)
    (result,) = run_program(program, [array], Local(lambda rank, block: block))
    np.testing.assert_array_equal(result.array, array)
    assert result.disagreement == ""


def test_padding_is_dropped() -> None:
    array = np.arange(7, dtype=np.int32)
    program = identity_program(TensorSpec((7,), "i32"), [("y",)])

    def spoil_padding(rank: int, block: Array) -> Array:
        return np.where(np.arange(3) < (3 if rank % 3 < 2 else 1), block, -99)

    (result,) = run_program(program, [array], Local(spoil_padding))
    np.testing.assert_array_equal(result.array, array)


def test_copies_that_differ_are_named() -> None:
    array = np.arange(12, dtype=np.float32).reshape(6, 2)
    program = identity_program(TensorSpec((6, 2), "f32"), [("y",), ()])
    (result,) = run_program(program, [array], Local(lambda rank, block: block + 2 if rank == 4 else block))
    np.testing.assert_array_equal(result.array, array)
    message = "ranks 1 and 4 hold different copies of result 0[2:4, 0:2]: they differ by up to 2"
    assert result.disagreement == message


def test_copies_that_differ_by_rounding_agree() -> None:
    array = np.ones((6, 2), np.float32)
    program = identity_program(TensorSpec((6, 2), "f32"), [("x",), ()])
    (result,) = run_program(program, [array], Local(lambda rank, block: block * np.float32(1 + 1e-7 * rank)))
    assert result.disagreement == ""


def test_the_number_of_inputs_is_checked() -> None:
    program = identity_program(TensorSpec((6, 2), "f32"), [("x",), ()])
    with pytest.raises(RunError, match=r"the program expects 1 arrays, not 2: \(tensor<6x2xf32>\)"):
        check_inputs(program, [np.zeros((6, 2), np.float32)] * 2)


def test_what_is_no_array_is_refused() -> None:
    program = identity_program(TensorSpec((2,), "f32"), [("x",)])
    with pytest.raises(
        RunError, match=r"argument 0 of the program is tensor<2xf32>, but the given value is not an array"
    ):
        check_inputs(program, [[1.0, [2.0]]])


def test_random_inputs_fit_and_follow_the_seed() -> None:
    program = identity_program(TensorSpec((6, 2), "f32"), [("x",), ()])
    first, again, other = (random_inputs(program, seed)[0] for seed in (0, 0, 1))
    check_inputs(program, [first])
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
