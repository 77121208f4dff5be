# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random global programs with random sharding annotations, as text. By default meshes divide every size."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

# Sizes of axes by name; their product divides 8, and with it all sizes of tensors.
MESHES = ({"x": 2, "y": 2}, {"x": 4}, {"x": 2}, {"x": 2, "y": 2, "z": 2}, {"x": 4, "y": 2})
SIZES = (8, 16)

Shape = tuple[int, ...]


@dataclass
class Program:
    """A function under construction; `values` are the names of its tensors with their shapes."""

    random: Random
    mesh: dict[str, int]
    sizes: tuple[int, ...] = SIZES
    values: list[tuple[str, Shape]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def fresh(self) -> str:
        return f"%v{len(self.lines)}"

    def pick(self, rank: int | None = None) -> tuple[str, Shape]:
        """Returns a random tensor, of the given rank if one has it; otherwise the first tensor."""
        fitting = [value for value in self.values if rank is None or len(value[1]) == rank]
        return self.random.choice(fitting) if fitting else self.values[0]

    def add(self, shape: Shape, line: str) -> str:
        name = self.fresh()
        self.lines.append(f"    {name} = {line}")
        self.values.append((name, shape))
        return name

    def sharding(self, rank: int, *, open_chance: float = 0.5) -> str:
        """Returns the text of a sharding with random axes and sub-axes in random dimensions."""
        axes = []
        for name, size in self.mesh.items():
            if size == 4 and self.random.random() < 0.3:
                axes += [f'"{name}":(1)2', f'"{name}":(2)2']
            else:
                axes.append(f'"{name}"')
        self.random.shuffle(axes)
        dims: list[list[str]] = [[] for _ in range(rank)]
        for axis in axes:
            if dims and self.random.random() < 0.6:
                self.random.choice(dims).append(axis)
        spelled = []
        for dim in dims:
            # Adjacent sub-axes that can be merged have to be written as one axis.
            text = ", ".join(dim)
            for name in self.mesh:
                text = text.replace(f'"{name}":(1)2, "{name}":(2)2', f'"{name}"')
            if self.random.random() < open_chance:
                text += ", ?" if text else "?"
            spelled.append(f"{{{text}}}")
        return f"<@mesh, [{', '.join(spelled)}]>"


def tensor(shape: Shape) -> str:
    return "tensor<" + "".join(f"{size}x" for size in shape) + "f32>"


def generate(seed: int, dialect: str, steps: int = 6, sizes: tuple[int, ...] = SIZES) -> tuple[str, dict[str, int]]:
    """Returns the text of a module with a function @main in `dialect`, "linalg" or "stablehlo", and its mesh."""
    random = Random(seed)
    program = Program(random, random.choice(MESHES), sizes)
    arguments = []
    for index in range(3):
        shape = tuple(random.choice(sizes) for _ in range(random.choice((1, 2, 2, 3))))
        program.values.append((f"%a{index}", shape))
        annotation = f" {{sdy.sharding = #sdy.sharding{program.sharding(len(shape))}}}"
        arguments.append(f"%a{index}: {tensor(shape)}" + (annotation if random.random() < 0.7 else ""))
    choices = _LINALG if dialect == "linalg" else _STABLEHLO
    for _ in range(steps):
        random.choice(choices)(program)
        if random.random() < 0.2:
            name, shape = program.values[-1]
            program.add(shape, f"sdy.sharding_constraint {name} {program.sharding(len(shape))} : {tensor(shape)}")
    result, shape = program.values[-1]
    annotation = f" {{sdy.sharding = #sdy.sharding{program.sharding(len(shape))}}}" if random.random() < 0.5 else ""
    axes = ", ".join(f'"{name}"={size}' for name, size in program.mesh.items())
    text = "\n".join(
        (
            f"sdy.mesh @mesh = <[{axes}]>",
            f"func.func @main({', '.join(arguments)}) -> ({tensor(shape)}{annotation}) {{",
            "    %zero = arith.constant 0.0 : f32",
            "    %one = arith.constant 1.0 : f32",
            "    %least = arith.constant 0xFF800000 : f32",
            *program.lines,
            f"    return {result} : {tensor(shape)}",
            "}",
        )
    )
    return text, program.mesh


def _filled(program: Program, shape: Shape, scalar: str) -> str:
    empty = program.fresh()
    program.lines.append(f"    {empty} = tensor.empty() : {tensor(shape)}")
    name = program.fresh()
    program.lines.append(
        f"    {name} = linalg.fill ins({scalar} : f32) outs({empty} : {tensor(shape)}) -> {tensor(shape)}"
    )
    return name


def _generic(
    program: Program, inputs: list[tuple[str, Shape, str]], output: tuple[str, Shape, str], kinds: str, body: str
) -> None:
    """Adds a linalg.generic over loops of the kinds `p` and `r`; maps are texts such as `d0, d1`."""
    loops = ", ".join(f"d{index}" for index in range(len(kinds)))
    maps = ", ".join(f"affine_map<({loops}) -> ({map_})>" for *_, map_ in (*inputs, output))
    iterators = ", ".join('"parallel"' if kind == "p" else '"reduction"' for kind in kinds)
    ins = ", ".join(name for name, *_ in inputs) + " : " + ", ".join(tensor(shape) for _, shape, _ in inputs)
    arguments = ", ".join(f"%i{index}: f32" for index in range(len(inputs)))
    program.add(
        output[1],
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} ins({ins}) "
        f"outs({output[0]} : {tensor(output[1])}) {{\n"
        f"    ^bb0({arguments}, %o: f32):\n{body}\n    }} -> {tensor(output[1])}",
    )


