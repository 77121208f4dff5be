# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchanges with neighbours, messages, and the indices of devices."""

from __future__ import annotations

import random
from itertools import pairwise
from math import prod

import numpy as np

from collectives_on_ranks.case import Case, Grid
from mlir_shard.resharding import simulation
from mlir_shard.resharding.simulation import Array, Blocks
from mlir_shard.runtime.arrays import TensorSpec


def shift(grid: Grid, argument: TensorSpec, draw: random.Random) -> Case:
    """Returns a shift along one of the axes."""
    axis = draw.choice(grid.axes)
    size, rotates = grid.shape[axis], draw.random() < 0.5
    offset = draw.randint(-size - 1, size + 1)
    groups = grid.groups((axis,))
    how = f"grid_axes = {list(grid.axes)} shift_axis = {axis} offset = {offset}{' rotate' if rotates else ''}"
    text = f"%{{r}} = shard.shift {{a}} on @{{g}} {how} : {argument} -> {argument}"
    return Case("shift", grid, argument, argument, text, lambda b: simulation.shift(b, groups, offset, rotate=rotates))


def ring(grid: Grid, argument: TensorSpec, draw: random.Random) -> Case:
    """Returns a case in which all devices send along an axis, and receive afterwards."""
    axis = draw.choice([axis for axis in grid.axes if grid.shape[axis] > 1])
    size = grid.shape[axis]
    offset = draw.randrange(1, size)
    groups, types = grid.groups((axis,)), f"({argument}, index) -> {argument}"
    text = f"""%{{r}}_own = shard.process_multi_index on @{{g}} axes = [{axis}] : index
  %{{r}}_size = arith.constant {size} : index
  %{{r}}_on = arith.constant {offset} : index
  %{{r}}_back = arith.constant {size - offset} : index
  %{{r}}_above = arith.addi %{{r}}_own, %{{r}}_on : index
  %{{r}}_below = arith.addi %{{r}}_own, %{{r}}_back : index
  %{{r}}_to = arith.remui %{{r}}_above, %{{r}}_size : index
  %{{r}}_from = arith.remui %{{r}}_below, %{{r}}_size : index
  %{{r}}_sent = shard.send {{a}} on @{{g}} grid_axes = [{axis}] destination = [%{{r}}_to] : {types}
  %{{r}} = shard.recv {{a}} on @{{g}} grid_axes = [{axis}] source = [%{{r}}_from] : {types}"""

    def expected(blocks: Blocks) -> Blocks:
        pairs = {g[n]: g[(n + offset) % size] for g in groups for n in range(size)}
        mail = simulation.send(blocks, pairs, {})
        return simulation.recv({to: source for source, to in pairs.items()}, mail)[0]

    return Case("send, recv", grid, argument, argument, text, expected)


def pair(grid: Grid, argument: TensorSpec, draw: random.Random) -> Case:
    """Returns a case in which one device of each group sends to another one; the receive may have no source."""
    groups, number = grid.groups(), list(np.ndindex(*grid.sizes))
    source, target = draw.sample(range(prod(grid.sizes)), 2)
    says = f" source = {list(number[source])}" if draw.random() < 0.6 else ""
    position, along = _position(grid), f"on @{{g}} grid_axes = {list(grid.axes)}"
    to, types = f" destination = {list(number[target])}", f"({argument}) -> {argument}"
    text = f"""{position}
  %{{r}}_source = arith.constant {source} : index
  %{{r}}_target = arith.constant {target} : index
  %{{r}}_sends = arith.cmpi eq, %{{r}}_place, %{{r}}_source : index
  %{{r}}_receives = arith.cmpi eq, %{{r}}_place, %{{r}}_target : index
  scf.if %{{r}}_sends {{{{
    %sent = shard.send {{a}} {along}{to} : {types}
  }}}}
  %{{r}} = scf.if %{{r}}_receives -> ({argument}) {{{{
    %got = shard.recv {{a}} {along}{says} : {types}
    scf.yield %got : {argument}
  }}}} else {{{{
    scf.yield {{a}} : {argument}
  }}}}"""

    def expected(blocks: Blocks) -> Blocks:
        mail = simulation.send(blocks, {group[source]: group[target] for group in groups}, {})
        received, _ = simulation.recv({group[target]: group[source] for group in groups}, mail)
        return {**blocks, **received}

    return Case("send, recv", grid, argument, argument, text, expected)


