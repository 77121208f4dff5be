# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs that merge and split dimensions give the same results in the interpreter after expansion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from transforms import stablehlo_interpreter

import mlir_shard as ms

SIZES = (1, 2, 3, 4)
Value = tuple[str, tuple[int, ...]]


def tensor(shape: Sequence[int], element: str = "f32") -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


class Program:
    """A program that is built op by op, and its arguments."""

    def __init__(self, draw: Callable) -> None:
        self.draw, self.lines, self.arguments, self.values = draw, [], [], []

    def argument(self, shape: Sequence[int]) -> str:
        self.arguments.append(tuple(shape))
        return f"%arg{len(self.arguments) - 1}"

    def add(self, text: str, shape: Sequence[int]) -> None:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text} : {tensor(shape)}" if " : " not in text else f"{name} = {text}")
        self.values.append((name, tuple(shape)))

    def one_of(self, options: Sequence) -> object:
        return self.draw(st.sampled_from(list(options)))

    def reshape(self, value: Value) -> None:
        name, shape = value
        # The options: two dimensions merged, one split, or the shape of another value with as many elements.
        options = [(*shape[:i], shape[i] * shape[i + 1], *shape[i + 2 :]) for i in range(len(shape) - 1)]
        options += [shape[:i] + known + shape[i + 1 :] for i, size in enumerate(shape) for known in splits(size)]
        options += [known for _, known in self.values if prod(known) == prod(shape) and known != shape]
        if options:
            target = self.one_of(options)
            self.add(f"stablehlo.reshape {name} : ({tensor(shape)}) -> {tensor(target)}", target)

    def transpose(self, value: Value) -> None:
        name, shape = value
        order = self.draw(st.permutations(range(len(shape))))
        target = [shape[dim] for dim in order]
        dims = ", ".join(map(str, order))
        self.add(f"stablehlo.transpose {name}, dims = [{dims}] : ({tensor(shape)}) -> {tensor(target)}", target)

    def elementwise(self, value: Value) -> None:
        name, shape = value
        other = self.one_of([known for known, of in self.values if of == shape])
        self.add(f"stablehlo.{self.one_of(['add', 'multiply', 'maximum'])} {name}, {other}", shape)

    def bias(self, value: Value) -> None:
        name, shape = value
        if not shape:
            return
        dim = self.draw(st.integers(0, len(shape) - 1))
        size = self.one_of([shape[dim], 1])
        vector = self.argument([size])
        self.add(
            f"stablehlo.broadcast_in_dim {vector}, dims = [{dim}] : ({tensor([size])}) -> {tensor(shape)}",
            shape,
        )
        self.add(f"stablehlo.add {name}, {self.values[-1][0]}", shape)

    def position(self, value: Value) -> None:
        name, shape = value
        if not shape:
            return
        self.add(f"stablehlo.iota dim = {self.draw(st.integers(0, len(shape) - 1))}", shape)
        self.add(f"stablehlo.multiply {name}, {self.values[-1][0]}", shape)

    def constant(self, value: Value) -> None:
        name, shape = value
        self.add("stablehlo.constant dense<0.5>", shape)
        self.add(f"stablehlo.add {self.values[-1][0]}, {name}", shape)

    def linear(self, value: Value) -> None:
        name, shape = value
        if not shape:
            return
        dim, size = self.draw(st.integers(0, len(shape) - 1)), self.one_of(SIZES)
        weight = self.argument([shape[dim], size])
        target = (*shape[:dim], *shape[dim + 1 :], size)
        types = f"({tensor(shape)}, {tensor([shape[dim], size])}) -> {tensor(target)}"
        self.add(f"stablehlo.dot_general {name}, {weight}, contracting_dims = [{dim}] x [0] : {types}", target)

    def product(self, value: Value) -> None:
        name, shape = value
        other = self.one_of([known for known, of in self.values if of == shape])
        kinds = [self.one_of(["batch", "contracting", "free"]) for _ in shape]
        batch, contracting = (
            [dim for dim, kind in enumerate(kinds) if kind == one] for one in ("batch", "contracting")
        )
        free = [size for size, kind in zip(shape, kinds, strict=True) if kind == "free"]
        target = [*(shape[dim] for dim in batch), *free, *free]
        if prod(target) > 4000:
            return
        types = f"({tensor(shape)}, {tensor(shape)}) -> {tensor(target)}"
        dims = f"batching_dims = {batch} x {batch}, contracting_dims = {contracting} x {contracting}"
        self.add(f"stablehlo.dot_general {name}, {other}, {dims} : {types}", target)

    def reduce(self, value: Value) -> None:
        name, shape = value
        if not shape:
            return
        dim = self.draw(st.integers(0, len(shape) - 1))
        target = shape[:dim] + shape[dim + 1 :]
        types = f"({tensor(shape)}, tensor<f32>) -> {tensor(target)}"
        self.add(
            f"stablehlo.reduce({name} init: %zero) applies stablehlo.add across dimensions = [{dim}] : {types}", target
        )

    def text(self) -> str:
        results = self.values[-2:]
        arguments = ", ".join(f"%arg{number}: {tensor(shape)}" for number, shape in enumerate(self.arguments))
        returned = ", ".join(name for name, _ in results)
        types = ", ".join(tensor(shape) for _, shape in results)
        body = "\n  ".join(["%zero = stablehlo.constant dense<0.0> : tensor<f32>", *self.lines])
        return f"func.func @main({arguments}) -> ({types}) {{\n  {body}\n  return {returned} : {types}\n}}"


def splits(size: int) -> list[tuple[int, int]]:
    return [(first, size // first) for first in range(2, size) if size % first == 0]


OPS = [
    Program.reshape,
    Program.reshape,
    Program.transpose,
    Program.elementwise,
    Program.bias,
    Program.position,
    Program.constant,
    Program.linear,
    Program.product,
    Program.reduce,
]


@st.composite
def programs(draw: Callable) -> Program:
    program = Program(draw)
    for _ in range(draw(st.integers(1, 2))):
        shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=2, max_size=4)))
        program.values.append((program.argument(shape), shape))
    for _ in range(draw(st.integers(3, 14))):
        draw(st.sampled_from(OPS))(program, draw(st.sampled_from(program.values[-4:])))
    return program


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs())
def test_random_programs_compute_the_same(program: Program) -> None:
    before = program.text()
    note(before)
    module = ms.parse(before, ms.create_context())
    ms.run(module, "builtin.module(func.func(shard-expand-merged-dims))")
    after = ms.print_module(module)
    note(after)
    assert after.count("stablehlo.reshape") <= before.count("stablehlo.reshape")
    draw = np.random.default_rng(0)
    inputs = [draw.standard_normal(shape).astype(np.float32) for shape in program.arguments]
    for got, wanted in zip(
        stablehlo_interpreter.run(after, inputs), stablehlo_interpreter.run(before, inputs), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
