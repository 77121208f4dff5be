# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random StableHLO programs of all kinds of ops on tensors of odd sizes with random shardings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from transforms.program_builder import Program, array_text, scalar_region, type_text

Step = Callable[[Program], object]
STEPS: dict[str, Step] = {}


def step(function: Step) -> Step:
    STEPS[function.__name__] = function
    return function


@step
def unary(p: Program) -> None:
    a = p.pick("f32")
    p.emit(f"stablehlo.{p.random.choice(['abs', 'negate', 'cosine', 'tanh'])}", [a], [(a.shape, "f32")])


@step
def binary(p: Program) -> None:
    a = p.pick(str(p.random.choice(["f32", "i32"])))
    op = str(p.random.choice(["add", "subtract", "maximum", "multiply"]))
    p.emit(f"stablehlo.{op}", [a, p.like(a.shape, a.element)], [(a.shape, a.element)])


@step
def select(p: Program) -> None:
    a = p.pick("f32")
    direction = "comparison_direction = #stablehlo<comparison_direction GT>"
    (mask,) = p.emit("stablehlo.compare", [a, p.like(a.shape, "f32")], [(a.shape, "i1")], direction)
    p.emit("stablehlo.select", [mask, a, p.like(a.shape, "f32")], [(a.shape, "f32")])


@step
def convert(p: Program) -> None:
    a = p.pick("i32")
    p.emit("stablehlo.convert", [a], [(a.shape, "f32")])


@step
def clamp(p: Program) -> None:
    a = p.pick("f32")
    p.emit("stablehlo.clamp", [p.scalar("-1.0", "f32"), a, p.scalar("1.5", "f32")], [(a.shape, "f32")])


@step
def transpose(p: Program) -> None:
    a = p.pick()
    order = [int(one) for one in p.random.permutation(len(a.shape))]
    p.emit("stablehlo.transpose", [a], [([a.shape[d] for d in order], a.element)], f"permutation = {array_text(order)}")


@step
def broadcast(p: Program) -> None:
    a = p.pick()
    extra = p.shape(1)
    shape = [int(p.random.integers(2, 7)) if size == 1 else size for size in a.shape]
    at = int(p.random.integers(len(shape) + 1))
    result = [*shape[:at], *extra, *shape[at:]] if len(shape) < 3 else shape
    dims = [dim + (dim >= at) for dim in range(len(shape))] if len(shape) < 3 else list(range(len(shape)))
    p.emit("stablehlo.broadcast_in_dim", [a], [(result, a.element)], f"broadcast_dimensions = {array_text(dims)}")


