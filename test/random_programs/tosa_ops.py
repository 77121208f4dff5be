# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of tosa on tensors of rank one or more."""

from __future__ import annotations

from differential.program import Shape, Value
from differential.scope import SIZES, Scope

_BINARY = ("add", "sub", "maximum", "minimum")
_UNARY = ("abs", "ceil", "exp", "floor", "sigmoid", "tanh", "cos", "sin")


def _emit(
    scope: Scope, name: str, operands: list[Value], shape: Shape, attributes: str = "", element: str = "f32"
) -> Value:
    result = scope.define(shape, element)
    names, types = ", ".join(one.name for one in operands), ", ".join(one.type for one in operands)
    spelled = f" {{{attributes}}}" if attributes else scope.annotations.on_op([len(shape)], scope.manual)
    return scope.add([result], f"tosa.{name} {names}", spelled, f" : ({types}) -> {result.type}")[0]


def _const(scope: Scope, literal: str, shape: Shape, element: str = "f32") -> Value:
    result = scope.define(shape, element)
    text = f'"tosa.const"() <{{values = dense<{literal}> : {result.type}}}> : () -> {result.type}'
    return scope.add([result], text, seen=False)[0]


class _Sizes(Value):
    """The sizes of a tensor, or numbers for each of its dimensions, as an operand."""

    __slots__ = ()

    @property
    def type(self) -> str:
        return f"!tosa.shape<{self.shape[0]}>"


def _sizes(scope: Scope, sizes: Shape) -> Value:
    result = _Sizes(scope.module.fresh(), (len(sizes),), "index")
    text = f"tosa.const_shape {{values = dense<{list(sizes)}> : tensor<{len(sizes)}xindex>}} : () -> {result.type}"
    scope.add([result], text, seen=False)
    return result


def _ranked(scope: Scope, least: int = 1, most: int = 4) -> Value | None:
    return scope.pick(lambda one: least <= len(one.shape) <= most)


def unary(scope: Scope) -> None:
    if value := _ranked(scope):
        name = scope.random.choice(_UNARY)
        operand = _emit(scope, "tanh", [value], value.shape) if name == "exp" else value
        _emit(scope, name, [operand], value.shape)


def binary(scope: Scope) -> None:
    """Appends a binary operation, perhaps with a dimension of size one that is broadcast."""
    if value := _ranked(scope):
        other = scope.alike(value)
        if scope.chance(0.4):
            shape = tuple(1 if scope.chance(0.5) else size for size in value.shape)
            other = scope.pick(lambda one: one.shape == shape) or _const(scope, _literal(scope, shape), shape)
        if scope.chance(0.3):
            _emit(scope, "mul", [value, other, _const(scope, "0", (1,), "i8")], value.shape)
        else:
            _emit(scope, scope.random.choice(_BINARY), [value, other], value.shape)


def _literal(scope: Scope, shape: Shape) -> str:
    return scope.module.literal(scope.random, shape, "f32")


def constant(scope: Scope) -> None:
    if value := _ranked(scope):
        scope.values.append(_const(scope, _literal(scope, value.shape), value.shape))


def clamp(scope: Scope) -> None:
    if value := _ranked(scope):
        _emit(scope, "clamp", [value], value.shape, "min_val = -1.0 : f32, max_val = 0.75 : f32")


def select(scope: Scope) -> None:
    if value := _ranked(scope):
        name = scope.random.choice(["greater", "greater_equal"])
        mask = _emit(scope, name, [value, scope.alike(value)], value.shape, "", "i1")
        _emit(scope, "select", [mask, scope.alike(value), value], value.shape)


def cast(scope: Scope) -> None:
    if value := _ranked(scope):
        number = _emit(scope, "cast", [value], value.shape, "", "i32")
        _emit(scope, "cast", [number], value.shape)


def reduce(scope: Scope) -> None:
    if value := _ranked(scope):
        axis = scope.random.randrange(len(value.shape))
        shape = tuple(1 if dim == axis else size for dim, size in enumerate(value.shape))
        name = scope.random.choice(["reduce_sum", "reduce_max", "reduce_min", "reduce_product"])
        _emit(scope, name, [value], shape, f"axis = {axis} : i32")


def arg_max(scope: Scope) -> None:
    if value := _ranked(scope, least=2):
        axis = scope.random.randrange(len(value.shape))
        shape = tuple(size for dim, size in enumerate(value.shape) if dim != axis)
        found = _emit(scope, "argmax", [value], shape, f"axis = {axis} : i32", "i32")
        _emit(scope, "cast", [found], shape)


