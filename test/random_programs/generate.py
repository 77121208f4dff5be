# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates random programs that can be run, in StableHLO, linalg or tosa."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from random import Random

from differential import contraction_ops as contraction
from differential import elementwise_ops as elementwise
from differential import indexed_ops as indexed
from differential import layout_ops as layout
from differential import region_ops as region
from differential import sdy_ops as sdy
from differential.annotations import Annotations, Axes
from differential.generate import call, unused
from differential.program import Function, Program, Statement, Tied, Value
from differential.scope import Module, Scope

from random_programs import linalg_ops as linalg
from random_programs import numeric_ops as numeric
from random_programs import ordering_ops as ordering
from random_programs import region_ops as ending
from random_programs import tosa_ops as tosa
from random_programs import typed_ops as typed

MESHES: tuple[Axes, ...] = (
    {"a": 2},
    {"a": 3},
    {"a": 4},
    {"a": 2, "b": 2},
    {"a": 2, "b": 3},
    {"a": 4, "b": 2},
    {"a": 2, "b": 2, "c": 2},
    {"a": 2, "b": 2, "c": 2, "d": 2},
    {"a": 4, "b": 2, "c": 2, "d": 2},
    {"a": 2, "b": 3, "c": 2, "d": 2},
    {"a": 2, "b": 4, "c": 2, "d": 4},
    {"a": 2, "b": 2, "c": 2, "d": 2, "e": 2},
    {"a": 2, "b": 2, "c": 3, "d": 2, "e": 2},
    {"a": 4, "b": 2, "c": 2, "d": 2, "e": 2},
    {"a": 2, "b": 2, "c": 2, "d": 2, "e": 2, "f": 2},
)
MOST_AXES = max(map(len, MESHES))
Kind = Callable[[Scope], None]

_ELEMENTWISE: dict[Kind, int] = {
    numeric.unary: 4,
    numeric.binary: 7,
    numeric.predicate: 1,
    elementwise.select: 2,
    elementwise.reduce_precision: 1,
    elementwise.complex_numbers: 1,
    numeric.clamp: 1,
    numeric.integer: 3,
    numeric.shift_right: 1,
    numeric.narrow: 1,
    numeric.bitcast: 1,
    numeric.constant: 3,
    numeric.iota: 2,
    numeric.scalar_expansion: 2,
    numeric.fresh_tensor: 1,
}
_MOVING: dict[Kind, int] = {
    layout.transpose: 3,
    layout.reshape: 2,
    layout.merge_or_split: 4,
    layout.broadcast: 3,
    layout.reverse: 2,
    layout.slice_: 3,
    layout.pad: 3,
    layout.concatenate: 3,
    layout.dynamic_slice: 2,
    layout.dynamic_update_slice: 2,
    indexed.gather: 3,
    indexed.scatter: 3,
    indexed.counting_gather: 1,
    typed.moved: 3,
}
_COMPUTING: dict[Kind, int] = {
    contraction.dot_general: 6,
    contraction.dot: 2,
    contraction.convolution: 3,
    contraction.select_and_scatter: 1,
    ordering.reduce: 4,
    ordering.reduce_integers: 2,
    ordering.arg_max: 1,
    ordering.reduce_window: 3,
    ordering.cumulative: 2,
    ordering.reduce_differently: 1,
    ordering.mapped: 1,
    ordering.sort: 2,
    ordering.sort_by_keys: 1,
    ordering.top_k: 1,
    ordering.batch_norm: 1,
    ordering.batch_norm_training: 1,
    ordering.matrix: 2,
    ordering.random_bits: 1,
    contraction.fft: 1,
    typed.product: 2,
    typed.complex_product: 1,
    typed.convolution: 2,
    typed.reduction: 2,
}
_SDY: dict[Kind, int] = {
    sdy.constraint: 4,
    sdy.reshard: 1,
    sdy.barrier: 1,
}
_WITH_REGIONS: dict[Callable[..., None], int] = {
    ending.while_loop: 3,
    ending.branches: 3,
    region.optimization_barrier: 2,
    region.named_computation: 2,
}
_AT_TOP: dict[Kind, int] = {ending.manual_elementwise: 1, ending.manual_sum: 1, sdy.group: 2}
_CALLS = 6
_DEEPEST = 2

