# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO operations that order, reduce, count and solve, on values with a unique right answer."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from differential.program import Shape, Statement, Value
from differential.scope import Scope, array, combiner

from random_programs.numeric_ops import positive

_NEUTRAL = {"add": "0.0", "multiply": "1.0", "maximum": "0xFF800000", "minimum": "0x7F800000"}
_NEUTRAL_INTEGERS = {"add": "0", "and": "-1", "or": "0", "xor": "0", "maximum": "-2147483648", "minimum": "2147483647"}
_COMPARE = "comparison_direction = #stablehlo<comparison_direction {}>"


MOST_FACTORS = 64
"""The maximum number of factors: whether a longer product overflows depends on the order of its factors."""


def _initial(scope: Scope, name: str, *, is_neutral: bool) -> Value:
    """Returns the initial value of a reduction: the neutral one in a form that is valid for all floats, or another."""
    if scope.chance(0.3) and not is_neutral:
        return scope.of_type(())
    neutral = _NEUTRAL[name]
    if neutral.startswith("0x"):
        neutral = "-1.0e38" if name == "maximum" else "1.0e38"
    return _extreme(scope, neutral)


def _extreme(scope: Scope, literal: str) -> Value:
    """Returns a constant for this use only, because its conversion to an integer would be out of range."""
    value = scope.constant((), "f32", literal)
    scope.values.remove(value)
    return value


def reduce(scope: Scope, *, is_neutral: bool = False) -> None:
    """Reduces one tensor, or two at once, along some dimensions, with the same operation for both.

    With `is_neutral` initial values are neutral: how often others are combined is not specified.
    """
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    count = scope.random.choice([1, 1, 1, 2])
    values = [value, *(scope.alike(value) for _ in range(count - 1))]
    dims, shape = _reduced(scope, value.shape)
    name = scope.random.choice([*_NEUTRAL])
    if name == "multiply" and prod(value.shape[dim] for dim in dims) > MOST_FACTORS:
        name = "add"
    region = combiner(scope, name, ["f32"] * count)
    initial = [_initial(scope, name, is_neutral=is_neutral) for _ in values]
    scope.op("reduce", [*values, *initial], [(shape, "f32")] * count, f"dimensions = {array(dims)}", [region])


def _reduced(scope: Scope, shape: Shape) -> tuple[list[int], Shape]:
    dims = sorted(scope.random.sample(range(len(shape)), scope.random.randint(1, len(shape))))
    return dims, tuple(size for dim, size in enumerate(shape) if dim not in dims)


def reduce_integers(scope: Scope) -> None:
    """Reduces integers, or booleans by logical operations."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    dims, shape = _reduced(scope, value.shape)
    if scope.chance(0.4):
        one = scope.pick(lambda one: len(one.shape) > 0, "i1") or scope.converted(value, "i1")
        dims, shape = _reduced(scope, one.shape)
        name = scope.random.choice(["and", "or"])
        initial = scope.constant((), "i1", "true" if name == "and" else "false")
    else:
        one = scope.converted(value, "i32")
        name = scope.random.choice([*_NEUTRAL_INTEGERS])
        initial = scope.constant((), "i32", _NEUTRAL_INTEGERS[name])
    region = combiner(scope, name, [one.element])
    scope.op("reduce", [one, initial], [(shape, one.element)], f"dimensions = {array(dims)}", [region])
    scope.converted(scope.values[-1], "f32")


def arg_max(scope: Scope) -> None:
    """Finds the largest element along a dimension and its index, by a region of several operations on two tensors."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    dim = scope.random.randrange(len(value.shape))
    (index,) = scope.op("iota", [], [(value.shape, "i32")], f"iota_dimension = {dim} : i64")
    inner = scope.inner(isolated=True)
    left, left_at, right, right_at = (inner.define((), element) for element in ("f32", "i32", "f32", "i32"))

    same, earlier = _compared(inner, "EQ", left, right), _compared(inner, "LT", left_at, right_at)
    both = _combined(inner, "and", [same, earlier], "i1")
    is_left = _combined(inner, "or", [_compared(inner, "GT", left, right), both], "i1")
    returned = [
        _combined(inner, "select", [is_left, left, right], "f32"),
        _combined(inner, "select", [is_left, left_at, right_at], "i32"),
    ]
    region = inner.body("stablehlo.return", returned, [left, left_at, right, right_at])
    shape = tuple(size for one, size in enumerate(value.shape) if one != dim)
    initial = [_extreme(scope, "-1.0e38"), scope.constant((), "i32", "2147483647")]
    operands, dims = [value, index, *initial], f"dimensions = {array([dim])}"
    scope.op("reduce", operands, [(shape, "f32"), (shape, "i32")], dims, [region])


