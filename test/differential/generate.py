# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates random programs: the kinds of operations, their probabilities, and the composition of functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from differential import contraction_ops as contraction
from differential import custom_ops as custom
from differential import elementwise_ops as elementwise
from differential import indexed_ops as indexed
from differential import layout_ops as layout
from differential import region_ops as region
from differential import sdy_ops as sdy
from differential.annotations import Annotations
from differential.program import Function, Program, Statement, Tied, Value
from differential.scope import SIZES, Module, Scope

_PLAIN: dict[Callable[[Scope], None], int] = {
    elementwise.unary: 4,
    elementwise.binary: 8,
    elementwise.reduce_precision: 1,
    elementwise.predicate: 1,
    elementwise.select: 2,
    elementwise.clamp: 1,
    elementwise.integer: 2,
    elementwise.complex_numbers: 1,
    elementwise.bitcast: 1,
    elementwise.constant: 3,
    elementwise.iota: 1,
    elementwise.scalar_expansion: 2,
    elementwise.fresh_tensor: 1,
    layout.transpose: 3,
    layout.reshape: 2,
    layout.merge_or_split: 4,
    layout.broadcast: 3,
    layout.reverse: 1,
    layout.slice_: 2,
    layout.pad: 1,
    layout.concatenate: 2,
    layout.dynamic_slice: 1,
    layout.dynamic_update_slice: 1,
    contraction.dot_general: 7,
    contraction.dot: 2,
    contraction.convolution: 2,
    contraction.reduce: 3,
    contraction.reduce_window: 1,
    contraction.select_and_scatter: 1,
    contraction.sort: 1,
    contraction.batch_norm: 1,
    contraction.matrix: 1,
    contraction.fft: 1,
    contraction.random_bits: 1,
    indexed.gather: 2,
    indexed.scatter: 2,
    indexed.counting_gather: 1,
    custom.collective: 2,
    custom.custom_call: 1,
    custom.decomposition: 1,
    custom.top_k: 1,
    custom.ruled_call: 1,
    sdy.constraint: 3,
    sdy.reshard: 1,
    sdy.barrier: 1,
}
_WITH_REGIONS: dict[Callable[..., None], int] = {
    region.while_loop: 3,
    region.case: 3,
    region.optimization_barrier: 3,
    region.named_computation: 2,
    region.manual_computation: 3,
}
# Only functions contain calls and groups: a group in a region would have to be unique among all copies of it.
_CALLS = 6
_GROUPS = 3
_DEEPEST = 2


def _fill(scope: Scope, count: int) -> None:
    """Appends about `count` operations to a block."""
    choices: dict[Callable[[Scope], None], int] = dict(_PLAIN)
    if scope.depth < _DEEPEST:
        choices |= {partial(kind, fill=_fill): weight for kind, weight in _WITH_REGIONS.items()}
    if scope.depth == 0:
        choices |= {call: _CALLS if scope.module.functions else 0, sdy.group: _GROUPS}
    for choice in scope.random.choices([*choices], [*choices.values()], k=count):
        choice(scope)


def call(scope: Scope) -> None:
    """Calls a function with arguments of its types."""
    function = scope.random.choice(scope.module.functions)
    operands = [scope.of_type(one.value.shape) for one in function.arguments]
    results = [scope.define(one.value.shape) for one in function.returned]
    names = ", ".join(value.name for value in operands)
    types = ", ".join(value.type for value in operands)
    out = ", ".join(value.type for value in results)
    mark = scope.annotations.on_op([len(value.shape) for value in results], scope.manual, 0.3)
    scope.add(results, f"func.call @{function.name}({names})", mark, f" : ({types}) -> ({out})")


def _arguments(scope: Scope, count: int, share: float) -> tuple[Tied, ...]:
    arguments: list[Tied] = []
    for _ in range(count):
        shape = tuple(scope.random.choice(SIZES) for _ in range(scope.random.choice([0, 1, 2, 2, 2, 3, 3, 4])))
        if arguments and scope.chance(0.5):
            shape = scope.random.choice(arguments).value.shape
        value = scope.define(shape)
        scope.values.append(value)
        arguments.append(Tied(value, scope.annotations.on_function(len(shape), share)))
    return tuple(arguments)


def _function(module: Module, name: str, *, arguments: int, length: int, results: int) -> Function:
    scope = Scope(module)
    taken = _arguments(scope, arguments, 0.6 if name == "main" else 0.15)
    _fill(scope, length)
    returned = unused(scope.statements, scope.values)[-results:] or scope.values[:1]
    if scope.chance(0.2):
        returned = [*returned, scope.random.choice(scope.values)]
    floats = [value for value in returned if value.element == "f32"] or [taken[0].value]
    share = 0.4 if name == "main" else 0.15
    tied = tuple(Tied(value, scope.annotations.on_function(len(value.shape), share)) for value in floats)
    return Function(name, taken, tuple(scope.statements), tied)


def unused(statements: list[Statement], values: list[Value]) -> list[Value]:
    """Returns the values that statements define and do not use."""
    text = "\n".join(statement.write("") for statement in statements)
    words = text.replace(",", " ").replace("(", " ").replace(")", " ").split()
    return [value for value in values if value.element == "f32" and words.count(value.name) == 1]


def program(seed: int | str) -> Program:
    """Returns the program of a seed, which is deterministic. Seeds are independent of each other."""
    random = Random(seed)
    module = Module(random, Annotations(random))
    if random.random() < 0.35:
        for index in range(random.randint(1, 2)):
            function = _function(
                module, f"callee{index}", arguments=random.randint(1, 3), length=random.randint(1, 4), results=2
            )
            module.functions.append(function)
    main = _function(module, "main", arguments=random.randint(2, 4), length=random.randint(3, 12), results=4)
    return Program(tuple(module.annotations.meshes), (main, *module.functions))
