# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests each lemma against the definition of its op on small tensors: chains of random ops on shards of random layouts.

The result that a lemma gives for each device must equal NumPy's. Unknown elements are not compared, so each test also
requires a minimum fraction of known elements.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from check.walk import Op, Shards, Walk, all_gather, check_chains

from mlir_shard.check.checker import ExactTensors
from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.lemmas.affine import Affine
from mlir_shard.check.lemmas.values import Value

OPS: dict[str, Op] = {"all_gather": all_gather}


def op(function: Op) -> Op:
    OPS[function.__name__] = function
    return function


@op
def transpose(walk: Walk) -> tuple[Value, Shards]:
    order = walk.random.sample(range(walk.value.rank), walk.value.rank)
    return walk.lemmas.transposed(walk.value, order), [one.transpose(order) for one in walk.shards]


@op
def reshape(walk: Walk) -> tuple[Value, Shards]:
    size, shape = prod(walk.value.shape), list[int]()
    while size > 1 and len(shape) < 3:
        factor = walk.random.choice([one for one in range(1, size + 1) if size % one == 0])
        shape.append(factor)
        size //= factor
    shape.append(size)
    return walk.lemmas.reshaped(walk.value, shape), [one.reshape(shape) for one in walk.shards]


@op
def broadcast(walk: Walk) -> tuple[Value, Shards]:
    rank = walk.value.rank
    at = walk.random.randrange(rank + 1)
    dims = [dim + (dim >= at) for dim in range(rank)]
    shape = [*walk.value.shape[:at], 2, *walk.value.shape[at:]]
    if rank > 3:
        raise NotCertified("many dimensions")
    return walk.lemmas.broadcast(walk.value, shape, dims), [
        np.broadcast_to(np.expand_dims(one, at), shape) for one in walk.shards
    ]


