# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that move elements: reshapes, transposes, broadcasts, slices, concatenations."""

from __future__ import annotations

from differential.program import Value
from differential.scope import SIZES, Scope, array


def transpose(scope: Scope) -> None:
    if value := scope.pick():
        order = list(range(len(value.shape)))
        scope.random.shuffle(order)
        shape = tuple(value.shape[dim] for dim in order)
        scope.op("transpose", [value], [(shape, "f32")], f"permutation = {array(order)}")


def reshape(scope: Scope) -> None:
    """Merges, splits, adds and removes dimensions at random."""
    if value := scope.pick():
        left = value.count
        shape: list[int] = []
        while left > 1 and len(shape) < 4:
            divisors = [size for size in (1, 2, 3, 4, 6, 8, 12, 16, left) if left % size == 0]
            shape.append(scope.random.choice(divisors))
            left //= shape[-1]
        if left > 1:
            shape.append(left)
        scope.op("reshape", [value], [(tuple(shape), "f32")])


def merge_or_split(scope: Scope) -> None:
    """Merges two neighbouring dimensions, or splits one, and keeps the others."""
    value = scope.pick(lambda one: 0 < len(one.shape) < 5)
    if value is None:
        return
    dim, shape = scope.random.randrange(len(value.shape)), list(value.shape)
    if scope.chance(0.5) and dim + 1 < len(shape):
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
    else:
        part = scope.random.choice([size for size in (1, 2, 3, 4, 8) if shape[dim] % size == 0])
        shape[dim : dim + 1] = [part, shape[dim] // part]
    scope.op("reshape", [value], [(tuple(shape), "f32")])


def broadcast(scope: Scope) -> None:
    value = scope.pick(lambda one: len(one.shape) < 4)
    if value is None:
        return
    shape = list(value.shape)
    for dim, size in enumerate(shape):
        if size == 1 and scope.chance(0.5):
            shape[dim] = scope.random.choice(SIZES)
    dims, at = list(range(len(shape))), scope.random.randint(0, len(shape))
    shape.insert(at, scope.random.choice(SIZES))
    dims = [dim + (dim >= at) for dim in dims]
    scope.op("broadcast_in_dim", [value], [(tuple(shape), "f32")], f"broadcast_dimensions = {array(dims)}")


def reverse(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        dims = sorted(scope.random.sample(range(len(value.shape)), scope.random.randint(1, len(value.shape))))
        scope.op("reverse", [value], [(value.shape, "f32")], f"dimensions = {array(dims)}")


def slice_(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        _slice(scope, value, 0.4)


def _slice(scope: Scope, value: Value, share: float) -> Value:
    """Slices each dimension with the probability `share`."""
    starts, limits, strides, shape = [], [], [], []
    for size in value.shape:
        start, stride = 0, 1
        limit = size
        if scope.chance(share):
            limit = scope.random.randint(1, size)
            start, stride = scope.random.randrange(limit), scope.random.choice([1, 1, 2])
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
        shape.append(-(-(limit - start) // stride))
    properties = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
    return scope.op("slice", [value], [(tuple(shape), "f32")], properties)[0]


def pad(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        low, high, between, shape = [], [], [], []
        for size in value.shape:
            padded = scope.chance(0.4)
            low.append(scope.random.randint(0, 2) if padded else 0)
            high.append(scope.random.randint(0, 2) if padded else 0)
            between.append(int(padded and scope.chance(0.3)))
            shape.append(size + low[-1] + high[-1] + between[-1] * (size - 1))
        properties = (
            f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(between)}"
        )
        scope.op("pad", [value, scope.of_type(())], [(tuple(shape), "f32")], properties)


def concatenate(scope: Scope) -> None:
    """Concatenates tensors or slices, and sometimes slices of one tensor, which is a rotation."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    dim = scope.random.randrange(len(value.shape))
    kind = scope.random.random()
    if kind < 0.3:
        cut = _slice(scope, value, 0.0) if scope.chance(0.5) else value
        values = [cut, _slice(scope, value, 0.0)]
    else:
        values = [scope.alike(value) for _ in range(scope.random.randint(1, 3))]
    shape = list(value.shape)
    shape[dim] = sum(one.shape[dim] for one in values)
    scope.op("concatenate", values, [(tuple(shape), "f32")], f"dimension = {dim} : i64")


def _indices(scope: Scope, count: int, *, known: bool) -> list[Value]:
    if known:
        return [scope.constant((), "i32") for _ in range(count)]
    scalar = scope.of_type(())
    return [scope.converted(scalar, "i32") for _ in range(count)]


def dynamic_slice(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        shape = tuple(scope.random.randint(1, size) if scope.chance(0.4) else size for size in value.shape)
        starts = _indices(scope, len(shape), known=scope.chance(0.5))
        scope.op("dynamic_slice", [value, *starts], [(shape, "f32")], f"slice_sizes = {array(shape)}")


def dynamic_update_slice(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        rank = len(value.shape)
        update = scope.pick(
            lambda one: len(one.shape) == rank and all(a <= b for a, b in zip(one.shape, value.shape, strict=True))
        )
        starts = _indices(scope, rank, known=scope.chance(0.5))
        scope.op("dynamic_update_slice", [value, update or value, *starts], [(value.shape, "f32")])
