# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests the lemmas of accesses, of computed places, of halos and of branches against the definitions of their ops."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from check.evaluation import Evaluation
from check.walk import Op, Shards, Walk, all_gather, check_chains

from mlir_shard.check.checker import ExactTensors
from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.kernel.mesh import Mesh
from mlir_shard.check.lemmas.affine import Affine
from mlir_shard.check.lemmas.values import Value
from mlir_shard.check.ops.collectives import with_halos
from mlir_shard.check.ops.structured import looked_up_at
from mlir_shard.check.ops.tensors import Window

OPS: dict[str, Op] = {"all_gather": all_gather}


def op(function: Op) -> Op:
    OPS[function.__name__] = function
    return function


def _numbers(walk: Walk, shape: list[int]) -> tuple[Value, Any]:
    """Returns integers that are equal on all devices, as another argument."""
    name = ("argument", "main", len(walk.leaves))
    walk.leaves[name] = np.random.default_rng(walk.random.randrange(2**30)).integers(-2, 6, shape).astype(float)
    return walk.lemmas.leaf(name, shape), walk.leaves[name]


@op
def access(walk: Walk) -> tuple[Value, Shards]:
    """Reads each dimension at an in-bounds affine index of two loops."""
    sizes, entries = [walk.random.randrange(1, 4) for _ in range(2)], []
    for size in walk.value.shape:
        loop, other = walk.random.sample(range(2), 2)
        stride, second = walk.random.choice((-1, 1, 2)), walk.random.choice((0, 0, 1))
        low = min(stride * (sizes[loop] - 1), 0)
        reach = abs(stride) * (sizes[loop] - 1) + second * (sizes[other] - 1)
        if reach >= size:
            stride, second, low, reach = 0, 0, 0, 0
        terms = tuple((one, at) for one, at in ((stride, loop), (second, other)) if one)
        entries.append((walk.random.randrange(size - reach) - low, terms))
    index = [
        np.fromfunction(lambda *at, e=e: e[0] + sum(s * at[v] for s, v in e[1]) + 0 * at[0], sizes) for e in entries
    ]
    found = [one[tuple(part.astype(int) for part in index)] if index else np.full(sizes, one) for one in walk.shards]
    return walk.lemmas.accessed(walk.value, entries, sizes), found


@op
def window_sum(walk: Walk) -> tuple[Value, Shards]:
    dim, low, high = walk.dim(), walk.random.randrange(2), walk.random.randrange(2)
    size, stride, dilation = (walk.random.choice((1, 2)) for _ in range(3))
    base, whole = walk.random.choice((1, 1, 2)), walk.value.shape[dim]
    spread = (whole - 1) * base + 1 + low + high
    count = (spread - (size - 1) * dilation - 1) // stride + 1
    if count < 1:
        raise NotCertified("no window")
    window = Window(count, size, stride, dilation, low, high, base)
    value = walk.lemmas.windows(walk.value, walk.lemmas.zero("f64"), {dim: window})
    found = []
    for one in walk.shards:
        wide = np.zeros([spread if at == dim else length for at, length in enumerate(one.shape)])
        at = [slice(None)] * one.ndim
        at[dim] = slice(low, low + (whole - 1) * base + 1, base)
        wide[tuple(at)] = one
        places = [[first * stride + element * dilation for first in range(count)] for element in range(size)]
        found.append(sum(wide.take(place, axis=dim) for place in places))
    return walk.lemmas.reduced("add", value, [dim + 1]), found


@op
def dynamic_slice(walk: Walk) -> tuple[Value, Shards]:
    dim = walk.dim()
    whole, labels = walk.value.shape[dim], ["abcd"[at] for at in range(walk.value.rank)]
    size = walk.random.randrange(1, whole + 1)
    start, number = _numbers(walk, [])
    results = [f"o{dim}" if at == dim else label for at, label in enumerate(labels)]
    first = int(np.clip(number, 0, whole - size))
    found = [one.take(range(first, first + size), axis=dim) for one in walk.shards]
    return looked_up_at(walk.lemmas, walk.value, labels, {dim: (start, (), size)}, results, "i64"), found


@op
def take(walk: Walk) -> tuple[Value, Shards]:
    dim = walk.dim()
    whole, labels = walk.value.shape[dim], ["abcd"[at] for at in range(walk.value.rank)]
    starts, numbers = _numbers(walk, [3])
    results = ["u" if at == dim else label for at, label in enumerate(labels)]
    found = [one.take(np.clip(numbers.astype(int), 0, whole - 1), axis=dim) for one in walk.shards]
    return looked_up_at(walk.lemmas, walk.value, labels, {dim: (starts, ("u",), 1)}, results, "i64"), found


