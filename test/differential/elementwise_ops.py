# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operations, constants, and operations that expand scalars to tensors."""

from __future__ import annotations

from differential.scope import SIZES, Scope, array

_UNARY = [
    "abs",
    "cbrt",
    "ceil",
    "cosine",
    "exponential",
    "exponential_minus_one",
    "floor",
    "log",
    "log_plus_one",
    "logistic",
    "negate",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "sign",
    "sine",
    "sqrt",
    "tan",
    "tanh",
]
_BINARY = ["add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"]
_INTEGER_BINARY = ["and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical", "add"]


def unary(scope: Scope) -> None:
    if value := scope.pick():
        scope.op(scope.random.choice(_UNARY), [value], [(value.shape, "f32")])


def binary(scope: Scope) -> None:
    if value := scope.pick():
        scope.op(scope.random.choice(_BINARY), [value, scope.alike(value)], [(value.shape, "f32")])


def reduce_precision(scope: Scope) -> None:
    if value := scope.pick():
        properties = "exponent_bits = 8 : i32, mantissa_bits = 7 : i32"
        scope.op("reduce_precision", [value], [(value.shape, "f32")], properties)


def predicate(scope: Scope) -> None:
    if value := scope.pick():
        if scope.chance(0.3):
            scope.op("is_finite", [value], [(value.shape, "i1")])
        else:
            properties = "comparison_direction = #stablehlo<comparison_direction LT>"
            scope.op("compare", [value, scope.alike(value)], [(value.shape, "i1")], properties)


def select(scope: Scope) -> None:
    if value := scope.pick():
        of_all = scope.of_type(value.shape if scope.chance(0.6) else (), "i1")
        scope.op("select", [of_all, value, scope.alike(value)], [(value.shape, "f32")])


def clamp(scope: Scope) -> None:
    if value := scope.pick():
        low, high = (scope.of_type(value.shape if scope.chance(0.5) else ()) for _ in range(2))
        scope.op("clamp", [low, value, high], [(value.shape, "f32")])


def integer(scope: Scope) -> None:
    """Appends an operation on integers or booleans, which are converted from floats if necessary."""
    if value := scope.pick():
        element = scope.random.choice(["i32", "i32", "i1"])
        one = scope.pick(element=element) or scope.converted(value, element)
        kind = scope.random.random()
        if kind < 0.2:
            scope.op("not", [one], [(one.shape, element)])
        elif kind < 0.5 and element == "i32":
            scope.op(scope.random.choice(["popcnt", "count_leading_zeros"]), [one], [(one.shape, element)])
        else:
            names = _INTEGER_BINARY if element == "i32" else _INTEGER_BINARY[:3]
            scope.op(scope.random.choice(names), [one, scope.alike(one)], [(one.shape, element)])
        scope.converted(scope.values[-1], "f32")


def complex_numbers(scope: Scope) -> None:
    if value := scope.pick():
        (both,) = scope.op("complex", [value, scope.alike(value)], [(value.shape, "complex<f32>")])
        scope.op(scope.random.choice(["real", "imag"]), [both], [(value.shape, "f32")])


def bitcast(scope: Scope) -> None:
    if (value := scope.pick()) is None:
        return
    kind = scope.random.random()
    if kind < 0.3:
        scope.op("bitcast_convert", [value], [(value.shape, "i32")])
    else:
        (parts,) = scope.op("bitcast_convert", [value], [((*value.shape, 2), "i16")])
        if kind < 0.7:
            scope.op("bitcast_convert", [parts], [(value.shape, "f32")])


def constant(scope: Scope) -> None:
    """Appends a constant with several uses, and computations on it that are also constant."""
    value = scope.pick()
    if value is None or not value.shape:
        return
    one = scope.constant(value.shape)
    if scope.chance(0.5):
        (one,) = scope.op(scope.random.choice(_UNARY), [one], [(one.shape, "f32")])
    for _ in range(scope.random.randint(1, 3)):
        scope.op(scope.random.choice(_BINARY), [one, scope.alike(value)], [(value.shape, "f32")])


def iota(scope: Scope) -> None:
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is not None:
        dim = scope.random.randrange(len(value.shape))
        scope.op("iota", [], [(value.shape, "f32")], f"iota_dimension = {dim} : i64")


def scalar_expansion(scope: Scope) -> None:
    """Broadcasts a scalar, constant or not, to a tensor that is used several times."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    scalar = scope.of_type(())
    (full,) = scope.op("broadcast_in_dim", [scalar], [(value.shape, "f32")], f"broadcast_dimensions = {array([])}")
    for _ in range(scope.random.randint(1, 2)):
        scope.op(scope.random.choice(_BINARY), [value, full], [(value.shape, "f32")])


def fresh_tensor(scope: Scope) -> None:
    """Appends a tensor of a new shape, by an operation without a sharding rule."""
    shape = tuple(scope.random.choice(SIZES) for _ in range(scope.random.randint(1, 3)))
    scope.op("custom_call", [], [(shape, "f32")], 'call_target_name = "source"')
