# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of linalg, tensor and arith on tensors."""

from __future__ import annotations

from differential.program import Shape, Value
from differential.scope import SIZES, Scope

_BINARY = ("add", "sub", "mul", "max", "min")
_UNARY = ("abs", "negf", "tanh", "floor", "ceil")
_ARITH = ("addf", "subf", "mulf", "maximumf", "minimumf")
# Operations of reductions, and their neutral elements.
_REDUCTIONS = (("addf", "0.0"), ("mulf", "1.0"), ("maximumf", "-1.0e38"), ("minimumf", "1.0e38"))


def _emit(scope: Scope, shape: Shape, text: str, element: str = "f32") -> Value:
    """Appends an operation with one result, with or without sharding; `@` in its text is the position of attributes."""
    result = scope.define(shape, element)
    before, _, after = text.partition(" @")
    mark = scope.annotations.on_op([len(shape)], scope.manual)
    return scope.add([result], before, mark, f"{after} -> {result.type}" if "->" not in after else after)[0]


def _ins(*values: Value) -> str:
    names, types = ", ".join(value.name for value in values), ", ".join(value.type for value in values)
    return f"ins({names} : {types})"


def _full(scope: Scope, shape: Shape, literal: str) -> Value:
    """Appends a tensor with one number everywhere."""
    scalar = scope.define((), "f32")
    name = f"{scalar.name}_scalar"
    empty, result = scope.define(shape), scope.define(shape)
    scalar = Value(name, (), "f32")
    scope.add([Value(name, ())], f"arith.constant {literal} : f32", seen=False)
    scope.add([empty], f"tensor.empty() : {empty.type}", seen=False)
    text = f"linalg.fill ins({name} : f32) outs({empty.name} : {empty.type}) -> {result.type}"
    return scope.add([result], text, seen=False)[0]


def _named(
    scope: Scope, name: str, operands: list[Value], shape: Shape, initial: str = "0.0", attributes: str = ""
) -> None:
    """Appends a structured operation onto a new tensor."""
    init = _full(scope, shape, initial)
    _emit(scope, shape, f"linalg.{name}{attributes} @ {_ins(*operands)} outs({init.name} : {init.type})")


def elementwise(scope: Scope) -> None:
    if value := scope.pick():
        if scope.chance(0.6):
            _named(scope, scope.random.choice(_BINARY), [value, scope.alike(value)], value.shape)
        else:
            _named(scope, scope.random.choice(_UNARY), [value], value.shape)


def arith(scope: Scope) -> None:
    if value := scope.pick():
        other = scope.alike(value)
        result = scope.define(value.shape)
        mark = scope.annotations.on_op([len(value.shape)], scope.manual)
        text = f"arith.{scope.random.choice(_ARITH)} {value.name}, {other.name}"
        scope.add([result], text, mark, f" : {value.type}")


def cast(scope: Scope) -> None:
    """Casts to integers and back. Casts to narrower floats would call functions that the host's engine lacks."""
    if value := scope.pick():
        element = scope.random.choice(["i8", "i32", "i64"])
        narrow, back = scope.define(value.shape, element), scope.define(value.shape)
        scope.add([narrow], f"arith.fptosi {value.name} : {value.type} to {narrow.type}")
        scope.add([back], f"arith.sitofp {narrow.name} : {narrow.type} to {back.type}")


def constant(scope: Scope) -> None:
    if value := scope.pick():
        literal = scope.module.literal(scope.random, value.shape, "f32")
        result = scope.define(value.shape)
        mark = scope.annotations.on_op([len(value.shape)], scope.manual)
        scope.add([result], "arith.constant", mark, f" dense<{literal}> : {result.type}")


def transpose(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 1):
        order = list(range(len(value.shape)))
        scope.random.shuffle(order)
        shape = tuple(value.shape[dim] for dim in order)
        empty, result = scope.define(shape), scope.define(shape)
        scope.add([empty], f"tensor.empty() : {empty.type}", seen=False)
        outs = f"outs({empty.name} : {empty.type}) permutation = {order}"
        scope.add([result], f"linalg.transpose {_ins(value)} {outs}")


def broadcast(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) < 4):
        dim, size = scope.random.randint(0, len(value.shape)), scope.random.choice(SIZES)
        shape = (*value.shape[:dim], size, *value.shape[dim:])
        empty, result = scope.define(shape), scope.define(shape)
        scope.add([empty], f"tensor.empty() : {empty.type}", seen=False)
        outs = f"outs({empty.name} : {empty.type}) dimensions = [{dim}]"
        scope.add([result], f"linalg.broadcast {_ins(value)} {outs}")


