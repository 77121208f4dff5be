# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO operations with regions that end: counted loops, branches, and manual computations of known meaning."""

from __future__ import annotations

from math import prod

from differential.program import Statement, Value
from differential.region_ops import Fill, result_like
from differential.scope import Scope

# The lines from the first comment to the second are replaced by the text after the second in the unsharded program.
MANUAL, WHOLE = "// manual", "// whole: "


def whole_text(text: str) -> str:
    """Returns a program with the global meanings of its manual computations in their place."""
    lines: list[str] = []
    is_manual = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped == MANUAL:
            is_manual = True
        elif stripped.startswith(WHOLE):
            is_manual = False
            lines.append(stripped.removeprefix(WHOLE))
        elif not is_manual:
            lines.append(line)
    return "\n".join(lines) + "\n"


def while_loop(scope: Scope, fill: Fill) -> None:
    """Appends a loop of up to three iterations over one to three values, which may be exchanged in each iteration."""
    carried = [value for _ in range(scope.random.randint(1, 3)) if (value := scope.pick())]
    if not carried:
        return
    first, last, one = (scope.constant((), "i32", str(count)) for count in (0, scope.random.randint(0, 3), 1))
    condition = scope.inner()
    tested = [condition.define((), "i32"), *(condition.define(value.shape) for value in carried)]
    direction = "comparison_direction = #stablehlo<comparison_direction LT>"
    (go_on,) = condition.op("compare", [tested[0], last], [((), "i1")], direction)
    body = scope.inner()
    counter, *arguments = [body.define((), "i32"), *(body.define(value.shape) for value in carried)]
    body.values += arguments
    fill(body, scope.random.randint(1, 3))
    (count,) = body.op("add", [counter, one], [((), "i32")])
    returned = [count, *(result_like(body, value) for value in carried)]
    regions = [
        condition.body("stablehlo.return", [go_on], tested),
        body.body("stablehlo.return", returned, [counter, *arguments]),
    ]
    results = [((), "i32"), *((value.shape, "f32") for value in carried)]
    scope.op("while", [first, *carried], results, regions=regions)


def branches(scope: Scope, fill: Fill) -> None:
    """Appends `case` on a constant or on a number of the program, or `if`."""
    shapes = [value.shape for _ in range(scope.random.randint(1, 2)) if (value := scope.pick())]
    if not shapes:
        return
    name = scope.random.choice(["case", "case", "if"])
    regions = []
    for _ in range(2 if name == "if" else scope.random.randint(1, 3)):
        branch = scope.inner()
        fill(branch, scope.random.randint(1, 2))
        returned = [branch.of_type(shape) for shape in shapes]
        regions.append(branch.body("stablehlo.return", returned))
    element = "i1" if name == "if" else "i32"
    chosen = scope.converted(scope.of_type(()), element) if scope.chance(0.5) else scope.constant((), element)
    scope.op(name, [chosen], [(shape, "f32") for shape in shapes], regions=regions)


def manual_elementwise(scope: Scope) -> None:
    """Adds the shards of two tensors on each device, which adds the tensors."""
    if (cut := _cut(scope)) is None:
        return
    value, dim, axes, local = cut
    other, result = scope.alike(value), scope.define(value.shape)
    dims = ["{}"] * len(value.shape)
    dims[dim] = "{" + ", ".join(f'"{axis}"' for axis in axes) + "}"
    sharding = f"<@m, [{', '.join(dims)}]>"
    left, right, total = (scope.define(local) for _ in range(3))
    add = Statement((total,), (f"stablehlo.add {left.name}, {right.name} : {left.type}",))
    signature = f"({value.type}, {other.type}) -> {result.type}"
    _add_manual(
        scope,
        result,
        f"sdy.manual_computation({value.name}, {other.name}) in_shardings=[{sharding}, {sharding}] "
        f"out_shardings=[{sharding}] manual_axes={{{_axes(scope, axes)}}} "
        f"({left.name}: {left.type}, {right.name}: {right.type}) {{\n    {add.write('')}\n"
        f"    sdy.return {total.name} : {total.type}\n  }} : {signature}",
        f"stablehlo.add {value.name}, {other.name} : {value.type}",
    )


