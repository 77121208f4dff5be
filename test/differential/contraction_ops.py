# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, convolutions, reductions, windows, and operations on matrices."""

from __future__ import annotations

from differential.program import Shape
from differential.scope import SIZES, Scope, array, combiner

_COMBINERS = ["add", "maximum", "minimum", "multiply"]


def dot_general(scope: Scope) -> None:
    """Appends a product; its batch and contracted dimensions are chosen from those of equal sizes."""
    lhs = scope.pick(lambda one: len(one.shape) > 0)
    if lhs is None:
        return
    rhs = scope.pick(lambda one: bool(set(one.shape) & set(lhs.shape))) or lhs
    free = list(range(len(rhs.shape)))
    batch: list[tuple[int, int]] = []
    contracted: list[tuple[int, int]] = []
    for dim, size in enumerate(lhs.shape):
        same = [other for other in free if rhs.shape[other] == size]
        if same and scope.chance(0.6):
            other = scope.random.choice(same)
            free.remove(other)
            scope.random.choice([batch, contracted, contracted]).append((dim, other))
    taken = {dim for dim, _ in batch + contracted}
    shape = [lhs.shape[dim] for dim, _ in batch]
    shape += [size for dim, size in enumerate(lhs.shape) if dim not in taken]
    shape += [rhs.shape[dim] for dim in free]
    if len(shape) > 5:
        return

    def numbers(name: str, dims: list[int]) -> str:
        return f"{name} = [{', '.join(map(str, dims))}]"

    properties = ", ".join(
        [
            numbers("lhs_batching_dimensions", [dim for dim, _ in batch]),
            numbers("rhs_batching_dimensions", [dim for _, dim in batch]),
            numbers("lhs_contracting_dimensions", [dim for dim, _ in contracted]),
            numbers("rhs_contracting_dimensions", [dim for _, dim in contracted]),
        ]
    )
    scope.op(
        "dot_general", [lhs, rhs], [(tuple(shape), "f32")], f"dot_dimension_numbers = #stablehlo.dot<{properties}>"
    )


def dot(scope: Scope) -> None:
    lhs = scope.pick(lambda one: len(one.shape) in (1, 2))
    if lhs is None:
        return
    shape = (lhs.shape[-1],) if scope.chance(0.3) else (lhs.shape[-1], scope.random.choice(SIZES))
    rhs = scope.pick(lambda one: len(one.shape) in (1, 2) and one.shape[0] == lhs.shape[-1]) or scope.of_type(shape)
    scope.op("dot", [lhs, rhs], [((*lhs.shape[:-1], *rhs.shape[1:]), "f32")])