STABLEHLO, LINALG, TOSA = "stablehlo", "linalg", "tosa"
DIALECTS = (STABLEHLO, LINALG, TOSA)
_NEUTRAL: dict[Kind, Kind] = {
    ordering.reduce: partial(ordering.reduce, is_neutral=True),
    ordering.reduce_window: partial(ordering.reduce_window, is_neutral=True),
}
# These contain collectives of StableHLO.
_NOT_COMPILED: frozenset[Kind] = frozenset({ending.manual_sum})
_LINALG: dict[Kind, int] = {
    linalg.elementwise: 4,
    linalg.arith: 3,
    linalg.cast: 1,
    linalg.constant: 2,
    linalg.transpose: 3,
    linalg.broadcast: 3,
    linalg.reduce: 4,
    linalg.generic: 5,
    linalg.matmul: 5,
    linalg.matvec: 2,
    linalg.convolution: 2,
    linalg.pooling: 2,
    linalg.pad: 3,
    linalg.cut: 3,
    linalg.insert: 3,
    linalg.reshape: 4,
    linalg.concatenate: 2,
}
_TOSA: dict[Kind, int] = {
    tosa.unary: 3,
    tosa.binary: 5,
    tosa.constant: 2,
    tosa.clamp: 1,
    tosa.select: 2,
    tosa.cast: 1,
    tosa.reduce: 4,
    tosa.arg_max: 1,
    tosa.matmul: 4,
    tosa.convolution: 2,
    tosa.pooling: 2,
    tosa.pad: 2,
    tosa.cut: 2,
    tosa.transpose: 3,
    tosa.reshape: 3,
    tosa.reverse: 1,
    tosa.tile: 1,
    tosa.concatenate: 2,
    tosa.gather: 2,
}


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of programs: the meshes, the sizes of dimensions, the number of axes of a dimension, and the maximum
    number of elements of a tensor. All listed sizes, and all listed numbers of axes, are equally likely."""

    meshes: tuple[Axes, ...]
    sizes: tuple[int, ...] = (1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 10, 12)
    axes_per_dim: tuple[int, ...] = (0, 0, 0, 1, 1, 2)
    most_elements: int = 2000

    @staticmethod
    def of(fewest_axes: int, most_axes: int, *, is_even: bool = False, is_large: bool = False) -> Scale:
        """Returns the scale of programs on meshes with these numbers of axes; ValueError if there are no such meshes.

        With `is_even`, axes and sizes of arguments are powers of two, so that most shards are even. With `is_large`,
        sizes are tens, at which loops are tiled and libraries are called.
        """
        meshes = tuple(axes for axes in MESHES if fewest_axes <= len(axes) <= most_axes)
        if is_even:
            meshes = tuple(axes for axes in meshes if prod(axes.values()).bit_count() == 1)
        if not meshes:
            raise ValueError(f"meshes have 1 to {MOST_AXES} axes, not {fewest_axes} to {most_axes}")
        if is_even:
            return Scale(meshes, (1, 4, 8, 16, 16, 32, 32, 64), (0, 0, 0, 1, 1, 1, 2), 16384)
        if is_large:
            return Scale(meshes, (1, 2, 3, 16, 17, 24, 33, 40, 64), most_elements=150_000)
        if most_axes <= SMALL_AXES:
            return Scale(meshes)
        return Scale(meshes, (1, 2, 3, 4, 6, 8, 8, 9, 12, 16, 16, 24, 32), (0, 0, 0, 1, 1, 1, 2, 2, 3), 4000)

    @property
    def most_devices(self) -> int:
        """The number of devices of the largest mesh."""
        return max(prod(axes.values()) for axes in self.meshes)


SMALL_AXES = 3
SMALL = Scale.of(1, SMALL_AXES)


@dataclass(frozen=True, slots=True)
class Kinds:
    """The operations of a program by their weights: in any block, with regions, and in the bodies of functions only."""

    plain: dict[Kind, int]
    with_regions: dict[Callable[..., None], int]
    at_top: dict[Kind, int]
    scale: Scale

    @staticmethod
    def of(dialect: str, *, is_compiled: bool, is_neutral: bool = False, scale: Scale = SMALL) -> Kinds:
        """Returns the operations of a dialect, all or only those that can be compiled to machine code.

        With `is_neutral` all reductions of StableHLO begin with a neutral value.
        """
        plain = {STABLEHLO: {**_ELEMENTWISE, **_MOVING, **_COMPUTING}, LINALG: _LINALG, TOSA: _TOSA}[dialect] | _SDY
        if is_neutral:
            plain = {_NEUTRAL.get(kind, kind): weight for kind, weight in plain.items()}
        if dialect != STABLEHLO:
            return Kinds(plain, {}, {sdy.group: 2}, scale)
        kept = {kind: weight for kind, weight in _AT_TOP.items() if not is_compiled or kind not in _NOT_COMPILED}
        return Kinds(plain, _WITH_REGIONS, kept, scale)

    def fill(self, scope: Scope, count: int) -> None:
        """Appends about `count` operations to a block."""
        choices: dict[Callable[[Scope], None], int] = dict(self.plain)
        if scope.depth < _DEEPEST:
            choices |= {partial(kind, fill=self.fill): weight for kind, weight in self.with_regions.items()}
        if scope.depth == 0:
            choices |= {call: _CALLS if scope.module.functions else 0, **self.at_top}
        for choice in scope.random.choices([*choices], [*choices.values()], k=count):
            values, statements = list(scope.values), list(scope.statements)
            choice(scope)
            if not all(map(self._can_be_run, scope.statements[len(statements) :])):
                scope.values[:], scope.statements[:] = values, statements

    def _can_be_run(self, statement: Statement) -> bool:
        """Returns False for too many elements, and for scatters of two tensors, which differ between XLA's devices."""
        is_double = len(statement.results) > 1 and str(statement.parts[0]).startswith('"stablehlo.scatter"')
        return not is_double and all(result.count <= self.scale.most_elements for result in statement.results)


