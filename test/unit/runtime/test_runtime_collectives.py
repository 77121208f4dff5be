# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of upstream's shard dialect on MPI ranks, against what they mean, done by NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from runtime.local_program import needs_mpich, run_local, spec

from mlir_shard.runtime.arrays import Array, storage_dtype

pytestmark = needs_mpich

Grid = tuple[int, ...]


def groups(grid: Grid, axes: Sequence[int]) -> list[list[int]]:
    """The ranks that differ only along `axes`, each group in the order of `axes`, the first the major one."""
    others = [axis for axis in range(len(grid)) if axis not in axes]
    found = []
    for fixed in itertools.product(*(range(grid[axis]) for axis in others)):
        group = []
        for moving in itertools.product(*(range(grid[axis]) for axis in axes)):
            place = dict(zip([*others, *axes], [*fixed, *moving], strict=True))
            group.append(int(np.ravel_multi_index([place[axis] for axis in range(len(grid))], grid)))
        found.append(group)
    return found


@dataclass(frozen=True)
class Collective:
    """One operation on the argument: its text, the type of its result, and what the members of a group get."""

    text: str
    result: str
    axes: tuple[int, ...]
    of_group: Callable[[list[Array]], list[Array]]


def typed(shape: Sequence[int], element_type: str) -> str:
    return "".join(f"{size}x" for size in shape) + element_type


def resized(argument: str, changes: dict[int, float]) -> str:
    shape = [int(size * changes.get(dim, 1)) for dim, size in enumerate(spec(argument).shape)]
    return typed(shape, spec(argument).element_type)


def operation(name: str, argument: str, result: str, axes: Sequence[int], attributes: str) -> str:
    on = f"on @g grid_axes = {list(axes)} {attributes}"
    return f"shard.{name} %a {on} : tensor<{argument}> -> tensor<{result}>"


def group_size(grid: Grid, axes: Sequence[int]) -> int:
    return int(np.prod([grid[axis] for axis in axes]))


def all_gather(grid: Grid, argument: str, axes: tuple[int, ...], dim: int) -> Collective:
    result = resized(argument, {dim: group_size(grid, axes)})
    text = operation("all_gather", argument, result, axes, f"gather_axis = {dim}")
    return Collective(text, result, axes, lambda blocks: [np.concatenate(blocks, dim)] * len(blocks))


def all_slice(grid: Grid, argument: str, axes: tuple[int, ...], dim: int) -> Collective:
    size = group_size(grid, axes)
    result = resized(argument, {dim: 1 / size})
    text = operation("all_slice", argument, result, axes, f"slice_axis = {dim}")
    return Collective(text, result, axes, lambda blocks: [np.split(b, size, dim)[i] for i, b in enumerate(blocks)])


def all_to_all(grid: Grid, argument: str, axes: tuple[int, ...], split: int, concat: int) -> Collective:
    size = group_size(grid, axes)
    result = resized(argument, {split: 1 / size, concat: size})
    text = operation("all_to_all", argument, result, axes, f"split_axis = {split} concat_axis = {concat}")

    def of_group(blocks: list[Array]) -> list[Array]:
        return [np.concatenate([np.split(b, size, split)[i] for b in blocks], concat) for i in range(size)]

    return Collective(text, result, axes, of_group)