def convolution(scope: Scope) -> None:
    """Appends a convolution with two spatial dimensions, and groups of features or of batches."""
    batch, height, width, features = 4, scope.random.choice([4, 8]), 8, 4
    feature_groups, batch_groups = scope.random.choice([(1, 1), (2, 1), (4, 1), (1, 2)])
    window = scope.random.choice([1, 3])
    outputs = 4 * scope.random.choice([1, 2])
    lhs = scope.of_type((batch, height, width, features))
    rhs = scope.of_type((window, window, features // feature_groups, outputs))
    border = window // 2
    stride = scope.random.choice([1, 1, 2])
    sizes = [-(-(size + 2 * border - window + 1) // stride) for size in (height, width)]
    properties = (
        "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        f"batch_group_count = {batch_groups} : i64, feature_group_count = {feature_groups} : i64, "
        f"window_strides = {array([stride, stride])}, padding = dense<{border}> : tensor<2x2xi64>"
    )
    scope.op("convolution", [lhs, rhs], [((batch // batch_groups, *sizes, outputs), "f32")], properties)


def reduce(scope: Scope) -> None:
    """Reduces one tensor, or two at once, along some dimensions."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    count = scope.random.choice([1, 1, 2])
    values = [value, *(scope.alike(value) for _ in range(count - 1))]
    dims = sorted(scope.random.sample(range(len(value.shape)), scope.random.randint(1, len(value.shape))))
    shape = tuple(size for dim, size in enumerate(value.shape) if dim not in dims)
    region = combiner(scope, scope.random.choice(_COMBINERS), ["f32"] * count)
    initial = [scope.of_type(()) for _ in values]
    scope.op("reduce", [*values, *initial], [(shape, "f32")] * count, f"dimensions = {array(dims)}", [region])


def _window(scope: Scope, shape: Shape) -> tuple[str, Shape]:
    """Returns attributes of windows over a tensor, and the number of windows along each dimension."""
    sizes, strides, padding, counts = [], [], [], []
    for size in shape:
        windowed = size >= 2 and scope.chance(0.5)
        sizes.append(2 if windowed else 1)
        strides.append(scope.random.choice([1, 2]) if windowed else 1)
        padding.append([0, scope.random.choice([0, 1]) if windowed else 0])
        counts.append((size + sum(padding[-1]) - sizes[-1]) // strides[-1] + 1)
    properties = (
        f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, "
        f"padding = dense<{padding}> : tensor<{len(shape)}x2xi64>"
    )
    return properties, tuple(counts)


def reduce_window(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        properties, shape = _window(scope, value.shape)
        region = combiner(scope, scope.random.choice(_COMBINERS))
        scope.op("reduce_window", [value, scope.of_type(())], [(shape, "f32")], properties, [region])


def select_and_scatter(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        properties, shape = _window(scope, value.shape)
        inner = scope.inner(isolated=True)
        left, right = inner.define(()), inner.define(())
        direction = "comparison_direction = #stablehlo<comparison_direction GE>"
        text = f'"stablehlo.compare"({left.name}, {right.name}) <{{{direction}}}> : ({left.type}, {left.type}) -> '
        (larger,) = inner.add([inner.define((), "i1")], text, "tensor<i1>")
        regions = [inner.body("stablehlo.return", [larger], [left, right]), combiner(scope, "add")]
        operands = [value, scope.of_type(shape), scope.of_type(())]
        scope.op("select_and_scatter", operands, [(value.shape, "f32")], properties, regions)


def sort(scope: Scope) -> None:
    """Sorts one tensor, or two by the first, along a dimension."""
    if value := scope.pick(lambda one: len(one.shape) > 0):
        values = [value, *(scope.alike(value) for _ in range(scope.random.choice([0, 1])))]
        inner = scope.inner(isolated=True)
        arguments = [inner.define(()) for _ in range(2 * len(values))]
        direction = "comparison_direction = #stablehlo<comparison_direction LT>"
        names, type_ = f"{arguments[0].name}, {arguments[1].name}", arguments[0].type
        text = f'"stablehlo.compare"({names}) <{{{direction}}}> : ({type_}, {type_}) -> tensor<i1>'
        (smaller,) = inner.add([inner.define((), "i1")], text)
        region = inner.body("stablehlo.return", [smaller], arguments)
        properties = f"dimension = {scope.random.randrange(len(value.shape))} : i64"
        scope.op("sort", values, [(value.shape, "f32")] * len(values), properties, [region])


def batch_norm(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        feature = scope.random.randrange(len(value.shape))
        vectors = [scope.of_type((value.shape[feature],)) for _ in range(4)]
        properties = f"epsilon = 0.1 : f32, feature_index = {feature} : i64"
        scope.op("batch_norm_inference", [value, *vectors], [(value.shape, "f32")], properties)


def matrix(scope: Scope) -> None:
    """Appends a decomposition or a solution, for a batch of square matrices."""
    value = scope.pick(lambda one: len(one.shape) > 1 and one.shape[-1] == one.shape[-2])
    if value is None:
        side = scope.random.choice([2, 4, 8])
        value = scope.of_type((4, side, side))
    if scope.chance(0.4):
        scope.op("cholesky", [value], [(value.shape, "f32")], "lower = true")
        return
    left = scope.chance(0.5)
    other = scope.random.choice([3, 4, 8])
    side = value.shape[-1]
    shape = (*value.shape[:-2], side, other) if left else (*value.shape[:-2], other, side)
    transpose = scope.random.choice(["NO_TRANSPOSE", "TRANSPOSE"])
    properties = (
        f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
        f"transpose_a = #stablehlo<transpose {transpose}>"
    )
    scope.op("triangular_solve", [value, scope.of_type(shape)], [(shape, "f32")], properties)


def fft(scope: Scope) -> None:
    """Transforms real or complex numbers along the last dimension or the last two."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    count = scope.random.randint(1, min(2, len(value.shape)))
    length = value.shape[len(value.shape) - count :]
    kind = scope.random.choice(["FFT", "IFFT", "RFFT"])
    shape, operand = value.shape, value
    if kind == "RFFT":
        shape = (*shape[:-1], shape[-1] // 2 + 1)
    else:
        (operand,) = scope.op("complex", [value, scope.alike(value)], [(value.shape, "complex<f32>")])
    properties = f"fft_length = {array(length)}, fft_type = #stablehlo<fft_type {kind}>"
    (both,) = scope.op("fft", [operand], [(shape, "complex<f32>")], properties)
    scope.op(scope.random.choice(["real", "imag"]), [both], [(shape, "f32")])


def random_bits(scope: Scope) -> None:
    if value := scope.pick():
        state = scope.constant((2,), "ui64")
        if scope.chance(0.4):
            half = scope.constant((2,), "ui32")
            (state,) = scope.op("custom_call", [half, half], [((2,), "ui64")], 'call_target_name = "X64Combine"')
        algorithm = "rng_algorithm = #stablehlo<rng_algorithm DEFAULT>"
        scope.op("rng_bit_generator", [state], [((2,), "ui64"), (value.shape, "ui32")], algorithm)
        scope.converted(scope.values[-1], "f32")