def _arguments(scope: Scope, count: int, share: float, ranks: Sequence[int], scale: Scale) -> tuple[Tied, ...]:
    arguments: list[Tied] = []
    for _ in range(count):
        shape = tuple(scope.random.choice(scale.sizes) for _ in range(scope.random.choice(ranks)))
        if arguments and scope.chance(0.5):
            shape = scope.random.choice(arguments).value.shape
        while Value("", shape).count > scale.most_elements:
            shape = (1, *(max(1, size // 2) for size in shape[1:]))
        value = scope.define(shape)
        scope.values.append(value)
        arguments.append(Tied(value, scope.annotations.on_function(len(shape), share)))
    return tuple(arguments)


def _function(module: Module, name: str, kinds: Kinds, *, arguments: int, length: int, results: int) -> Function:
    scope = Scope(module)
    # Tosa has no tensors of rank zero.
    ranks = [1, 2, 2, 3, 3, 3, 4] if tosa.unary in kinds.plain else [0, 1, 2, 2, 2, 3, 3, 4]
    taken = _arguments(scope, arguments, 0.7 if name == "main" else 0.2, ranks, kinds.scale)
    kinds.fill(scope, length)
    statements: list[Statement] = scope.statements
    returned = unused(statements, scope.values)[-results:] or scope.values[:1]
    if scope.chance(0.2):
        returned = [*returned, scope.random.choice([one for one in scope.values if one.element == "f32"])]
    share = 0.4 if name == "main" else 0.2
    tied = tuple(Tied(value, scope.annotations.on_function(len(value.shape), share)) for value in returned)
    return Function(name, taken, tuple(statements), tied)


def program(
    seed: str,
    dialect: str = STABLEHLO,
    *,
    is_compiled: bool = False,
    is_neutral: bool = False,
    scale: Scale = SMALL,
) -> Program:
    """Returns the program of a seed, which is deterministic. Seeds are independent of each other."""
    random = Random(seed)
    kinds = Kinds.of(dialect, is_compiled=is_compiled, is_neutral=is_neutral, scale=scale)
    annotations = Annotations(random, scale.meshes, unreduced=0.0, axes_per_dim=scale.axes_per_dim)
    module = Module(random, annotations, numeric.literal)
    if random.random() < 0.3:
        for index in range(random.randint(1, 2)):
            arguments, length = random.randint(1, 3), random.randint(1, 4)
            function = _function(module, f"callee{index}", kinds, arguments=arguments, length=length, results=2)
            module.functions.append(function)
    arguments, length = random.randint(2, 4), random.randint(3, 12)
    main = _function(module, "main", kinds, arguments=arguments, length=length, results=4)
    return Program(tuple(module.annotations.meshes), (main, *module.functions))