def update_halo(grid: Grid, element_type: str, draw: random.Random) -> Case:
    """Returns a halo update along two dimensions, one of which may be sharded on several axes, or on none."""
    axes = list(grid.axes)
    split = [axes[: len(axes) // 2], axes[len(axes) // 2 :]]
    draw.shuffle(split)
    halos = [(draw.randrange(3), draw.randrange(3)) for axes in split if axes]
    argument = TensorSpec((7, 8, 2), element_type)
    how = f"split_axes = {split} halo_sizes = {[size for halo in halos for size in halo]}"
    text = f"%{{r}} = shard.update_halo {{a}} on @{{g}} {how} : {argument}"

    def expected(blocks: Blocks) -> Blocks:
        pairs = dict(zip([dim for dim in (0, 1) if split[dim]], halos, strict=True))
        result = {device: block.copy() for device, block in blocks.items()}
        for dim in sorted(pairs, reverse=True):
            result = _with_halo(result, grid.groups(tuple(split[dim])), dim, pairs, argument.shape)
        return result

    return Case("update_halo", grid, argument, argument, text, expected)


def _with_halo(
    blocks: Blocks,
    groups: tuple[tuple[int, ...], ...],
    dim: int,
    halos: dict[int, tuple[int, int]],
    shape: tuple[int, ...],
) -> Blocks:
    # Only the interior is exchanged along the dimensions that come later in this exchange.
    inside = [slice(halos[d][0], shape[d] - halos[d][1]) if d in halos and d < dim else slice(None) for d in range(3)]
    below, above = halos[dim]
    end = shape[dim] - above
    result = {device: block.copy() for device, block in blocks.items()}

    def at(start: int, stop: int) -> tuple[slice, ...]:
        return (*inside[:dim], slice(start, stop), *inside[dim + 1 :])

    for group in groups:
        for before, after in pairwise(group):
            result[after][at(0, below)] = blocks[before][at(end - below, end)]
            result[before][at(end, end + above)] = blocks[after][at(below, below + above)]
    return result


def indices(grid: Grid) -> Case:
    """Returns the position of a device along the axes in their order, and in the entire grid, and its neighbours."""
    rank, count = len(grid.shape), len(grid.axes)
    names = ", ".join(f"%{{r}}_{place}" for place in range(count))
    every = ", ".join(f"%{{r}}_all{axis}" for axis in range(rank))
    values = f"{names}, %{{r}}_linear, %{{r}}_near#0, %{{r}}_near#1"
    result = TensorSpec((count + 3,), "index")
    text = f"""{names} = shard.process_multi_index on @{{g}} axes = {list(grid.axes)} : {", ".join(["index"] * count)}
  {every} = shard.process_multi_index on @{{g}} : {", ".join(["index"] * rank)}
  %{{r}}_linear = shard.process_linear_index on @{{g}} : index
  %{{r}}_near:2 = shard.neighbors_linear_indices on @{{g}}[{every}] split_axes = {list(grid.axes)} : index, index
  %{{r}} = tensor.from_elements {values} : {result}"""

    def expected(blocks: Blocks) -> Blocks:
        found: dict[int, Array] = {}
        for group in grid.groups():
            for number, device in enumerate(group):
                coordinates = np.unravel_index(device, grid.shape)
                near = [group[n] if 0 <= n < len(group) else -1 for n in (number - 1, number + 1)]
                found[device] = np.array([*(coordinates[axis] for axis in grid.axes), device, *near], np.int64)
        return found

    return Case("indices", grid, TensorSpec((1,), "i32"), result, text, expected)


def _position(grid: Grid) -> str:
    """Returns the text that computes the number of the device in its group, `%{r}_place`."""
    own = [f"%{{r}}_own{place}" for place in range(len(grid.axes))]
    types = ", ".join(["index"] * len(own))
    lines = [
        f"{', '.join(own)} = shard.process_multi_index on @{{g}} axes = {list(grid.axes)} : {types}",
        "%{r}_place0 = arith.constant 0 : index",
    ]
    for place, size in enumerate(grid.sizes):
        lines.append(f"%{{r}}_size{place} = arith.constant {size} : index")
        lines.append(f"%{{r}}_scaled{place} = arith.muli %{{r}}_place{place}, %{{r}}_size{place} : index")
        last = f"%{{r}}_place{place + 1}" if place + 1 < len(own) else "%{r}_place"
        lines.append(f"{last} = arith.addi %{{r}}_scaled{place}, {own[place]} : index")
    return "\n  ".join(lines)