@op
def sharded_take(walk: Walk) -> tuple[Value, Shards]:
    """Looks up indices in a shard, less its first position, and masks those that are on another device."""
    dim, axes, lemmas = walk.dim(), walk.axes(), walk.lemmas
    local, labels = walk.value.shape[dim], ["abcd"[at] for at in range(walk.value.rank)]
    starts, numbers = _numbers(walk, [3])
    whole = local * prod(walk.mesh[axis] for axis in axes)
    clamped, dims = lemmas.clamped(starts, 0, whole - 1, "i64"), [(3,)]
    terms = tuple(lemmas.mesh.along(axes, local))
    first, last = lemmas.index("i64", (0, terms), dims), lemmas.index("i64", (local - 1, terms), dims)
    shifted = lemmas.pointwise(("stablehlo.subtract", "i64"), [clamped, first])
    results = ["u" if at == dim else label for at, label in enumerate(labels)]
    value = looked_up_at(lemmas, walk.value, labels, {dim: (shifted, ("u",), 1)}, results, "i64")
    sides = [lemmas.pointwise(("compare", *one), [clamped, end]) for one, end in ((("GE",), first), (("LE",), last))]
    mask = lemmas.broadcast(lemmas.pointwise(("stablehlo.and", "i1"), sides), value.shape, [dim])
    found = []
    for one, place in zip(walk.shards, walk.places, strict=True):
        start = walk.group(axes, place).index(walk.places.index(place)) * local
        at = np.clip(numbers.astype(int), 0, whole - 1) - start
        kept = ((at >= 0) & (at < local)).reshape([-1 if other == dim else 1 for other in range(one.ndim)])
        found.append(np.where(kept, one.take(np.clip(at, 0, local - 1), axis=dim), 0.0))
    return lemmas.selected(mask, value, lemmas.constant("f64", "0.0", value.shape)), found


@op
def scatter_add(walk: Walk) -> tuple[Value, Shards]:
    """Adds up elements of the tensor at computed places. Elements outside of the result are dropped."""
    dim, size = walk.dim(), walk.random.randrange(1, 5)
    whole, labels = walk.value.shape[dim], ["abcd"[at] for at in range(walk.value.rank)]
    starts, numbers = _numbers(walk, [whole])
    results = ["p" if at == dim else label for at, label in enumerate(labels)]
    operands = [(walk.value, labels), (starts, (labels[dim],))]
    value = walk.lemmas.opaque(
        ("lookup",), operands, results, (), None, "add", places=[((0, ()), ((1, "p"),))], others={"p": size}
    )
    hot = np.array([[float(number == place) for number in numbers] for place in range(size)])
    return value, [np.moveaxis(np.tensordot(hot, one, (1, dim)), 0, dim) for one in walk.shards]


@op
def update(walk: Walk) -> tuple[Value, Shards]:
    dim = walk.dim()
    whole, labels = walk.value.shape[dim], ["abcd"[at] for at in range(walk.value.rank)]
    size = walk.random.randrange(1, whole + 1)
    piece = walk.lemmas.sliced(walk.value, dim, (whole - size, ()), size)
    start, number = _numbers(walk, [])
    updated = ["w" if at == dim else label for at, label in enumerate(labels)]
    operands = [(walk.value, labels), (piece, updated), (walk.lemmas.clamped(start, 0, whole - size, "i64"), ())]
    places = [((0, ()), ((1, labels[dim]), (-1, "w")))]
    found, first = [], int(np.clip(number, 0, whole - size))
    for one in walk.shards:
        other, at = one.copy(), [slice(None)] * one.ndim
        at[dim] = slice(first, first + size)
        other[tuple(at)] = one.take(range(whole - size, whole), axis=dim)
        found.append(other)
    return walk.lemmas.opaque(("update",), operands, labels, (), places=places), found