def reduce(scope: Scope) -> None:
    """Reduces onto the neutral element or onto a tensor."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    dims = sorted(scope.random.sample(range(len(value.shape)), scope.random.randint(1, len(value.shape))))
    shape = tuple(size for dim, size in enumerate(value.shape) if dim not in dims)
    op, neutral = scope.random.choice(_REDUCTIONS)
    init = scope.pick(lambda one: one.shape == shape) if scope.chance(0.3) else None
    init = init or _full(scope, shape, neutral)
    result = scope.define(shape)
    text = f"linalg.reduce {{ arith.{op} }} {_ins(value)} outs({init.name} : {init.type}) dimensions = {dims}"
    scope.add([result], text)


def generic(scope: Scope) -> None:
    """Combines two tensors over loops in any order, with random reductions, and perhaps with the position in a loop."""
    value = scope.pick(lambda one: 0 < len(one.shape) < 4)
    if value is None:
        return
    rank = len(value.shape)
    kept = [dim for dim in range(rank) if scope.chance(0.7)]
    reduced = [dim for dim in range(rank) if dim not in kept]
    order = list(kept)
    scope.random.shuffle(order)
    shape = tuple(value.shape[dim] for dim in order)
    op, neutral = scope.random.choice(_REDUCTIONS)
    other = scope.alike(value)
    init = _full(scope, shape, neutral if scope.chance(0.7) else "0.5")
    loops = ", ".join(f"d{dim}" for dim in range(rank))
    results = ", ".join(f"d{dim}" for dim in order)
    maps = f"affine_map<({loops}) -> ({loops})>"
    maps = f"{maps}, {maps}, affine_map<({loops}) -> ({results})>"
    kinds = ", ".join(f'"{"reduction" if dim in reduced else "parallel"}"' for dim in range(rank))
    lines = ["%m = arith.subf %x, %y : f32"]
    if scope.chance(0.4):
        dim = scope.random.randrange(rank)
        lines += [
            f"%p = linalg.index {dim} : index",
            "%q = arith.index_cast %p : index to i32",
            "%r = arith.sitofp %q : i32 to f32",
            "%n = arith.addf %m, %r : f32",
        ]
    else:
        lines.append("%n = arith.mulf %m, %x : f32")
    lines.append(f"%s = arith.{op} %o, %n : f32" if reduced else "%s = arith.addf %n, %x : f32")
    lines.append("linalg.yield %s : f32")
    body = "\n      ".join(["^bb0(%x: f32, %y: f32, %o: f32):", *lines])
    header = f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
    outs = f"outs({init.name} : {init.type})"
    result = scope.define(shape)
    scope.add([result], f"{header} {_ins(value, other)} {outs} {{\n      {body}\n    }} -> {result.type}")


def matmul(scope: Scope) -> None:
    value = scope.pick(lambda one: len(one.shape) in (2, 3))
    if value is None:
        return
    *batch, rows, inner = value.shape
    columns = scope.random.choice(SIZES)
    other = scope.pick(lambda one: one.shape[:-1] == (*batch, inner)) or scope.of_type((*batch, inner, columns))
    name = "batch_matmul" if batch else "matmul"
    _named(scope, name, [value, other], (*batch, rows, other.shape[-1]), scope.random.choice(["0.0", "1.0"]))


def matvec(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) == 2):
        if scope.chance(0.5):
            _named(scope, "matvec", [value, scope.of_type((value.shape[1],))], (value.shape[0],))
        else:
            _named(scope, "vecmat", [scope.of_type((value.shape[0],)), value], (value.shape[1],))


def convolution(scope: Scope) -> None:
    stride, window = scope.random.choice([1, 2]), scope.random.choice([1, 2, 3])
    image = scope.of_type((scope.random.choice([2, 4]), scope.random.choice([5, 8]), 8, scope.random.choice([2, 3])))
    kernel = scope.of_type((window, window, image.shape[3], 4))
    sizes = [(size - window) // stride + 1 for size in image.shape[1:3]]
    attributes = f" {{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"
    _structured_window(scope, "conv_2d_nhwc_hwcf", attributes, [image, kernel], (image.shape[0], *sizes, 4), "0.0")


def pooling(scope: Scope) -> None:
    stride, window = scope.random.choice([1, 2]), scope.random.choice([2, 3])
    image = scope.of_type((scope.random.choice([2, 4]), scope.random.choice([5, 8]), 8, scope.random.choice([2, 3])))
    name, initial = scope.random.choice([("sum", "0.0"), ("max", "-1.0e38"), ("min", "1.0e38")])
    empty = scope.define((window, window))
    scope.add([empty], f"tensor.empty() : {empty.type}", seen=False)
    sizes = [(size - window) // stride + 1 for size in image.shape[1:3]]
    attributes = f" {{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"
    shape = (image.shape[0], *sizes, image.shape[3])
    _structured_window(scope, f"pooling_nhwc_{name}", attributes, [image, empty], shape, initial)


def _structured_window(
    scope: Scope, name: str, attributes: str, operands: list[Value], shape: Shape, initial: str
) -> None:
    init, result = _full(scope, shape, initial), scope.define(shape)
    outs = f"outs({init.name} : {init.type})"
    scope.add([result], f"linalg.{name}{attributes} {_ins(*operands)} {outs} -> {result.type}")


def pad(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        low, high = ([scope.random.choice([0, 0, 1, 2]) for _ in value.shape] for _ in range(2))
        shape = tuple(size + before + after for size, before, after in zip(value.shape, low, high, strict=True))
        result, scalar = scope.define(shape), scope.define(())
        scope.add([Value(f"{scalar.name}_scalar", ())], "arith.constant 0.5 : f32", seen=False)
        indices = ", ".join(f"%i{dim}: index" for dim in range(len(shape)))
        body = f"^bb0({indices}):\n      tensor.yield {scalar.name}_scalar : f32"
        scope.add(
            [result],
            f"tensor.pad {value.name} low{low} high{high} {{\n    {body}\n    }} : {value.type} to {result.type}",
        )


def cut(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        starts, sizes, strides = [], [], []
        for size in value.shape:
            is_cut = scope.chance(0.5)
            starts.append(scope.random.randrange(size) if is_cut else 0)
            strides.append(scope.random.choice([1, 1, 2]) if is_cut else 1)
            most = -(-(size - starts[-1]) // strides[-1])
            sizes.append(scope.random.randint(1, most) if is_cut else size)
        result = scope.define(tuple(sizes))
        where = f"{starts} {sizes} {strides}"
        scope.add([result], f"tensor.extract_slice {value.name}{where} : {value.type} to {result.type}")


def insert(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        shape = tuple(scope.random.randint(1, size) if scope.chance(0.5) else size for size in value.shape)
        starts = [scope.random.randint(0, size - part) for size, part in zip(value.shape, shape, strict=True)]
        part, result = scope.of_type(shape), scope.define(value.shape)
        where = f"{starts} {list(shape)} {[1] * len(shape)}"
        text = f"tensor.insert_slice {part.name} into {value.name}{where} : {part.type} into {value.type}"
        scope.add([result], text)


def reshape(scope: Scope) -> None:
    """Merges two neighbouring dimensions, or splits one."""
    value = scope.pick(lambda one: 0 < len(one.shape) < 4)
    if value is None:
        return
    dim, shape = scope.random.randrange(len(value.shape)), list(value.shape)
    is_merge = scope.chance(0.5) and dim + 1 < len(shape)
    if is_merge:
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
        grouped, name = len(value.shape), "collapse_shape"
    else:
        part = scope.random.choice([size for size in (1, 2, 3, 4) if shape[dim] % size == 0])
        shape[dim : dim + 1] = [part, shape[dim] // part]
        grouped, name = len(shape), "expand_shape"
    groups, at = [], 0
    while at < grouped:
        count = 2 if at == dim else 1
        groups.append(list(range(at, at + count)))
        at += count
    result = scope.define(tuple(shape))
    sizes = f" output_shape {shape}" if name == "expand_shape" else ""
    scope.add([result], f"tensor.{name} {value.name} {groups}{sizes} : {value.type} into {result.type}")


def concatenate(scope: Scope) -> None:
    if value := scope.pick(lambda one: len(one.shape) > 0):
        dim, other = scope.random.randrange(len(value.shape)), scope.alike(value)
        shape = tuple(2 * size if one == dim else size for one, size in enumerate(value.shape))
        result = scope.define(shape)
        names = f"{value.name}, {other.name} : ({value.type}, {other.type})"
        scope.add([result], f"tensor.concat dim({dim}) {names} -> {result.type}")