@step
def reshape(p: Program) -> None:
    a = p.pick()
    shape = list(a.shape)
    kind = p.random.integers(3)
    at = int(p.random.integers(len(shape)))
    if kind == 0 and len(shape) > 1:
        at = min(at, len(shape) - 2)
        shape = [*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]]
    elif kind == 1:
        factor = next((one for one in (2, 3) if shape[at] % one == 0), 1)
        shape = [*shape[:at], factor, shape[at] // factor, *shape[at + 1 :]]
    else:
        shape = [*shape[:at], 1, *shape[at:]]
    if len(shape) <= 4:
        p.emit("stablehlo.reshape", [a], [(shape, a.element)])


@step
def reverse(p: Program) -> None:
    a = p.pick()
    p.emit("stablehlo.reverse", [a], [(a.shape, a.element)], f"dimensions = {array_text([len(a.shape) - 1])}")


@step
def concatenate(p: Program) -> None:
    a = p.pick()
    dim = int(p.random.integers(len(a.shape)))
    other = [*a.shape[:dim], int(p.random.integers(1, 5)), *a.shape[dim + 1 :]]
    b = p.like(other, a.element)
    shape = [*a.shape[:dim], a.shape[dim] + other[dim], *a.shape[dim + 1 :]]
    p.emit("stablehlo.concatenate", [a, b], [(shape, a.element)], f"dimension = {dim} : i64")


@step
def cut(p: Program) -> None:
    a = p.pick()
    starts = [int(p.random.integers(0, size)) if p.random.random() < 0.4 else 0 for size in a.shape]
    limits = [int(p.random.integers(start + 1, size + 1)) for start, size in zip(starts, a.shape, strict=True)]
    strides = [int(p.random.choice([1, 1, 1, 2])) for _ in a.shape]
    shape = [-(-(b - s) // t) for s, b, t in zip(starts, limits, strides, strict=True)]
    p.emit(
        "stablehlo.slice",
        [a],
        [(shape, a.element)],
        f"start_indices = {array_text(starts)}, limit_indices = {array_text(limits)}, strides = {array_text(strides)}",
    )


@step
def pad(p: Program) -> None:
    a = p.pick("f32")
    between = [int(p.random.choice([0, 0, 1])) for _ in a.shape]
    low = [int(p.random.integers(-1, 3)) for _ in a.shape]
    high = [int(p.random.integers(-1, 3)) for _ in a.shape]
    amounts = zip(a.shape, low, high, between, strict=True)
    shape = [size + before + after + (size - 1) * gap for size, before, after, gap in amounts]
    if min(shape) > 0 and max(shape) < 12:
        attributes = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": between}
        text = ", ".join(f"{name} = {array_text(amount)}" for name, amount in attributes.items())
        p.emit("stablehlo.pad", [a, p.scalar("0.5", "f32")], [(shape, "f32")], text)


@step
def iota(p: Program) -> None:
    shape = p.shape(int(p.random.integers(1, 4)))
    dim = int(p.random.integers(len(shape)))
    p.emit("stablehlo.iota", [], [(shape, str(p.random.choice(["i32", "f32"])))], f"iota_dimension = {dim} : i64")


@step
def constant(p: Program) -> None:
    shape = p.shape(int(p.random.integers(1, 3)))
    values = p.random.integers(0, 9, shape).tolist() if p.random.random() < 0.6 else 3
    p.emit("stablehlo.constant", [], [(shape, "i32")], f"value = dense<{values}> : {type_text(shape, 'i32')}")


@step
def reduce(p: Program) -> None:
    a = p.pick(str(p.random.choice(["f32", "i32"])))
    ops = {"add": 0, "multiply": 1, "maximum": -(2**31), "minimum": 2**31 - 1}
    if a.element == "i32":
        ops |= {"and": -1, "or": 0, "xor": 0}
    op = str(p.random.choice(list(ops)))
    initial: object = ops[op]
    if a.element == "f32":
        initial = {"maximum": "0xFF800000", "minimum": "0x7F800000"}.get(op, f"{ops[op]}.0")
    dims = sorted({int(p.random.integers(len(a.shape))) for _ in range(2)})
    shape = [size for dim, size in enumerate(a.shape) if dim not in dims]
    p.emit(
        "stablehlo.reduce",
        [a, p.scalar(initial, a.element)],
        [(shape, a.element)],
        f"dimensions = {array_text(dims)}",
        scalar_region(f"stablehlo.{op}", a.element),
    )


@step
def arg_max(p: Program) -> None:
    a = p.pick("f32")
    dim = int(p.random.integers(len(a.shape)))
    (indices,) = p.emit("stablehlo.iota", [], [(a.shape, "i32")], f"iota_dimension = {dim} : i64")
    shape = [size for one, size in enumerate(a.shape) if one != dim]
    gt = "{comparison_direction = #stablehlo<comparison_direction GT>}"
    region = f"""{{
      ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
      %g = "stablehlo.compare"(%a, %b) {gt} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %e = "stablehlo.compare"(%a, %b) {gt.replace("GT", "EQ")} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %l = "stablehlo.compare"(%i, %j) {gt.replace("GT", "LT")} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %f = stablehlo.and %e, %l : tensor<i1>
      %t = stablehlo.or %g, %f : tensor<i1>
      %v = stablehlo.select %t, %a, %b : tensor<i1>, tensor<f32>
      %k = stablehlo.select %t, %i, %j : tensor<i1>, tensor<i32>
      "stablehlo.return"(%v, %k) : (tensor<f32>, tensor<i32>) -> ()
    }}"""
    p.emit(
        "stablehlo.reduce",
        [a, indices, p.scalar("0xFF800000", "f32"), p.scalar(2**31 - 1, "i32")],
        [(shape, "f32"), (shape, "i32")],
        f"dimensions = {array_text([dim])}",
        region,
    )


@step
def dot(p: Program) -> None:
    a = p.pick("f32")
    dim = int(p.random.integers(len(a.shape)))
    is_batch = len(a.shape) > 1 and p.random.random() < 0.5
    batch = [0 if dim else 1] if is_batch else []
    free = p.shape(1)
    b = p.like([*(a.shape[one] for one in batch), a.shape[dim], *free], "f32")
    numbers = (
        f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {batch}, "
        f"rhs_batching_dimensions = {[0] if batch else []}, lhs_contracting_dimensions = [{dim}], "
        f"rhs_contracting_dimensions = [{len(batch)}]>"
    )
    kept = [size for one, size in enumerate(a.shape) if one != dim and one not in batch]
    p.emit("stablehlo.dot_general", [a, b], [([*(a.shape[one] for one in batch), *kept, *free], "f32")], numbers)


@step
def convolution(p: Program) -> None:
    size = [int(p.random.integers(3, 8)) for _ in range(2)]
    kernel = [int(p.random.integers(1, 4)) for _ in range(2)]
    groups, batch_groups, kind = 1, 1, p.random.integers(4)
    features, out, batch = (int(p.random.integers(1, 6)) for _ in range(3))
    in_group = features
    if kind == 0:
        groups, in_group, out = features, 1, features
    elif kind == 1:
        batch_groups = out = batch
    elif kind == 2:
        features, groups, in_group, out = 6, 2, 3, 4
    strides, dilations = [int(p.random.integers(1, 3))] * 2, [int(p.random.integers(1, 3))] * 2
    padding = p.random.integers(0, 2, [2, 2]).tolist()
    left = [(n - 1) * d + 1 + sum(q) - k for n, d, q, k in zip(size, dilations, padding, kernel, strict=True)]
    if min(left) < 0:
        return
    result = [one // stride + 1 for one, stride in zip(left, strides, strict=True)]
    flags = [bool(p.random.integers(2)) for _ in range(2)]
    a = p.like([batch, *size, features], "f32")
    b = p.like([*kernel, in_group, out], "f32")
    attributes = (
        f"batch_group_count = {batch_groups} : i64, feature_group_count = {groups} : i64, "
        "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        f"window_strides = {array_text(strides)}, lhs_dilation = {array_text(dilations)}, "
        f"padding = dense<{padding}> : tensor<2x2xi64>, "
        f"window_reversal = array<i1: {str(flags[0]).lower()}, {str(flags[1]).lower()}>"
    )
    p.emit("stablehlo.convolution", [a, b], [([batch // batch_groups, *result, out], "f32")], attributes)


@step
def lookup(p: Program) -> None:
    a = p.pick("f32", 2)
    rows = p.pick("i32")
    numbers = (
        f"dimension_numbers = #stablehlo.gather<offset_dims = [{len(rows.shape)}], collapsed_slice_dims = [0], "
        f"start_index_map = [0], index_vector_dim = {len(rows.shape)}>, indices_are_sorted = false, "
        f"slice_sizes = {array_text([1, a.shape[1]])}"
    )
    p.emit("stablehlo.gather", [a, rows], [([*rows.shape, a.shape[1]], "f32")], numbers)


@step
def gather_windows(p: Program) -> None:
    a = p.pick("f32", 3)
    count = p.shape(1)[0]
    positions = p.like([count, 2], "i32")
    height = int(p.random.integers(1, a.shape[1] + 1))
    numbers = (
        "dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], "
        "start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, "
        f"slice_sizes = {array_text([1, height, a.shape[2]])}"
    )
    p.emit("stablehlo.gather", [a, positions], [([count, height, a.shape[2]], "f32")], numbers)


@step
def scatter(p: Program) -> None:
    a = p.pick(str(p.random.choice(["f32", "i32"])), 2)
    count = p.shape(1)[0]
    rows = p.like([count], "i32")
    updates = p.like([count, a.shape[1]], a.element)
    numbers = (
        "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false"
    )
    op = str(p.random.choice(["add", "maximum", "subtract"]))
    region = scalar_region(f"stablehlo.{op}", a.element)
    p.emit("stablehlo.scatter", [a, rows, updates], [(a.shape, a.element)], numbers, region)


@step
def scatter_windows(p: Program) -> None:
    a = p.pick("f32", 2)
    count = p.shape(1)[0]
    positions = p.like([count, 2], "i32")
    width = int(p.random.integers(1, a.shape[1] + 1))
    updates = p.like([count, width], "f32")
    numbers = (
        "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, "
        "unique_indices = false"
    )
    region = scalar_region("stablehlo.add", "f32")
    p.emit("stablehlo.scatter", [a, positions, updates], [(a.shape, "f32")], numbers, region)


@step
def dynamic_slice(p: Program) -> None:
    a = p.pick()
    sizes = [int(p.random.integers(1, size + 1)) if p.random.random() < 0.5 else size for size in a.shape]
    starts = [p.scalar(int(p.random.integers(-2, size + 2)), "i32") for size in a.shape]
    p.emit("stablehlo.dynamic_slice", [a, *starts], [(sizes, a.element)], f"slice_sizes = {array_text(sizes)}")


@step
def dynamic_update_slice(p: Program) -> None:
    a = p.pick()
    sizes = [int(p.random.integers(1, size + 1)) if p.random.random() < 0.5 else size for size in a.shape]
    starts = [p.scalar(int(p.random.integers(-2, size + 2)), "i32") for size in a.shape]
    p.emit("stablehlo.dynamic_update_slice", [a, p.like(sizes, a.element), *starts], [(a.shape, a.element)])


@step
def sort(p: Program) -> None:
    a = p.pick("f32")
    dim = int(p.random.integers(len(a.shape)))
    region = (
        '{ ^bb0(%l: tensor<f32>, %r: tensor<f32>): %s = "stablehlo.compare"(%l, %r) '
        "{comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        '"stablehlo.return"(%s) : (tensor<i1>) -> () }'
    )
    p.emit("stablehlo.sort", [a], [(a.shape, "f32")], f"dimension = {dim} : i64, is_stable = true", region)


@step
def cumulative(p: Program) -> None:
    a = p.pick("f32")
    dim = int(p.random.integers(len(a.shape)))
    window = [size if one == dim else 1 for one, size in enumerate(a.shape)]
    padding = [[size - 1 if one == dim else 0, 0] for one, size in enumerate(a.shape)]
    p.emit(
        "stablehlo.reduce_window",
        [a, p.scalar("0.0", "f32")],
        [(a.shape, "f32")],
        f"window_dimensions = {array_text(window)}, padding = dense<{padding}> : tensor<{len(padding)}x2xi64>",
        scalar_region("stablehlo.add", "f32"),
    )


@step
def loop(p: Program) -> None:
    a = p.pick("f32")
    counter, bound, one = p.scalar(0, "i32"), p.scalar(3, "i32"), p.scalar(1, "i32")
    b = p.like(a.shape, "f32")
    types = f"%n: tensor<i32>, %a: {a.type}, %b: {a.type}"
    inner = f"{{sdy.sharding = #sdy.sharding_per_value<[{p.sharding(a.shape)}]>}}"
    cond = (
        f'{{ ^bb0({types}): %t = "stablehlo.compare"(%n, {bound.name}) '
        "{comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        '"stablehlo.return"(%t) : (tensor<i1>) -> () }'
    )
    body = (
        f"{{ ^bb0({types}): %m = stablehlo.add %n, {one.name} : tensor<i32>\n"
        f"%c = stablehlo.subtract %a, %b {inner} : {a.type}\n"
        f'"stablehlo.return"(%m, %b, %c) : (tensor<i32>, {a.type}, {a.type}) -> () }}'
    )
    p.emit("stablehlo.while", [counter, a, b], [((), "i32"), (a.shape, "f32"), (a.shape, "f32")], "", f"{cond}, {body}")


@step
def branch(p: Program) -> None:
    a = p.pick("f32")
    b = p.like(a.shape, "f32")
    index = p.scalar(int(p.random.integers(0, 2)), "i32")
    inner = f"{{sdy.sharding = #sdy.sharding_per_value<[{p.sharding(a.shape)}]>}}"
    yes = f'{{ %s = stablehlo.add {a.name}, {b.name} {inner} : {a.type}\n"stablehlo.return"(%s) : ({a.type}) -> () }}'
    no = f'{{ "stablehlo.return"({b.name}) : ({a.type}) -> () }}'
    p.emit("stablehlo.case", [index], [(a.shape, "f32")], "", f"{yes}, {no}")


@step
def barrier(p: Program) -> None:
    a = p.pick()
    p.emit("stablehlo.optimization_barrier", [a], [(a.shape, a.element)])


def random_program(seed: int, steps: Sequence[str] = (), length: int = 6) -> tuple[str, list[np.ndarray]]:
    """Returns the text of a program of the named or random steps that returns all its values, and inputs for it."""
    random = np.random.default_rng(seed)
    program = Program(random)
    names = list(steps) or [str(name) for name in random.choice(list(STEPS), length)]
    for name in names:
        STEPS[name](program)
    returned = [one for one in program.values if one not in program.arguments] or program.arguments
    inputs = [
        random.integers(-2, 8, one.shape).astype(np.int32)
        if one.element == "i32"
        else random.integers(0, 2, one.shape).astype(np.bool_)
        if one.element == "i1"
        else random.normal(size=one.shape).astype(np.float32)
        for one in program.arguments
    ]
    return program.text(returned), inputs