def manual_sum(scope: Scope) -> None:
    """Sums the shards along a dimension on each device, and adds these sums over devices: the sum of the tensor."""
    if (cut := _cut(scope)) is None:
        return
    value, dim, axes, local = cut
    left = [size for one, size in enumerate(value.shape) if one != dim]
    result = scope.define(tuple(left))
    dims = ["{}"] * len(value.shape)
    dims[dim] = "{" + ", ".join(f'"{axis}"' for axis in axes) + "}"
    block, zero, partial, total = (
        scope.define(local),
        scope.define(()),
        scope.define(tuple(left)),
        scope.define(tuple(left)),
    )
    region = (
        f"({{\n    ^bb0(%l: {zero.type}, %r: {zero.type}):\n      %s = stablehlo.add %l, %r : {zero.type}\n"
        f"      stablehlo.return %s : {zero.type}\n    }})"
    )
    groups = _groups(scope, axes)
    shape = f"{len(groups)}x{len(groups[0])}"
    handle = f"#stablehlo.channel_handle<handle = {len(scope.statements) + 1}, type = 1>"
    zeros = f"dense<0.0> : {zero.type}"
    reduce = f"across dimensions = [{dim}] : ({block.type}, {zero.type}) -> {partial.type}"
    _add_manual(
        scope,
        result,
        f"sdy.manual_computation({value.name}) in_shardings=[<@m, [{', '.join(dims)}]>] "
        f"out_shardings=[<@m, [{', '.join(['{}'] * len(left))}]>] manual_axes={{{_axes(scope, axes)}}} "
        f"({block.name}: {block.type}) {{\n    {zero.name} = stablehlo.constant {zeros}\n"
        f"    {partial.name} = stablehlo.reduce({block.name} init: {zero.name}) applies stablehlo.add {reduce}\n"
        f'    {total.name} = "stablehlo.all_reduce"({partial.name}) <{{channel_handle = {handle}, '
        f"use_global_device_ids, replica_groups = dense<{groups}> : "
        f"tensor<{shape}xi64>}}> {region} : ({partial.type}) -> {total.type}\n"
        f"    sdy.return {total.name} : {total.type}\n  }} : ({value.type}) -> {result.type}",
        f"stablehlo.constant {zeros}",
        f"stablehlo.reduce({value.name} init: ZERO) applies stablehlo.add across dimensions = [{dim}] : "
        f"({value.type}, {zero.type}) -> {result.type}",
    )


def _add_manual(scope: Scope, result: Value, manual: str, *whole: str) -> None:
    zero = f"{result.name}_zero"
    lines = [f"{WHOLE}{zero} = {whole[0]}"] if len(whole) > 1 else []
    lines.append(f"{WHOLE}{result.name} = {whole[-1].replace('ZERO', zero)}")
    text = f"{MANUAL}\n  {result.name} = {manual}\n  " + "\n  ".join(lines)
    scope.values.append(result)
    scope.statements.append(ManualStatement((result,), (text,)))


class ManualStatement(Statement):
    """A statement whose text contains the names of its results, because comments precede it."""

    __slots__ = ()

    def write(self, indent: str) -> str:
        """Returns the text with the comments around it."""
        return "\n".join(f"{indent}{line.strip()}" for part in self.parts for line in str(part).splitlines())


def _cut(scope: Scope) -> tuple[Value, int, list[str], tuple[int, ...]] | None:
    """Chooses a tensor, a dimension of it, and axes that shard the dimension; returns them with the local shape."""
    axes = scope.annotations.axes
    chosen = [axis for axis in axes if scope.chance(0.6)] or [next(iter(axes))]
    if scope.manual or scope.depth:
        return None
    count = prod(axes[axis] for axis in chosen)
    value = scope.pick(lambda one: any(size % count == 0 for size in one.shape))
    if value is None:
        return None
    dim = scope.random.choice([dim for dim, size in enumerate(value.shape) if size % count == 0])
    local = tuple(size // count if one == dim else size for one, size in enumerate(value.shape))
    return value, dim, chosen, local


def _axes(scope: Scope, chosen: list[str]) -> str:
    return ", ".join(f'"{axis}"' for axis in scope.annotations.axes if axis in chosen)


def _groups(scope: Scope, chosen: list[str]) -> list[list[int]]:
    """Returns the groups of devices that differ only along the chosen axes."""
    axes = scope.annotations.axes
    groups: dict[tuple[int, ...], list[int]] = {}
    for device in range(prod(axes.values())):
        rest, coordinates = device, {}
        for axis, size in reversed(axes.items()):
            rest, coordinates[axis] = divmod(rest, size)
        key = tuple(index for axis, index in coordinates.items() if axis not in chosen)
        groups.setdefault(key, []).append(device)
    return list(groups.values())