@op
def slice_(walk: Walk) -> tuple[Value, Shards]:
    dim, step = walk.dim(), walk.random.choice((1, 1, 2))
    start = walk.random.randrange(walk.value.shape[dim])
    size = walk.random.randrange(1, (walk.value.shape[dim] - start - 1) // step + 2)
    found = [one.take(range(start, start + size * step, step)[:size], axis=dim) for one in walk.shards]
    return walk.lemmas.sliced(walk.value, dim, (start, ()), size, step), found


@op
def reverse(walk: Walk) -> tuple[Value, Shards]:
    dim = walk.dim()
    return walk.lemmas.reversed(walk.value, [dim]), [np.flip(one, dim) for one in walk.shards]


@op
def pad(walk: Walk) -> tuple[Value, Shards]:
    dim, rank = walk.dim(), walk.value.rank
    low, high = [0] * rank, [0] * rank
    low[dim], high[dim] = walk.random.randrange(3), walk.random.randrange(3)
    number = walk.random.choice((0.0, 5.0))
    of = walk.lemmas.constant("f64", repr(number), ())
    found = [np.pad(one, list(zip(low, high, strict=True)), constant_values=number) for one in walk.shards]
    return walk.lemmas.padded(walk.value, of, low, high), found


@op
def concatenate(walk: Walk) -> tuple[Value, Shards]:
    dim = walk.dim()
    size = walk.value.shape[dim]
    cut = walk.random.randrange(1, size + 1)
    pieces = [(0, cut), (cut, size)] if walk.random.random() < 0.5 else [(0, size), (0, cut)]
    values = [walk.lemmas.sliced(walk.value, dim, (low, ()), high - low) for low, high in pieces if high > low]
    found = [np.concatenate([one.take(range(*piece), axis=dim) for piece in pieces], dim) for one in walk.shards]
    return walk.lemmas.joined(values, dim), found


@op
def add(walk: Walk) -> tuple[Value, Shards]:
    return walk.lemmas.pointwise(("stablehlo.add",), [walk.value, walk.value]), [one + one for one in walk.shards]


@op
def reduce_(walk: Walk) -> tuple[Value, Shards]:
    dim, kind = walk.dim(), walk.random.choice(("add", "maximum"))
    combined = np.sum if kind == "add" else np.max
    return walk.lemmas.reduced(kind, walk.value, [dim]), [combined(one, axis=dim) for one in walk.shards]


@op
def contract(walk: Walk) -> tuple[Value, Shards]:
    dim = walk.dim()
    labels = ["abcdefgh"[one] for one in range(walk.value.rank)]
    if len(labels) > 3 or (len(labels) > 2 and prod(walk.value.shape) > 40):
        raise NotCertified("many elements")
    other = [label.upper() if at != dim else label for at, label in enumerate(labels)]
    result = [label for label in labels + other if label != labels[dim]]
    text = f"{''.join(labels)},{''.join(other)}->{''.join(result)}"
    found = [np.einsum(text, one, one) for one in walk.shards]
    operands = [(walk.value, labels), (walk.value, other)]
    return walk.lemmas.opaque(("product", "f64"), operands, result, (), None, "add"), found


@op
def all_slice(walk: Walk) -> tuple[Value, Shards]:
    axes, dim = walk.axes(), walk.dim()
    count = prod(walk.mesh[axis] for axis in axes)
    if walk.value.shape[dim] % count:
        raise NotCertified("not divisible")
    found = [
        np.split(one, count, dim)[walk.group(axes, place).index(at)]
        for at, (one, place) in enumerate(zip(walk.shards, walk.places, strict=True))
    ]
    return walk.lemmas.scattered(walk.value, dim, axes, "all_slice"), found


@op
def all_reduce(walk: Walk) -> tuple[Value, Shards]:
    axes, kind = walk.axes(), walk.random.choice(("add", "maximum"))
    combined = np.sum if kind == "add" else np.max
    found = [combined([walk.shards[one] for one in walk.group(axes, place)], axis=0) for place in walk.places]
    return walk.lemmas.reduced(kind, walk.value, (), axes), found


@op
def all_to_all(walk: Walk) -> tuple[Value, Shards]:
    axes, split, concat = walk.axes(), walk.dim(), walk.dim()
    count = prod(walk.mesh[axis] for axis in axes)
    if walk.value.shape[split] % count:
        raise NotCertified("not divisible")
    found = []
    for at, place in enumerate(walk.places):
        group = walk.group(axes, place)
        parts = [np.split(walk.shards[one], count, split)[group.index(at)] for one in group]
        found.append(np.concatenate(parts, concat))
    return walk.lemmas.exchanged(walk.value, split, concat, axes), found


@op
def permute(walk: Walk) -> tuple[Value, Shards]:
    senders = list(range(len(walk.places)))
    kind = walk.random.randrange(3)
    if kind == 0:
        walk.random.shuffle(senders)
    elif kind == 1:
        axis, offset = walk.random.randrange(len(walk.mesh)), walk.random.choice((-1, 1))
        for at, place in enumerate(walk.places):
            moved = place[axis] + offset
            inside = 0 <= moved < walk.mesh[axis]
            senders[at] = walk.places.index((*place[:axis], moved, *place[axis + 1 :])) if inside else -1
    else:
        senders = [one if walk.random.random() < 0.7 else -1 for one in senders]
    found = [walk.shards[one] if one >= 0 else np.zeros_like(walk.shards[0]) for one in senders]
    return walk.lemmas.permuted(walk.value, np.array(senders), "f64"), found


@op
def mask(walk: Walk) -> tuple[Value, Shards]:
    dim, axes = walk.dim(), walk.axes()
    size, count = walk.value.shape[dim], prod(walk.mesh[axis] for axis in axes)
    end = walk.random.randrange(1, size * count + 1)
    strides, stride = [], size
    for axis in reversed(axes):
        strides.append((stride, -1 - axis))
        stride *= walk.mesh[axis]
    dims = [(one,) for one in walk.value.shape]
    position = walk.lemmas.index("i64", (0, ((1, dim), *strides)), dims)
    condition = walk.lemmas.compared(("compare", "LT"), position, walk.lemmas.index("i64", (end, ()), dims))
    filling = walk.lemmas.constant("f64", "0.0", walk.value.shape)
    found = []
    for at, (one, place) in enumerate(zip(walk.shards, walk.places, strict=True)):
        first = walk.group(axes, place).index(at) * size
        shape = [-1 if other == dim else 1 for other in range(one.ndim)]
        found.append(np.where((np.arange(first, first + size) < end).reshape(shape), one, 0.0))
    return walk.lemmas.selected(condition, walk.value, filling), found


@op
def tiles(walk: Walk) -> tuple[Value, Shards]:
    dim, devices = walk.dim(), len(walk.places)
    size = walk.value.shape[dim]
    cut = walk.random.randrange(1, size + 1)
    swapped = [walk.random.random() < 0.3 for _ in range(devices)]
    base: Any = walk.lemmas.constant("f64", "0.0", walk.value.shape)
    found = [np.zeros_like(one) for one in walk.shards]
    for low, high in ((0, cut), (cut, size)):
        if low == high:
            continue
        piece = walk.lemmas.sliced(walk.value, dim, (low, ()), high - low)
        starts = [size - high if one else low for one in swapped]
        entries = [
            walk.lemmas.entry_of_devices(np.array(starts)) if one == dim else (0, ()) for one in range(walk.value.rank)
        ]
        base = walk.lemmas.tiled(base, piece, entries)
        for at, (one, start) in enumerate(zip(walk.shards, starts, strict=True)):
            where = [slice(None)] * one.ndim
            where[dim] = slice(start, start + high - low)
            found[at][tuple(where)] = one.take(range(low, high), axis=dim)
    whole = walk.lemmas.whole(base)
    if walk.lemmas.is_tiles(whole):
        raise NotCertified("tiles do not fit")
    return whole, found


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("meaning", [ExactTensors, Affine])
@pytest.mark.parametrize("block", range(4))
def test_chains_of_ops(block: int, meaning: Any, even: bool) -> None:
    seeds = range(block * 120, block * 120 + 120)
    check_chains(OPS, seeds, even=even, least=0.9 if even else 0.5, meaning=meaning)


@pytest.mark.parametrize("seed", range(60))
def test_all_shards_together_are_the_global_value(seed: int) -> None:
    walk = Walk(seed, even=seed % 2 == 0)
    shape = [walk.random.randrange(1, 13) for _ in range(2)]
    leaf = walk.lemmas.leaf(("argument", "main", 0), shape)
    axes = [[axis for axis in range(len(walk.mesh)) if axis % 2 == dim] for dim in range(2)]
    shard = walk.lemmas.given(leaf, axes)
    assert walk.lemmas.is_shard(shard, leaf, axes)
    other = [one[::-1] for one in axes[::-1]]
    if prod(walk.mesh) > 1 and min(shape) > 1:
        assert not walk.lemmas.is_shard(shard, leaf, other)