REDUCTIONS: dict[str, np.ufunc] = {
    "sum": np.add,
    "product": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


def reduced(blocks: list[Array], reduction: str) -> Array:
    result: Array = REDUCTIONS[reduction].reduce(np.stack(blocks), axis=0, dtype=blocks[0].dtype)
    return result


def all_reduce(grid: Grid, argument: str, axes: tuple[int, ...], reduction: str = "sum") -> Collective:
    text = operation("all_reduce", argument, argument, axes, f"reduction = {reduction}")
    return Collective(text, argument, axes, lambda blocks: [reduced(blocks, reduction)] * len(blocks))


def reduce_scatter(grid: Grid, argument: str, axes: tuple[int, ...], dim: int, reduction: str = "sum") -> Collective:
    size = group_size(grid, axes)
    result = resized(argument, {dim: 1 / size})
    text = operation("reduce_scatter", argument, result, axes, f"reduction = {reduction} scatter_dim = {dim}")
    return Collective(text, result, axes, lambda blocks: np.split(reduced(blocks, reduction), size, dim))


def inputs_for(argument: str, ranks: int) -> list[Array]:
    """Different small numbers on every rank, so that every reduction of them is exact in every type."""
    type_ = spec(argument)
    count = int(np.prod(type_.shape))
    generator = np.random.default_rng(7)
    numbers = [generator.permutation(count + ranks)[:count].reshape(type_.shape) % 11 for _ in range(ranks)]
    return [np.asarray(block % 2 if type_.element_type == "i1" else block) for block in numbers]


def check(grid: Grid, argument: str, collectives: Sequence[Collective]) -> None:
    ranks = int(np.prod(grid))
    dtype = np.dtype(np.float32) if "bf16" in argument else storage_dtype(spec(argument).element_type)
    blocks = [block.astype(dtype) for block in inputs_for(argument, ranks)]
    body = "\n".join(f"  %{index} = {one.text}" for index, one in enumerate(collectives))
    returned = run_local(grid, argument, body, [one.result for one in collectives], list(map(stored(argument), blocks)))
    for index, one in enumerate(collectives):
        for group in groups(grid, one.axes):
            expected = one.of_group([blocks[rank] for rank in group])
            for rank, block in zip(group, expected, strict=True):
                message = f"rank {rank}: {one.text}"
                np.testing.assert_array_equal(returned[rank][index], stored(argument)(block), message)


def stored(argument: str) -> Callable[[Array], Array]:
    """bf16 is the upper half of f32; the numbers here lose nothing by that."""
    if "bf16" not in argument:
        return lambda block: block
    return lambda block: (np.ascontiguousarray(block).view(np.uint32) >> 16).astype(np.uint16)


def test_axes_of_a_grid_of_two() -> None:
    grid, argument = (2, 3), "6x12xf32"
    collectives = []
    for axes in [(0,), (1,), (0, 1), (1, 0)]:
        collectives.append(all_reduce(grid, argument, axes))
        for dim in (0, 1):
            collectives.append(all_gather(grid, argument, axes, dim))
            collectives.append(all_slice(grid, argument, axes, dim))
            collectives.append(reduce_scatter(grid, argument, axes, dim))
            collectives.append(all_to_all(grid, argument, axes, dim, 1 - dim))
    check(grid, argument, collectives)


def test_axes_of_a_grid_of_three() -> None:
    grid, argument = (2, 2, 2), "8x3x8xf64"
    collectives = []
    for axes in [(1,), (0, 2), (2, 0), (2, 1), (2, 1, 0), (1, 2, 0)]:
        collectives.append(all_gather(grid, argument, axes, 1))
        collectives.append(all_slice(grid, argument, axes, 2))
        collectives.append(reduce_scatter(grid, argument, axes, 0))
        collectives.append(all_to_all(grid, argument, axes, 2, 1))
    check(grid, argument, collectives)


def test_axes_of_size_one_and_no_axes() -> None:
    grid, argument = (1, 2), "2x4xf32"
    collectives = []
    for axes in [(), (0,), (0, 1), (1, 0)]:
        collectives.append(all_reduce(grid, argument, axes))
        collectives.append(all_gather(grid, argument, axes, 0))
        collectives.append(reduce_scatter(grid, argument, axes, 1))
        collectives.append(all_to_all(grid, argument, axes, 0, 1))
    check(grid, argument, collectives)


@pytest.mark.parametrize("argument", ["1x3xf32", "3x1xf16", "1xf32", "1x1xi1", "2x1x3xbf16", "1x2xindex"])
def test_gather_of_blocks_of_size_one(argument: str) -> None:
    grid = (2, 2)
    dims = [dim for dim, size in enumerate(spec(argument).shape) if size == 1]
    collectives = [all_gather(grid, argument, axes, dim) for axes in [(1,), (1, 0)] for dim in dims]
    check(grid, argument, collectives)


def test_tensors_without_elements() -> None:
    grid, argument = (2,), "0x4xf32"
    check(
        grid,
        argument,
        [
            all_reduce(grid, argument, (0,)),
            all_gather(grid, argument, (0,), 0),
            all_gather(grid, argument, (0,), 1),
            reduce_scatter(grid, argument, (0,), 1),
        ],
    )


def test_tensor_without_dimensions() -> None:
    check((2,), "f32", [all_reduce((2,), "f32", (0,)), all_reduce((2,), "f32", (0,), "max")])


FLOATS = ["f64", "f32", "f16", "bf16"]
INTEGERS = ["i8", "i16", "i32", "i64", "index"]


@pytest.mark.parametrize("element_type", [*FLOATS, *INTEGERS, "i1"])
def test_element_types(element_type: str) -> None:
    grid, argument = (2,), f"2x4x{element_type}"
    bitwise = ["bitwise_and", "bitwise_or", "bitwise_xor"] if element_type not in FLOATS else []
    arithmetic = ["sum", "product", "max", "min"] if element_type != "i1" else ["max", "min"]
    check(
        grid,
        argument,
        [
            all_gather(grid, argument, (0,), 0),
            all_gather(grid, argument, (0,), 1),
            all_slice(grid, argument, (0,), 1),
            all_to_all(grid, argument, (0,), 0, 1),
            *(all_reduce(grid, argument, (0,), reduction) for reduction in arithmetic + bitwise),
            reduce_scatter(grid, argument, (0,), 1, "max"),
        ],
    )


def test_communicators_are_made_once() -> None:
    """MPICH has about two thousand communicators; this loop has more rounds than that."""
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 3000 : index
      %0 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<2xi32>) {
        %y = shard.all_reduce %x on @g grid_axes = [1] reduction = max : tensor<2xi32> -> tensor<2xi32>
        scf.yield %y : tensor<2xi32>
      }"""
    returned = run_local((1, 2), "2xi32", body, ["2xi32"], [np.array([1, 5], np.int32), np.array([4, 2], np.int32)])
    for rank in range(2):
        np.testing.assert_array_equal(returned[rank][0], [4, 5])


def test_update_halo() -> None:
    body = "  %0 = shard.update_halo %a on @g split_axes = [[0]] halo_sizes = [2, 1] : tensor<6x2xf32>"
    rows = [np.arange(12, dtype=np.float32).reshape(6, 2) + 100 * rank for rank in range(3)]
    returned = run_local((3,), "6x2xf32", body, ["6x2xf32"], rows)
    middle = np.concatenate([rows[0][3:5], rows[1][2:5], rows[2][2:3]])
    np.testing.assert_array_equal(returned[1][0], middle)
    np.testing.assert_array_equal(returned[0][0], np.concatenate([rows[0][:5], rows[1][2:3]]))
    np.testing.assert_array_equal(returned[2][0], np.concatenate([rows[1][3:5], rows[2][2:]]))


def test_process_index() -> None:
    body = """
      %i, %j = shard.process_multi_index on @g : index, index
      %k = shard.process_linear_index on @g : index
      %0 = tensor.from_elements %i, %j, %k : tensor<3xindex>"""
    returned = run_local((2, 3), "1xf32", body, ["3xindex"], [np.zeros(1, np.float32)] * 6)
    assert [list(of_rank[0]) for of_rank in returned] == [[rank // 3, rank % 3, rank] for rank in range(6)]