def matmul(scope: Scope) -> None:
    if value := _ranked(scope, 3, 3):
        batch, rows, inner = value.shape
        shape = (batch, inner, scope.random.choice(SIZES))
        other = scope.pick(lambda one: one.shape[:2] == shape[:2] and len(one.shape) == 3)
        other = other or _const(scope, _literal(scope, shape), shape)
        zero = _const(scope, "0.0", (1,))
        _emit(scope, "matmul", [value, other, zero, zero], (batch, rows, other.shape[2]))


def convolution(scope: Scope) -> None:
    if value := _ranked(scope, 4, 4):
        batch, height, width, features = value.shape
        window, border = scope.random.choice([(1, 0), (3, 1)])
        outputs = scope.random.choice([2, 4, 5])
        kernel = _const(
            scope, _literal(scope, (outputs, window, window, features)), (outputs, window, window, features)
        )
        bias, zero = _const(scope, _literal(scope, (outputs,)), (outputs,)), _const(scope, "0.0", (1,))
        attributes = f"acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: {', '.join([str(border)] * 4)}>"
        operands = [value, kernel, bias, zero, zero]
        _emit(scope, "conv2d", operands, (batch, height, width, outputs), f"{attributes}, stride = array<i64: 1, 1>")


def pooling(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) == 4 and min(one.shape[1:3]) >= 2):
        batch, height, width, features = value.shape
        attributes = "kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>"
        shape = (batch, height - 1, width - 1, features)
        if scope.chance(0.5):
            _emit(scope, "max_pool2d", [value], shape, attributes)
        else:
            zero = _const(scope, "0.0", (1,))
            _emit(scope, "avg_pool2d", [value, zero, zero], shape, f"acc_type = f32, {attributes}")


def pad(scope: Scope) -> None:
    if value := _ranked(scope):
        amounts = [scope.random.choice([0, 0, 1, 2]) for _ in range(2 * len(value.shape))]
        shape = tuple(size + amounts[2 * dim] + amounts[2 * dim + 1] for dim, size in enumerate(value.shape))
        _emit(scope, "pad", [value, _sizes(scope, tuple(amounts)), _const(scope, "0.5", (1,))], shape)


def cut(scope: Scope) -> None:
    if value := _ranked(scope):
        shape = tuple(scope.random.randint(1, size) if scope.chance(0.5) else size for size in value.shape)
        starts = tuple(scope.random.randint(0, size - part) for size, part in zip(value.shape, shape, strict=True))
        _emit(scope, "slice", [value, _sizes(scope, starts), _sizes(scope, shape)], shape)


def transpose(scope: Scope) -> None:
    if value := _ranked(scope, least=2):
        order = list(range(len(value.shape)))
        scope.random.shuffle(order)
        shape = tuple(value.shape[dim] for dim in order)
        _emit(scope, "transpose", [value], shape, f"perms = array<i32: {', '.join(map(str, order))}>")


def reshape(scope: Scope) -> None:
    value = _ranked(scope, most=3)
    if value is None:
        return
    dim, shape = scope.random.randrange(len(value.shape)), list(value.shape)
    if scope.chance(0.5) and dim + 1 < len(shape):
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
    else:
        part = scope.random.choice([size for size in (1, 2, 3, 4) if shape[dim] % size == 0])
        shape[dim : dim + 1] = [part, shape[dim] // part]
    _emit(scope, "reshape", [value, _sizes(scope, tuple(shape))], tuple(shape))


def reverse(scope: Scope) -> None:
    if value := _ranked(scope):
        _emit(scope, "reverse", [value], value.shape, f"axis = {scope.random.randrange(len(value.shape))} : i32")


def tile(scope: Scope) -> None:
    if value := _ranked(scope, most=3):
        times = tuple(scope.random.choice([1, 1, 2]) for _ in value.shape)
        shape = tuple(size * count for size, count in zip(value.shape, times, strict=True))
        _emit(scope, "tile", [value, _sizes(scope, times)], shape)


def concatenate(scope: Scope) -> None:
    if value := _ranked(scope):
        axis = scope.random.randrange(len(value.shape))
        shape = tuple(2 * size if dim == axis else size for dim, size in enumerate(value.shape))
        _emit(scope, "concat", [value, scope.alike(value)], shape, f"axis = {axis} : i32")


def gather(scope: Scope) -> None:
    """Gathers rows of each batch by their indices."""
    if value := _ranked(scope, 3, 3):
        batch, rows, features = value.shape
        count = scope.random.choice([2, 3, 4])
        numbers = str([[scope.random.randrange(rows) for _ in range(count)] for _ in range(batch)])
        _emit(scope, "gather", [value, _const(scope, numbers, (batch, count), "i32")], (batch, count, features))