def _linalg_add(program: Program) -> None:
    name, shape = program.pick()
    others = [value for value, other in program.values if other == shape]
    op = program.random.choice(("add", "mul", "max"))
    init = _filled(program, shape, "%zero")
    other = program.random.choice(others)
    program.add(
        shape,
        f"linalg.{op} ins({name}, {other} : {tensor(shape)}, {tensor(shape)}) "
        f"outs({init} : {tensor(shape)}) -> {tensor(shape)}",
    )


def _linalg_transpose(program: Program) -> None:
    name, shape = program.pick()
    order = list(range(len(shape)))
    program.random.shuffle(order)
    result = tuple(shape[dim] for dim in order)
    inverse = ", ".join(f"d{order.index(dim)}" for dim in range(len(shape)))
    init = _filled(program, result, "%zero")
    loops = ", ".join(f"d{dim}" for dim in range(len(shape)))
    body = "      %s = arith.mulf %i0, %i0 : f32\n      linalg.yield %s : f32"
    _generic(program, [(name, shape, inverse)], (init, result, loops), "p" * len(shape), body)


def _linalg_reduce(program: Program) -> None:
    name, shape = program.pick()
    if len(shape) < 2:
        return
    dim = program.random.randrange(len(shape))
    result = tuple(size for index, size in enumerate(shape) if index != dim)
    op, scalar = program.random.choice((("addf", "%zero"), ("addf", "%one"), ("maximumf", "%least"), ("mulf", "%one")))
    init = _filled(program, result, scalar)
    loops = ", ".join(f"d{index}" for index in range(len(shape)))
    kept = ", ".join(f"d{index}" for index in range(len(shape)) if index != dim)
    kinds = "".join("r" if index == dim else "p" for index in range(len(shape)))
    body = f"      %s = arith.{op} %o, %i0 : f32\n      linalg.yield %s : f32"
    _generic(program, [(name, shape, loops)], (init, result, kept), kinds, body)


def _linalg_matmul(program: Program) -> None:
    lhs, shape = program.pick(2)
    if len(shape) != 2:
        return
    fitting = [(name, other) for name, other in program.values if len(other) == 2 and other[0] == shape[1]]
    if not fitting:
        return
    rhs, other = program.random.choice(fitting)
    result = (shape[0], other[1])
    same = [name for name, third in program.values if third == result]
    # The initial value is sometimes nonzero.
    init = program.random.choice((_filled(program, result, "%zero"), *same))
    program.add(
        result,
        f"linalg.matmul ins({lhs}, {rhs} : {tensor(shape)}, {tensor(other)}) "
        f"outs({init} : {tensor(result)}) -> {tensor(result)}",
    )


def _linalg_broadcast(program: Program) -> None:
    name, shape = program.pick()
    if len(shape) > 2:
        return
    dim, size = program.random.randrange(len(shape) + 1), program.random.choice(program.sizes)
    result = (*shape[:dim], size, *shape[dim:])
    init = _filled(program, result, "%zero")
    loops = ", ".join(f"d{index}" for index in range(len(result)))
    kept = ", ".join(f"d{index}" for index in range(len(result)) if index != dim)
    # The body adds the position along the new dimension, so that shards differ.
    body = (
        f"      %p = linalg.index {dim} : index\n      %q = arith.index_cast %p : index to i32\n"
        "      %r = arith.sitofp %q : i32 to f32\n      %s = arith.addf %i0, %r : f32\n      linalg.yield %s : f32"
    )
    _generic(program, [(name, shape, kept)], (init, result, loops), "p" * len(result), body)


