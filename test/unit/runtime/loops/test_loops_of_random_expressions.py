# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares random expressions of tensors that are large enough for tiles and vectors with NumPy.

Elements are small integers, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime.in_process import run

Array = Any
_SIZES = (1, 7, 33, 64, 80)
_MOST_ELEMENTS = 10_000
_MODULUS = 17


class Expression:
    """Lines of StableHLO with their values in NumPy."""

    def __init__(self, inputs: list[Array]) -> None:
        self.inputs = inputs
        self.values = {f"%arg{index}": one for index, one in enumerate(inputs)}
        self.lines: list[str] = []

    def add(self, text: str, value: Array) -> None:
        """Adds a line. `text` ends with the types of the operands."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text} -> {type_of(value)}")
        self.values[name] = value

    def text(self, results: list[str]) -> str:
        """Returns the program that returns some of the values."""
        arguments = ", ".join(f"%arg{index}: {type_of(one)}" for index, one in enumerate(self.inputs))
        types = ", ".join(type_of(self.values[one]) for one in results)
        body = "\n  ".join(self.lines)
        return f"func.func @main({arguments}) -> ({types}) {{\n  {body}\n  return {', '.join(results)} : {types}\n}}"


def type_of(value: Array) -> str:
    """Returns the type of an array."""
    return f"tensor<{''.join(f'{size}x' for size in value.shape)}f32>"


def _binary(expression: Expression, draw: Callable[[Any], Any], name: str) -> None:
    value = expression.values[name]
    alike = [one for one, of in expression.values.items() if of.shape == value.shape]
    other = draw(st.sampled_from(alike))
    op, function = draw(st.sampled_from([("add", np.add), ("subtract", np.subtract), ("maximum", np.maximum)]))
    types = f"({type_of(value)}, {type_of(value)})"
    expression.add(f'"stablehlo.{op}"({name}, {other}) : {types}', function(value, expression.values[other]))


def _transpose(expression: Expression, draw: Callable[[Any], Any], name: str) -> None:
    value = expression.values[name]
    order = draw(st.permutations(range(value.ndim)))
    attribute = f"permutation = array<i64: {', '.join(map(str, order))}>" if order else "permutation = array<i64>"
    expression.add(
        f'"stablehlo.transpose"({name}) <{{{attribute}}}> : ({type_of(value)})', np.transpose(value, order).copy()
    )


def _reverse(expression: Expression, draw: Callable[[Any], Any], name: str) -> None:
    value = expression.values[name]
    dim = draw(st.integers(0, value.ndim - 1))
    text = f'"stablehlo.reverse"({name}) <{{dimensions = array<i64: {dim}>}}> : ({type_of(value)})'
    expression.add(text, np.flip(value, dim).copy())


def _slice(expression: Expression, draw: Callable[[Any], Any], name: str) -> None:
    value = expression.values[name]
    bounds = []
    for size in value.shape:
        start = draw(st.integers(0, size // 2))
        bounds.append((start, draw(st.integers(start + 1, size)), draw(st.sampled_from((1, 1, 2)))))
    lists = [", ".join(map(str, of)) for of in zip(*bounds, strict=True)]
    attributes = ", ".join(
        f"{key} = array<i64: {numbers}>"
        for key, numbers in zip(("start_indices", "limit_indices", "strides"), lists, strict=True)
    )
    part = value[tuple(slice(*one) for one in bounds)].copy()
    expression.add(f'"stablehlo.slice"({name}) <{{{attributes}}}> : ({type_of(value)})', part)


def _broadcast(expression: Expression, draw: Callable[[Any], Any], name: str) -> None:
    value = expression.values[name]
    size, place = draw(st.sampled_from(_SIZES)), draw(st.integers(0, value.ndim))
    if value.ndim == 3 or value.size * size > _MOST_ELEMENTS:
        return
    dims = [dim + (dim >= place) for dim in range(value.ndim)]
    shape = [*value.shape[:place], size, *value.shape[place:]]
    attribute = f"broadcast_dimensions = array<i64: {', '.join(map(str, dims))}>"
    result = np.broadcast_to(np.expand_dims(value, place), shape).copy()
    expression.add(f'"stablehlo.broadcast_in_dim"({name}) <{{{attribute}}}> : ({type_of(value)})', result)


def _reduce(expression: Expression, draw: Callable[[Any], Any], name: str) -> None:
    value = expression.values[name]
    if value.ndim < 2:
        return
    dim = draw(st.integers(0, value.ndim - 1))
    expression.add(
        f"stablehlo.reduce({name} init: %zero) applies stablehlo.add across dimensions = [{dim}] :"
        f" ({type_of(value)}, tensor<f32>)",
        value.sum(dim),
    )


def _concatenate(expression: Expression, draw: Callable[[Any], Any], name: str) -> None:
    value = expression.values[name]
    dim = draw(st.integers(0, value.ndim - 1))
    if 2 * value.size > _MOST_ELEMENTS:
        return
    alike = [one for one, of in expression.values.items() if of.shape == value.shape]
    other = draw(st.sampled_from(alike))
    expression.add(
        f'"stablehlo.concatenate"({name}, {other}) <{{dimension = {dim} : i64}}> :'
        f" ({type_of(value)}, {type_of(value)})",
        np.concatenate([value, expression.values[other]], dim),
    )


_STEPS = (_binary, _binary, _transpose, _transpose, _reverse, _slice, _broadcast, _reduce, _concatenate)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_expressions(data: st.DataObject) -> None:
    draw = data.draw
    size = draw(st.sampled_from(_SIZES))
    shape = draw(st.sampled_from([(size, size), (64, size), (size, 3, 33)]))
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    inputs = [generator.integers(-_MODULUS, _MODULUS, shape).astype(np.float32) for _ in range(2)]
    expression = Expression(inputs)
    zero = "%zero = stablehlo.constant dense<0.0> : tensor<f32>"
    for _ in range(draw(st.integers(3, 10))):
        name = draw(st.sampled_from(list(expression.values)))
        if expression.values[name].size and expression.values[name].ndim:
            draw(st.sampled_from(_STEPS))(expression, draw, name)
    made = [name for name in expression.values if name.startswith("%v")][-3:]
    if not made:
        return
    text = expression.text(made).replace("{\n", "{\n  " + zero + "\n", 1)
    for name, result in zip(made, run(text, *inputs), strict=True):
        np.testing.assert_array_equal(result, expression.values[name], err_msg=name)
