# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hypothesis strategies for valid meshes, axes, shardings and factor mappings, and a short notation for axes."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import strategies as st

from mlir_shard.sharding import (
    AxisRef,
    DimensionSharding,
    Mesh,
    ReductionOp,
    TensorMapping,
    TensorSharding,
)
from mlir_shard.sharding.axes import add_axes_or_merge, sort_and_merge


def axis(text: str) -> AxisRef:
    """Returns the full axis of a text such as `a`, or the sub-axis of a text such as `a:(2)4`."""
    name, _, info = text.partition(":")
    if not info:
        return AxisRef(name)
    pre_size, size = info.removeprefix("(").split(")")
    return AxisRef.sub(name, int(pre_size), int(size))


def axes(text: str) -> tuple[AxisRef, ...]:
    """Returns the axes of a text, which are separated by blanks."""
    return tuple(map(axis, text.split()))


def dim(text: str, priority: int | None = None) -> DimensionSharding:
    """Returns the sharding of a dimension from its axes, separated by blanks, and `?` if the dimension is open."""
    names = text.split()
    is_closed = "?" not in names
    return DimensionSharding(axes(" ".join(n for n in names if n != "?")), is_closed, priority)


def sharding(
    *dims: str,
    replicated: str = "",
    unreduced: str = "",
    reduction_op: ReductionOp = ReductionOp.SUM,
    mesh: str | Mesh = "mesh",
) -> TensorSharding:
    """Returns a sharding from the texts of its dimensions."""
    return TensorSharding(mesh, tuple(map(dim, dims)), axes(replicated), axes(unreduced), reduction_op)


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    """Draws a mesh of one to three axes and at most 32 devices, which are permuted in half of the cases."""
    sizes: list[int] = []
    for size in draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 12]), min_size=1, max_size=3)):
        total = size
        for other in sizes:
            total *= other
        if total <= 32:
            sizes.append(size)
    mesh = Mesh(zip("xyz", sizes, strict=False))
    if draw(st.booleans()):
        # A single draw, because st.permutations draws once per element.
        devices = range(mesh.total_size)
        mesh = Mesh(mesh.axes, Random(draw(st.integers(0, 2**16 - 1))).sample(devices, len(devices)))
    return mesh


def _prime_factors(number: int) -> list[int]:
    return next(([p, *_prime_factors(number // p)] for p in range(2, number + 1) if number % p == 0), [])


@st.composite
def splits(draw: st.DrawFn, mesh: Mesh) -> list[AxisRef]:
    """Draws a split of the entire mesh into full axes and sub-axes that coexist."""
    parts: list[AxisRef] = []
    for mesh_axis in mesh.axes:
        bounds = [1]
        for prime in draw(st.permutations(_prime_factors(mesh_axis.size))):
            if bounds[-1] == 1 or draw(st.booleans()):
                bounds.append(bounds[-1] * prime)
            else:
                bounds[-1] *= prime
        if len(bounds) <= 2:
            parts.append(AxisRef(mesh_axis.name))
        else:
            parts += [AxisRef.sub(mesh_axis.name, a, b // a) for a, b in pairwise(bounds)]
    return parts


@st.composite
def shardings(draw: st.DrawFn, mesh: Mesh, rank: int) -> TensorSharding:
    """Draws a valid sharding of this rank on the mesh."""
    unused = -1
    lists: dict[int, list[AxisRef]] = {place: [] for place in range(unused, rank + 2)}
    for part in draw(st.permutations(draw(splits(mesh)))):
        lists[draw(st.integers(unused, rank + 1))].append(part)
    dims = []
    for index in range(rank):
        dim_axes = add_axes_or_merge((), lists[index], mesh)
        dims.append(DimensionSharding(dim_axes, draw(st.booleans())))
    return TensorSharding(
        "mesh",
        tuple(dims),
        sort_and_merge(lists[rank], mesh),
        sort_and_merge(lists[rank + 1], mesh),
        draw(st.sampled_from(ReductionOp)),
    )


@st.composite
def factor_mappings(draw: st.DrawFn) -> tuple[TensorMapping, tuple[int, ...]]:
    """Draws a tensor's mapping and the sizes of its factors."""
    dims: list[list[int]] = []
    sizes: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 3))
        dims.append(list(range(len(sizes), len(sizes) + count)))
        sizes += [draw(st.integers(1 if count == 1 else 2, 12)) for _ in range(count)]
    return TensorMapping.of(*dims), tuple(sizes)