def _constant(program: Program) -> None:
    _, shape = program.pick()
    value = "0.5"
    if program.random.random() < 0.5:
        value = str([float(index) for index in range(shape[0])])
        shape = shape[:1]
    op = program.random.choice(("arith.constant", "stablehlo.constant"))
    program.add(shape, f"{op} dense<{value}> : {tensor(shape)}")


def _arith_add(program: Program) -> None:
    name, shape = program.pick()
    others = [value for value, other in program.values if other == shape]
    program.add(shape, f"arith.subf {name}, {program.random.choice(others)} : {tensor(shape)}")


def _stablehlo_add(program: Program) -> None:
    name, shape = program.pick()
    others = [value for value, other in program.values if other == shape]
    op = program.random.choice(("add", "multiply", "maximum"))
    program.add(shape, f"stablehlo.{op} {name}, {program.random.choice(others)} : {tensor(shape)}")


def _stablehlo_transpose(program: Program) -> None:
    name, shape = program.pick()
    order = list(range(len(shape)))
    program.random.shuffle(order)
    result = tuple(shape[dim] for dim in order)
    program.add(result, f"stablehlo.transpose {name}, dims = {order} : ({tensor(shape)}) -> {tensor(result)}")


def _stablehlo_broadcast(program: Program) -> None:
    name, shape = program.pick()
    if len(shape) > 2:
        return
    dim, size = program.random.randrange(len(shape) + 1), program.random.choice(program.sizes)
    result = (*shape[:dim], size, *shape[dim:])
    dims = [index for index in range(len(result)) if index != dim]
    program.add(result, f"stablehlo.broadcast_in_dim {name}, dims = {dims} : ({tensor(shape)}) -> {tensor(result)}")


def _stablehlo_reduce(program: Program) -> None:
    name, shape = program.pick()
    if len(shape) < 2:
        return
    dim = program.random.randrange(len(shape))
    result = tuple(size for index, size in enumerate(shape) if index != dim)
    op, initial = program.random.choice(
        (("add", "0.0"), ("add", "1.0"), ("maximum", "0xFF800000"), ("multiply", "1.0"))
    )
    init = program.fresh()
    program.lines.append(f"    {init} = stablehlo.constant dense<{initial}> : tensor<f32>")
    program.add(
        result,
        f"stablehlo.reduce({name} init: {init}) applies stablehlo.{op} across dimensions = [{dim}] : "
        f"({tensor(shape)}, tensor<f32>) -> {tensor(result)}",
    )


def _stablehlo_dot(program: Program) -> None:
    lhs, shape = program.pick()
    pairs = [
        (name, other, mine, theirs)
        for name, other in program.values
        for mine, size in enumerate(shape)
        for theirs, their_size in enumerate(other)
        if size == their_size and 1 <= len(shape) + len(other) - 2 <= 3
    ]
    if not pairs:
        return
    rhs, other, mine, theirs = program.random.choice(pairs)
    result = (*(s for i, s in enumerate(shape) if i != mine), *(s for i, s in enumerate(other) if i != theirs))
    program.add(
        result,
        f"stablehlo.dot_general {lhs}, {rhs}, contracting_dims = [{mine}] x [{theirs}] : "
        f"({tensor(shape)}, {tensor(other)}) -> {tensor(result)}",
    )


def _stablehlo_reshape(program: Program) -> None:
    name, shape = program.pick()
    total = 1
    for size in shape:
        total *= size
    least = min(program.sizes)
    factors = [8] if least == 8 else [size for size in (2, 3, 4, 5) if total % size == 0]
    results = [(total,), *((one, total // one) for one in factors), *((total // one, one) for one in factors)]
    result = program.random.choice([one for one in results if all(size >= least for size in one)])
    program.add(result, f"stablehlo.reshape {name} : ({tensor(shape)}) -> {tensor(result)}")


_LINALG = (
    _linalg_add,
    _linalg_transpose,
    _linalg_reduce,
    _linalg_matmul,
    _linalg_matmul,
    _linalg_broadcast,
    _constant,
    _arith_add,
)
_STABLEHLO = (
    _stablehlo_add,
    _stablehlo_transpose,
    _stablehlo_broadcast,
    _stablehlo_reduce,
    _stablehlo_dot,
    _stablehlo_dot,
    _stablehlo_reshape,
    _constant,
)
