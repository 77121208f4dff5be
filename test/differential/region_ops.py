# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations with regions through which values flow, and which contain statements."""

from __future__ import annotations

from collections.abc import Callable

from differential.program import Value
from differential.scope import Scope

Fill = Callable[[Scope, int], None]


def while_loop(scope: Scope, fill: Fill) -> None:
    """Appends a loop that carries one to three values, which may be exchanged in each iteration."""
    carried = [value for _ in range(scope.random.randint(1, 3)) if (value := scope.pick())]
    if not carried:
        return
    condition = scope.inner()
    tested = [condition.define(value.shape) for value in carried]
    go_on = condition.constant((), "i1")
    body = scope.inner()
    arguments = [body.define(value.shape) for value in carried]
    body.values += arguments
    fill(body, scope.random.randint(1, 3))
    returned = [result_like(body, value) for value in carried]
    regions = [
        condition.body("stablehlo.return", [go_on], tested),
        body.body("stablehlo.return", returned, arguments),
    ]
    scope.op("while", carried, [(value.shape, "f32") for value in carried], regions=regions)


def case(scope: Scope, fill: Fill) -> None:
    """Appends a case of one to three branches. It is not `stablehlo.if`, through which values do not flow in Shardy."""
    shapes = [value.shape for _ in range(scope.random.randint(1, 2)) if (value := scope.pick())]
    if not shapes:
        return
    regions = []
    for _ in range(scope.random.randint(1, 3)):
        branch = scope.inner()
        fill(branch, scope.random.randint(1, 2))
        returned = [branch.of_type(shape) for shape in shapes]
        regions.append(branch.body("stablehlo.return", returned))
    scope.op("case", [scope.constant((), "i32")], [(shape, "f32") for shape in shapes], regions=regions)


def optimization_barrier(scope: Scope, fill: Fill) -> None:
    values = [value for _ in range(scope.random.randint(1, 3)) if (value := scope.pick())]
    if values:
        scope.op("optimization_barrier", values, [(value.shape, "f32") for value in values])


def named_computation(scope: Scope, fill: Fill) -> None:
    """Appends a computation that uses only its block arguments; its operands and results may have shardings."""
    operands = [value for _ in range(scope.random.randint(1, 3)) if (value := scope.pick())]
    if not operands:
        return
    inner = scope.inner(isolated=True)
    arguments = [inner.define(value.shape) for value in operands]
    inner.values += arguments
    fill(inner, scope.random.randint(1, 3))
    returned = [inner.pick() or arguments[0] for _ in range(scope.random.randint(1, 2))]
    results = [scope.define(value.shape) for value in returned]
    around = ""
    for name, values in (("in_shardings", operands), ("out_shardings", returned)):
        if scope.chance(0.4):
            shardings = ", ".join(
                scope.annotations.sharding(len(value.shape), scope.manual, one_mesh=True) for value in values
            )
            around += f" {name}=[{shardings}]"
    names = ", ".join(value.name for value in operands)
    header = ", ".join(f"{value.name}: {value.type}" for value in arguments)
    types = ", ".join(value.type for value in operands)
    out = ", ".join(value.type for value in results)
    scope.add(
        results,
        f'sdy.named_computation<"part{scope.random.randint(0, 1)}">({names}){around} ({header}) {{',
        inner.body("sdy.return", returned),
        f"}} : ({types}) -> ({out})",
    )


def manual_computation(scope: Scope, fill: Fill) -> None:
    """Appends a computation on local tensors, in which shardings may not use the manual axes."""
    free = [axis for axis in scope.annotations.axes if axis not in scope.manual]
    operands = [value for _ in range(scope.random.randint(1, 2)) if (value := scope.pick())]
    if not free or not operands or scope.manual:
        return
    manual = frozenset(scope.random.sample(free, scope.random.randint(1, len(free))))
    inner = scope.inner(isolated=True, manual=manual)
    arguments, incoming = [], []
    for value in operands:
        sharding, shape = scope.annotations.manual(value.shape, manual, local=False)
        incoming.append(sharding)
        arguments.append(inner.define(shape))
    inner.values += arguments
    fill(inner, scope.random.randint(1, 3))
    returned = [inner.pick() or arguments[0] for _ in range(scope.random.randint(1, 2))]
    outgoing, results = [], []
    for value in returned:
        sharding, shape = scope.annotations.manual(value.shape, manual, local=True)
        outgoing.append(sharding)
        results.append(scope.define(shape))
    names = ", ".join(value.name for value in operands)
    header = ", ".join(f"{value.name}: {value.type}" for value in arguments)
    axes = ", ".join(f'"{axis}"' for axis in scope.annotations.axes if axis in manual)
    types = ", ".join(value.type for value in operands)
    out = ", ".join(value.type for value in results)
    scope.add(
        results,
        f"sdy.manual_computation({names}) in_shardings=[{', '.join(incoming)}] "
        f"out_shardings=[{', '.join(outgoing)}] manual_axes={{{axes}}} ({header}) {{",
        inner.body("sdy.return", returned),
        f"}} : ({types}) -> ({out})",
    )


def result_like(scope: Scope, value: Value) -> Value:
    """Returns a value of the same type, preferably one that is computed in this block."""
    made = {result.name for statement in scope.statements for result in statement.results}
    return scope.pick(lambda one: one.shape == value.shape and one.name in made) or scope.of_type(value.shape)
