# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO operations on numbers, without divisions by zero or logarithms and roots of negative numbers."""

from __future__ import annotations

from random import Random

from differential.program import Shape, Value
from differential.scope import SIZES, Scope, array

_ANYWHERE = (
    "abs",
    "cbrt",
    "ceil",
    "cosine",
    "floor",
    "logistic",
    "negate",
    "round_nearest_afz",
    "round_nearest_even",
    "sign",
    "sine",
    "tanh",
)
_NEAR_ZERO = ("exponential", "exponential_minus_one", "tan")
_POSITIVE = ("log", "log_plus_one", "rsqrt", "sqrt")
_BINARY = ("add", "add", "maximum", "minimum", "multiply", "subtract")
_BY_POSITIVE = ("divide", "remainder", "atan2")
_INTEGER = ("add", "and", "or", "xor", "maximum", "minimum", "multiply", "subtract", "shift_left")
_INTEGER_UNARY = ("not", "popcnt", "count_leading_zeros", "negate", "abs")
_DIRECTIONS = ("EQ", "GE", "GT", "LE", "LT", "NE")
_MOST_LITERALS = 64


def literal(random: Random, shape: Shape, element: str) -> str:
    """Returns different numbers, of which a few can be added exactly, or one number for all elements."""

    def one() -> str:
        if element == "i1":
            return random.choice(["true", "false"])
        if element.startswith(("f", "bf")):
            return str(random.randint(-16, 16) / 8)
        return str(random.randint(0, 3))

    def nested(sizes: Shape) -> str:
        return "[" + ", ".join(nested(sizes[1:]) for _ in range(sizes[0])) + "]" if sizes else one()

    count = 1
    for size in shape:
        count *= size
    return nested(shape) if count <= _MOST_LITERALS and random.random() < 0.6 else one()


def positive(scope: Scope, value: Value) -> Value:
    """Appends the magnitude of a value plus 0.5."""
    (magnitude,) = scope.op("abs", [value], [(value.shape, value.element)])
    half = scope.constant(value.shape, value.element, "0.5")
    return scope.op("add", [magnitude, half], [(value.shape, value.element)])[0]


def small(scope: Scope, value: Value) -> Value:
    """Appends a value between -1 and 1."""
    return scope.op("tanh", [value], [(value.shape, value.element)])[0]


def unary(scope: Scope) -> None:
    if value := scope.pick():
        kind = scope.random.random()
        if kind < 0.6:
            name, operand = scope.random.choice(_ANYWHERE), value
        elif kind < 0.8:
            name, operand = scope.random.choice(_NEAR_ZERO), small(scope, value)
        else:
            name, operand = scope.random.choice(_POSITIVE), positive(scope, value)
        scope.op(name, [operand], [(value.shape, "f32")])


def binary(scope: Scope) -> None:
    if (value := scope.pick()) is None:
        return
    other = scope.alike(value)
    if scope.chance(0.75):
        scope.op(scope.random.choice(_BINARY), [value, other], [(value.shape, "f32")])
    elif scope.chance(0.7):
        scope.op(scope.random.choice(_BY_POSITIVE), [value, positive(scope, other)], [(value.shape, "f32")])
    else:
        scope.op("power", [positive(scope, value), small(scope, other)], [(value.shape, "f32")])


def predicate(scope: Scope) -> None:
    if value := scope.pick():
        if scope.chance(0.2):
            scope.op("is_finite", [value], [(value.shape, "i1")])
        else:
            direction = scope.random.choice(_DIRECTIONS)
            properties = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
            scope.op("compare", [value, scope.alike(value)], [(value.shape, "i1")], properties)


def clamp(scope: Scope) -> None:
    """Clamps between bounds of which the lower one is not greater."""
    if value := scope.pick():
        low = scope.of_type(value.shape if scope.chance(0.5) else ())
        (high,) = scope.op("add", [low, positive(scope, low)], [(low.shape, "f32")])
        scope.op("clamp", [low, value, high], [(value.shape, "f32")])


def integer(scope: Scope) -> None:
    """Appends an operation on integers of several widths or booleans, which are converted from floats if necessary."""
    if value := scope.pick():
        element = scope.random.choice(["i32", "i32", "i8", "ui16", "i64", "i1"])
        one = scope.pick(element=element) or scope.converted(value, element)
        if element == "i1":
            scope.op(scope.random.choice(["and", "or", "xor"]), [one, scope.alike(one)], [(one.shape, element)])
        elif scope.chance(0.3):
            names = _INTEGER_UNARY if element.startswith("i") else _INTEGER_UNARY[:3]
            scope.op(scope.random.choice(names), [one], [(one.shape, element)])
        else:
            scope.op(scope.random.choice(_INTEGER), [one, scope.alike(one)], [(one.shape, element)])
        scope.converted(scope.values[-1], "f32")


def shift_right(scope: Scope) -> None:
    """Shifts integers to the right, filled with the sign or with zeros."""
    if value := scope.pick():
        element = scope.random.choice(["i32", "i8", "ui16", "i64"])
        one = scope.converted(value, element)
        (many,) = scope.op("abs", [value], [(value.shape, "f32")])
        count = scope.converted(many, element)
        name = "shift_right_logical" if element[0] == "u" or scope.chance(0.5) else "shift_right_arithmetic"
        scope.op(name, [one, count], [(value.shape, element)])
        scope.converted(scope.values[-1], "f32")


def narrow(scope: Scope) -> None:
    """Converts to a narrower float and back, with an operation in between."""
    if value := scope.pick():
        element = scope.random.choice(["bf16", "f16"])
        one = scope.converted(small(scope, value), element)
        (other,) = scope.op(scope.random.choice(["abs", "negate"]), [one], [(one.shape, element)])
        scope.converted(other, "f32")


def bitcast(scope: Scope) -> None:
    """Splits integers into halves, and perhaps joins them again."""
    if value := scope.pick():
        (parts,) = scope.op("bitcast_convert", [scope.converted(value, "i32")], [((*value.shape, 2), "i16")])
        if scope.chance(0.6):
            scope.op("bitcast_convert", [parts], [(value.shape, "i32")])
        scope.converted(scope.values[-1], "f32")


def constant(scope: Scope) -> None:
    """Appends a constant with several uses."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    one = scope.constant(value.shape)
    for _ in range(scope.random.randint(1, 2)):
        scope.op(scope.random.choice(_BINARY), [one, scope.alike(value)], [(value.shape, "f32")])


def iota(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        dim = scope.random.randrange(len(value.shape))
        element = scope.random.choice(["f32", "f32", "i32"])
        scope.op("iota", [], [(value.shape, element)], f"iota_dimension = {dim} : i64")


def scalar_expansion(scope: Scope) -> None:
    """Broadcasts a scalar, constant or not, to a tensor."""
    if value := scope.pick(lambda one: len(one.shape) > 0):
        scalar = scope.of_type(())
        (full,) = scope.op("broadcast_in_dim", [scalar], [(value.shape, "f32")], f"broadcast_dimensions = {array([])}")
        scope.op(scope.random.choice(_BINARY), [value, full], [(value.shape, "f32")])


def fresh_tensor(scope: Scope) -> None:
    """Appends a tensor of a new shape."""
    shape = tuple(scope.random.choice(SIZES) for _ in range(scope.random.randint(1, 3)))
    scope.op("iota", [], [(shape, "f32")], f"iota_dimension = {scope.random.randrange(len(shape))} : i64")
    scope.op("sine", [scope.values[-1]], [(shape, "f32")])