@op
def halo(walk: Walk) -> tuple[Value, Shards]:
    dim, axes = walk.dim(), walk.axes()
    below, above = walk.random.randrange(2), walk.random.randrange(2)
    size = walk.value.shape[dim] - below - above
    value = with_halos(walk.lemmas, walk.value, dim, axes, (below, above), "f64")
    found = []
    for one, place in zip(walk.shards, walk.places, strict=True):
        group = walk.group(axes, place)
        at, other = group.index(walk.places.index(place)), one.copy()
        ends = [slice(None)] * one.ndim
        if below and at:
            ends[dim] = slice(0, below)
            other[tuple(ends)] = walk.shards[group[at - 1]].take(range(size, size + below), axis=dim)
        if above and at + 1 < len(group):
            ends[dim] = slice(below + size, None)
            other[tuple(ends)] = walk.shards[group[at + 1]].take(range(below, below + above), axis=dim)
        found.append(other)
    return walk.lemmas.box(value, [0] * value.rank, value.shape) or value, found


@op
def branch(walk: Walk) -> tuple[Value, Shards]:
    """Some devices have the value, and others have it shifted."""
    chosen = np.array([walk.random.random() < 0.5 for _ in walk.places])
    dim = walk.dim()
    shape = walk.value.shape
    if shape[dim] < 2:
        raise NotCertified("nothing to shift")
    first = walk.lemmas.sliced(walk.value, dim, (0, ()), shape[dim] - 1)
    second = walk.lemmas.sliced(walk.value, dim, (1, ()), shape[dim] - 1)
    found = [
        one.take(range(shape[dim] - 1) if here else range(1, shape[dim]), axis=dim)
        for one, here in zip(walk.shards, chosen, strict=True)
    ]
    return walk.lemmas.merged(chosen, first, second), found


@op
def mask_of_padding(walk: Walk) -> tuple[Value, Shards]:
    """Pads a value with zeros, and selects zeros on one side of a random position and the padded value on the other."""
    dim, lemmas, rank = walk.dim(), walk.lemmas, walk.value.rank
    low, high = ([walk.random.randrange(3) if at == dim else 0 for at in range(rank)] for _ in range(2))
    value = lemmas.padded(walk.value, lemmas.zero("f64"), low, high)
    whole, dims = value.shape[dim], [(size,) for size in value.shape]
    end, direction = walk.random.randrange(1, whole + 1), walk.random.choice(("LT", "GE"))
    position, number = lemmas.index("i64", (0, ((1, dim),)), dims), lemmas.index("i64", (end, ()), dims)
    condition = lemmas.compared(("compare", direction), position, number)
    shape = [-1 if other == dim else 1 for other in range(rank)]
    kept = ((np.arange(whole) < end) == (direction == "LT")).reshape(shape)
    found = [np.where(kept, np.pad(one, list(zip(low, high, strict=True))), 0.0) for one in walk.shards]
    return lemmas.selected(condition, value, lemmas.constant("f64", "0.0", value.shape)), found


@op
def slice_by_device(walk: Walk) -> tuple[Value, Shards]:
    dim = walk.dim()
    starts = [walk.random.randrange(walk.value.shape[dim]) for _ in walk.places]
    entry = walk.lemmas.entry_of_devices(np.array(starts))
    found = [one.take([start], axis=dim) for one, start in zip(walk.shards, starts, strict=True)]
    return walk.lemmas.sliced(walk.value, dim, entry, 1), found


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("meaning", [ExactTensors, Affine])
@pytest.mark.parametrize("block", range(4))
def test_chains_of_ops(block: int, meaning: Any, even: bool) -> None:
    seeds = range(block * 120, block * 120 + 120)
    check_chains(OPS, seeds, even=even, least=0.9 if even else 0.4, meaning=meaning)


def test_padding_along_one_dimension_says_nothing_of_another() -> None:
    lemmas = Affine(Mesh((2,)))
    # The last device has one column of two; its other column is unknown.
    shard = lemmas.given(lemmas.leaf(("argument", "main", 0), (3, 3)), [[], [0]])
    padded = lemmas.padded(shard, lemmas.zero("f64"), [0, 0], [1, 0])
    whole = lemmas.tiled(lemmas.zero("f64", (4, 2)), padded, [(0, ()), (0, ())])
    found = lemmas.box(whole, [0, 0], (4, 2)) or whole
    evaluation = Evaluation(lemmas, {("argument", "main", 0): np.arange(9.0).reshape(3, 3)})
    first, last = evaluation.shards(found)
    assert np.array_equal(first[:3], [[0, 1], [3, 4], [6, 7]])
    assert np.array_equal(last[:3, 0], [2, 5, 8])
    assert np.isnan(last[:3, 1]).all()