def _compared(inner: Scope, direction: str, one: Value, other: Value) -> Value:
    """Appends a comparison of scalars to a region."""
    return _combined(inner, "compare", [one, other], "i1", f" <{{{_COMPARE.format(direction)}}}>")


def _combined(inner: Scope, name: str, operands: Sequence[Value], element: str, properties: str = "") -> Value:
    """Appends an operation on scalars to a region, without a sharding."""
    result = inner.define((), element)
    names, types = ", ".join(one.name for one in operands), ", ".join(one.type for one in operands)
    text = f'"stablehlo.{name}"({names}){properties} : ({types}) -> {result.type}'
    inner.statements.append(Statement((result,), (text,)))
    return result


def _window(scope: Scope, shape: Shape) -> tuple[str, Shape] | None:
    """Returns attributes of windows over a tensor, and the number of windows along each dimension."""
    sizes, strides, dilations, padding, counts = [], [], [], [], []
    for size in shape:
        windowed = size >= 2 and scope.chance(0.5)
        sizes.append(scope.random.choice([2, 3]) if windowed else 1)
        strides.append(scope.random.choice([1, 2]) if windowed else 1)
        dilations.append(scope.random.choice([1, 1, 2]) if windowed else 1)
        padding.append([scope.random.choice([0, 1]) if windowed else 0 for _ in range(2)])
        width = (sizes[-1] - 1) * dilations[-1] + 1
        counts.append((size + sum(padding[-1]) - width) // strides[-1] + 1)
    if min(counts) < 1:
        return None
    properties = (
        f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, "
        f"window_dilations = {array(dilations)}, padding = dense<{padding}> : tensor<{len(shape)}x2xi64>"
    )
    return properties, tuple(counts)


def reduce_window(scope: Scope, *, is_neutral: bool = False) -> None:
    """Reduces windows; `is_neutral` as for `reduce`."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None or (window := _window(scope, value.shape)) is None:
        return
    name = scope.random.choice([*_NEUTRAL])
    initial = _initial(scope, name, is_neutral=is_neutral)
    scope.op("reduce_window", [value, initial], [(window[1], "f32")], window[0], [combiner(scope, name)])


def cumulative(scope: Scope) -> None:
    """Accumulates sums, products or extremes along a dimension, in either direction."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    dim, rank = scope.random.randrange(len(value.shape)), len(value.shape)
    size, is_reverse = value.shape[dim], scope.chance(0.3)
    window = [size if one == dim else 1 for one in range(rank)]
    ends = [0, size - 1] if is_reverse else [size - 1, 0]
    padding = [ends if one == dim else [0, 0] for one in range(rank)]
    name = scope.random.choice([*_NEUTRAL])
    initial = _extreme(scope, {"maximum": "-1.0e38", "minimum": "1.0e38"}.get(name, _NEUTRAL[name]))
    properties = f"window_dimensions = {array(window)}, padding = dense<{padding}> : tensor<{rank}x2xi64>"
    scope.op("reduce_window", [value, initial], [(value.shape, "f32")], properties, [combiner(scope, name)])


def sort(scope: Scope) -> None:
    """Sorts one tensor, or two by the first, along a dimension; equal elements keep their order."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    values = [value, *(scope.alike(value) for _ in range(scope.random.choice([0, 1])))]
    inner = scope.inner(isolated=True)
    arguments = [inner.define(()) for _ in range(2 * len(values))]
    direction = _COMPARE.format(scope.random.choice(["LT", "GT"]))
    names, type_ = f"{arguments[0].name}, {arguments[1].name}", arguments[0].type
    text = f'"stablehlo.compare"({names}) <{{{direction}}}> : ({type_}, {type_}) -> tensor<i1>'
    (smaller,) = inner.add([inner.define((), "i1")], text)
    region = inner.body("stablehlo.return", [smaller], arguments)
    properties = f"dimension = {scope.random.randrange(len(value.shape))} : i64, is_stable = true"
    scope.op("sort", values, [(value.shape, "f32")] * len(values), properties, [region])


def sort_by_keys(scope: Scope) -> None:
    """Sorts a tensor and the positions in it by two keys: an integer, of which many are equal, and then a float."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    dim = scope.random.randrange(len(value.shape))
    key = scope.converted(value, scope.random.choice(["i32", "i8", "ui16"]))
    (position,) = scope.op("iota", [], [(value.shape, "i32")], f"iota_dimension = {dim} : i64")
    operands = [key, scope.alike(value), position]
    inner = scope.inner(isolated=True)
    arguments = [inner.define((), one.element) for one in operands for _ in range(2)]
    first, second = scope.random.choice(["LT", "GT"]), scope.random.choice(["LT", "GT"])
    same, is_before = (_compared(inner, direction, *arguments[:2]) for direction in ("EQ", first))
    later = _combined(inner, "and", [same, _compared(inner, second, *arguments[2:4])], "i1")
    smaller = _combined(inner, "or", [is_before, later], "i1")
    region = inner.body("stablehlo.return", [smaller], arguments)
    results = [(one.shape, one.element) for one in operands]
    made = scope.op("sort", operands, results, f"dimension = {dim} : i64, is_stable = true", [region])
    scope.converted(made[scope.random.choice([0, 2])], "f32")


def top_k(scope: Scope) -> None:
    """Returns the largest elements along the last dimension and their positions."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    shape = (*value.shape[:-1], scope.random.randint(1, value.shape[-1]))
    largest, position = scope.define(shape), scope.define(shape, "i32")
    text = (
        f'"chlo.top_k"({value.name}) <{{k = {shape[-1]} : i64}}> : ({value.type}) -> ({largest.type}, {position.type})'
    )
    scope.add([largest, position], text)
    scope.converted(position, "f32")


def reduce_differently(scope: Scope) -> None:
    """Reduces floats and integers at once, by different operations."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    other = scope.converted(scope.alike(value), "i32")
    dims, shape = _reduced(scope, value.shape)
    names = scope.random.choice(["add", "maximum", "minimum"]), scope.random.choice([*_NEUTRAL_INTEGERS])
    inner = scope.inner(isolated=True)
    left, left_integer, right, right_integer = (inner.define((), element) for element in ("f32", "i32", "f32", "i32"))
    one = _combined(inner, names[0], [left, right], "f32")
    two = _combined(inner, names[1], [left_integer, right_integer], "i32")
    region = inner.body("stablehlo.return", [one, two], [left, left_integer, right, right_integer])
    initial = [_initial(scope, names[0], is_neutral=True), scope.constant((), "i32", _NEUTRAL_INTEGERS[names[1]])]
    scope.values.remove(initial[1])
    results = [(shape, "f32"), (shape, "i32")]
    scope.op("reduce", [value, other, *initial], results, f"dimensions = {array(dims)}", [region])


def mapped(scope: Scope) -> None:
    """Maps a computation on scalars over two tensors."""
    if value := scope.pick():
        inner = scope.inner(isolated=True)
        left, right = inner.define(()), inner.define(())
        both = _combined(inner, "multiply", [left, right], "f32")
        result = _combined(inner, scope.random.choice(["sine", "abs", "floor"]), [both], "f32")
        region = inner.body("stablehlo.return", [result], [left, right])
        dims = f"dimensions = {array(range(len(value.shape)))}"
        scope.op("map", [value, scope.alike(value)], [(value.shape, "f32")], dims, [region])


def batch_norm_training(scope: Scope) -> None:
    """Normalizes by the statistics of a tensor, or returns the gradients of that."""
    value = scope.pick(lambda one: len(one.shape) > 1)
    if value is None:
        return
    feature = scope.random.randrange(len(value.shape))
    vector = ((value.shape[feature],), "f32")
    properties = f"epsilon = 0.1 : f32, feature_index = {feature} : i64"
    scale, other = scope.of_type(vector[0]), scope.of_type(vector[0])
    results = [(value.shape, "f32"), vector, vector]
    if scope.chance(0.5):
        scope.op("batch_norm_training", [value, scale, other], results, properties)
    else:
        variance = positive(scope, scope.of_type(vector[0]))
        scope.op("batch_norm_grad", [value, scale, other, variance, scope.alike(value)], results, properties)


def batch_norm(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        feature = scope.random.randrange(len(value.shape))
        vectors = [scope.of_type((value.shape[feature],)) for _ in range(3)]
        variance = positive(scope, scope.of_type((value.shape[feature],)))
        properties = f"epsilon = 0.1 : f32, feature_index = {feature} : i64"
        scope.op("batch_norm_inference", [value, *vectors, variance], [(value.shape, "f32")], properties)


def matrix(scope: Scope) -> None:
    """Appends a decomposition or a solution, for a batch of square matrices for which it exists."""
    value = scope.pick(lambda one: len(one.shape) > 1 and one.shape[-1] == one.shape[-2])
    if value is None:
        side = scope.random.choice([2, 3, 4])
        value = scope.of_type((4, side, side))
    rank, side = len(value.shape), value.shape[-1]
    batch = list(range(rank - 2))
    (bounded,) = scope.op("tanh", [value], [(value.shape, "f32")])
    numbers = (
        f"lhs_batching_dimensions = {batch}, rhs_batching_dimensions = {batch}, "
        f"lhs_contracting_dimensions = [{rank - 1}], rhs_contracting_dimensions = [{rank - 1}]"
    )
    properties = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"
    (square,) = scope.op("dot_general", [bounded, bounded], [(value.shape, "f32")], properties)
    unit = str([[float(row == column) * (side + 1) for column in range(side)] for row in range(side)])
    identity = scope.constant((side, side), "f32", unit)
    dims = f"broadcast_dimensions = {array([rank - 2, rank - 1])}"
    (spread,) = scope.op("broadcast_in_dim", [identity], [(value.shape, "f32")], dims)
    (regular,) = scope.op("add", [square, spread], [(value.shape, "f32")])
    if scope.chance(0.4):
        (root,) = scope.op("cholesky", [regular], [(value.shape, "f32")], "lower = true", seen=False)
        # The elements of the other triangle of the result are unspecified.
        rows, columns = (
            scope.op("iota", [], [(value.shape, "i32")], f"iota_dimension = {dim} : i64")[0]
            for dim in (rank - 2, rank - 1)
        )
        (lower,) = scope.op("compare", [rows, columns], [(value.shape, "i1")], _COMPARE.format("GE"))
        scope.op("select", [lower, root, spread], [(value.shape, "f32")])
        return
    left, other = scope.chance(0.5), scope.random.choice([3, 4, 8])
    shape = (*value.shape[:-2], side, other) if left else (*value.shape[:-2], other, side)
    transpose = scope.random.choice(["NO_TRANSPOSE", "TRANSPOSE"])
    properties = (
        f"left_side = {str(left).lower()}, lower = {str(scope.chance(0.5)).lower()}, unit_diagonal = false, "
        f"transpose_a = #stablehlo<transpose {transpose}>"
    )
    scope.op("triangular_solve", [regular, scope.of_type(shape)], [(shape, "f32")], properties)


def random_bits(scope: Scope) -> None:
    """Generates random numbers and uses only results that do not depend on the generator."""
    if value := scope.pick():
        state = scope.constant((2,), "ui64")
        algorithm = "rng_algorithm = #stablehlo<rng_algorithm DEFAULT>"
        _, bits = scope.op("rng_bit_generator", [state], [((2,), "ui64"), (value.shape, "ui32")], algorithm, seen=False)
        none = scope.constant(value.shape, "ui32", "0")
        scope.op("and", [bits, none], [(value.shape, "ui32")])
        scope.converted(scope.values[-1], "f32")
