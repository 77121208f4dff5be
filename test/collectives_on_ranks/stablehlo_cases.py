# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO's collectives, among groups of devices that are any lists, of equal or different sizes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from collectives_on_ranks.case import Case, Grid, Groups, resized
from mlir_shard.resharding import simulation
from mlir_shard.resharding.simulation import Blocks
from mlir_shard.runtime.arrays import TensorSpec, is_float, numpy_dtype

ELEMENT_TYPES = (
    *("f16", "bf16", "f32", "f64", "complex<f32>", "complex<f64>"),
    *("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"),
)
# StableHLO does not gather or scatter tensors without elements.
_WITH_ELEMENTS = ((5,), (1,), (2, 3), (3, 1), (2, 3, 2), (1, 1, 3))
SHAPES = (*_WITH_ELEMENTS, (0, 3))
_BY_NAME = {
    "add": "sum",
    "and": "bitwise_and",
    "maximum": "max",
    "minimum": "min",
    "multiply": "product",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
# Types to which elements may be converted before a reduction.
_WIDER = {"f16": "f32", "bf16": "f32", "f32": "f64", "i8": "i32", "i16": "i64", "ui8": "ui32"}
_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
_DEVICES = f"{_CHANNEL}, use_global_device_ids"


def some_cases(ranks: int, seed: int, rounds: int) -> list[Case]:
    """Returns `rounds` cases of each collective, with random groups, types and shapes."""
    draw = random.Random(seed * 100 + ranks)
    return [case for _ in range(rounds) for case in _round(Grid((ranks,), (0,)), draw)]


def _round(grid: Grid, draw: random.Random) -> list[Case]:
    (ranks,) = grid.shape

    def argument(shapes: Sequence[tuple[int, ...]] = SHAPES) -> TensorSpec:
        return TensorSpec(draw.choice(shapes), draw.choice(ELEMENT_TYPES))

    return [
        _all_gather(grid, _even(ranks, draw), argument(_WITH_ELEMENTS), draw),
        _all_to_all(grid, _even(ranks, draw), argument(), draw),
        _all_reduce(grid, _any(ranks, draw), argument(), draw),
        _all_reduce(grid, _even(ranks, draw), argument(), draw),
        _reduced_wider(grid, _any(ranks, draw), TensorSpec(draw.choice(SHAPES), draw.choice(list(_WIDER)))),
        _of_a_region(grid, _any(ranks, draw), argument()),
        _of_two_tensors(grid, _any(ranks, draw), argument()),
        _reduce_scatter(grid, _even(ranks, draw), argument(_WITH_ELEMENTS), draw),
        _scattered_by_a_region(grid, _even(ranks, draw), argument(_WITH_ELEMENTS), draw),
        _permute(grid, argument(), draw),
        _broadcast(grid, _even(ranks, draw)[: draw.randint(1, ranks)], argument()),
        _number(grid, draw.choice(("partition_id", "replica_id"))),
    ]


def _even(ranks: int, draw: random.Random) -> Groups:
    size = draw.choice([size for size in range(1, ranks + 1) if ranks % size == 0])
    devices = draw.sample(range(ranks), ranks)
    return tuple(tuple(devices[start : start + size]) for start in range(0, ranks, size))


def _any(ranks: int, draw: random.Random) -> Groups:
    devices = draw.sample(range(ranks), ranks)
    ends = sorted(draw.sample(range(1, ranks), draw.randrange(min(ranks, 4))))
    return tuple(tuple(devices[start:end]) for start, end in zip([0, *ends], [*ends, ranks], strict=True))


def _groups_text(groups: Groups) -> str:
    size = max(map(len, groups))
    rows = [[*group, *[-1] * (size - len(group))] for group in groups]
    return f"replica_groups = dense<{rows}> : tensor<{len(rows)}x{size}xi64>"


def _text(name: str, attributes: Sequence[str], argument: TensorSpec, result: TensorSpec, region: str = "") -> str:
    return f'%{{r}} = "stablehlo.{name}"({{a}}) <{{{{{", ".join(attributes)}}}}}> {region}: ({argument}) -> {result}'


def _region(element_type: str, *lines: str) -> str:
    """Returns a region that computes %c from %x and %y and returns it."""
    scalar = TensorSpec((), element_type)
    body = "\n    ".join([*lines, f"stablehlo.return %c : {scalar}"])
    return f"({{{{\n  ^bb0(%x: {scalar}, %y: {scalar}):\n    {body}\n  }}}}) "


def _by(combiner: str, element_type: str) -> str:
    return _region(element_type, f"%c = stablehlo.{combiner} %x, %y : {TensorSpec((), element_type)}")


def _sum_in_two_steps(element_type: str) -> str:
    """Returns a region for a sum that MPI does not have: x - (-y), or for truth values not (not x and not y)."""
    scalar = TensorSpec((), element_type)
    if element_type == "i1":
        negations = [f"%n{one} = stablehlo.not %{one} : {scalar}" for one in "xy"]
        return _region(
            element_type, *negations, f"%b = stablehlo.and %nx, %ny : {scalar}", f"%c = stablehlo.not %b : {scalar}"
        )
    return _region(element_type, f"%n = stablehlo.negate %y : {scalar}", f"%c = stablehlo.subtract %x, %n : {scalar}")


def _combiner(element_type: str, draw: random.Random) -> str:
    if element_type == "i1":
        return draw.choice(("add", "and", "or", "xor", "maximum", "minimum"))
    if element_type.startswith("complex"):
        return draw.choice(("add", "multiply"))
    return draw.choice(("add", "multiply", "maximum", "minimum") if is_float(element_type) else tuple(_BY_NAME))


def _case(
    name: str,
    grid: Grid,
    argument: TensorSpec,
    result: TensorSpec,
    text: str,
    expected: Callable[[Blocks], Blocks],
    combiner: str = "",
) -> Case:
    least, most = (1, 2) if combiner == "multiply" else (0, 9)
    return Case(name, grid, argument, result, text, expected, least, most)


def _all_gather(grid: Grid, groups: Groups, local: TensorSpec, draw: random.Random) -> Case:
    dim = draw.randrange(len(local.shape))
    result = resized(local, [(dim, len(groups[0]))])
    attributes = [f"all_gather_dim = {dim} : i64", _groups_text(groups), _DEVICES]
    text = _text("all_gather", attributes, local, result)
    return _case("all_gather", grid, local, result, text, lambda b: simulation.all_gather(b, groups, dim))


def _all_to_all(grid: Grid, groups: Groups, local: TensorSpec, draw: random.Random) -> Case:
    split, concat = (draw.randrange(len(local.shape)) for _ in range(2))
    size = len(groups[0])
    argument = resized(local, [(split, size)])
    result = resized(argument, [(split, 1 / size), (concat, size)])
    dims = [f"{name} = {value} : i64" for name, value in (("split_dimension", split), ("concat_dimension", concat))]
    attributes = [*dims, f"split_count = {size} : i64", _groups_text(groups), _CHANNEL]
    text = _text("all_to_all", attributes, argument, result)
    return _case("all_to_all", grid, argument, result, text, lambda b: simulation.all_to_all(b, groups, split, concat))


def _all_reduce(grid: Grid, groups: Groups, local: TensorSpec, draw: random.Random) -> Case:
    combiner = _combiner(local.element_type, draw)
    region = _by(combiner, local.element_type)
    text = _text("all_reduce", [_groups_text(groups), _DEVICES], local, local, region)

    def expected(blocks: Blocks) -> Blocks:
        return simulation.all_reduce(blocks, groups, _BY_NAME[combiner])

    return _case("all_reduce", grid, local, local, text, expected, combiner)


def _reduced_wider(grid: Grid, groups: Groups, local: TensorSpec) -> Case:
    wider = TensorSpec(local.shape, _WIDER[local.element_type])
    text = _text("all_reduce", [_groups_text(groups)], local, wider, _by("add", wider.element_type))

    def expected(blocks: Blocks) -> Blocks:
        as_wide = {device: block.astype(numpy_dtype(wider.element_type)) for device, block in blocks.items()}
        return simulation.all_reduce(as_wide, groups, "sum")

    return _case("all_reduce", grid, local, wider, text, expected)


def _of_a_region(grid: Grid, groups: Groups, local: TensorSpec) -> Case:
    region = _sum_in_two_steps(local.element_type)
    text = _text("all_reduce", [_groups_text(groups), _DEVICES], local, local, region)
    return _case("all_reduce", grid, local, local, text, lambda b: simulation.all_reduce(b, groups, "sum"))


def _of_two_tensors(grid: Grid, groups: Groups, local: TensorSpec) -> Case:
    """Returns a case that sums two tensors, and concatenates the sums."""
    result, attributes = resized(local, [(0, 2)]), ", ".join([_groups_text(groups), _DEVICES])
    text = f"""%{{r}}_t = stablehlo.reverse {{a}}, dims = [0] : {local}
  %{{r}}_s:2 = "stablehlo.all_reduce"({{a}}, %{{r}}_t) <{{{{{attributes}}}}}> {_by("add", local.element_type)}
    : ({local}, {local}) -> ({local}, {local})
  %{{r}} = stablehlo.concatenate %{{r}}_s#0, %{{r}}_s#1, dim = 0 : ({local}, {local}) -> {result}"""

    def expected(blocks: Blocks) -> Blocks:
        sums = simulation.all_reduce(blocks, groups, "sum")
        return {device: np.concatenate([one, one[::-1]]) for device, one in sums.items()}

    return _case("all_reduce", grid, local, result, text, expected)


def _reduce_scatter(grid: Grid, groups: Groups, local: TensorSpec, draw: random.Random) -> Case:
    return _scattered(grid, groups, local, draw, _combiner(local.element_type, draw))


def _scattered_by_a_region(grid: Grid, groups: Groups, local: TensorSpec, draw: random.Random) -> Case:
    return _scattered(grid, groups, local, draw, None)


def _scattered(grid: Grid, groups: Groups, local: TensorSpec, draw: random.Random, combiner: str | None) -> Case:
    dim, element_type = draw.randrange(len(local.shape)), local.element_type
    argument = resized(local, [(dim, len(groups[0]))])
    region = _sum_in_two_steps(element_type) if combiner is None else _by(combiner, element_type)
    attributes = [f"scatter_dimension = {dim} : i64", _groups_text(groups), _DEVICES]
    text = _text("reduce_scatter", attributes, argument, local, region)

    def expected(blocks: Blocks) -> Blocks:
        return simulation.reduce_scatter(blocks, groups, dim, _BY_NAME[combiner or "add"])

    return _case("reduce_scatter", grid, argument, local, text, expected, combiner or "")


def _permute(grid: Grid, local: TensorSpec, draw: random.Random) -> Case:
    (ranks,) = grid.shape
    count = draw.randint(1, ranks)
    pairs = list(zip(draw.sample(range(ranks), count), draw.sample(range(ranks), count), strict=True))
    text = f"source_target_pairs = dense<{[list(pair) for pair in pairs]}> : tensor<{count}x2xi64>"

    def expected(blocks: Blocks) -> Blocks:
        moved = {device: np.zeros_like(block) for device, block in blocks.items()}
        return {**moved, **{target: blocks[source] for source, target in pairs}}

    text = _text("collective_permute", [text, _CHANNEL], local, local)
    return _case("collective_permute", grid, local, local, text, expected)


def _broadcast(grid: Grid, groups: Groups, local: TensorSpec) -> Case:
    text = _text("collective_broadcast", [_groups_text(groups), _CHANNEL], local, local)

    def expected(blocks: Blocks) -> Blocks:
        nothing = {device: np.zeros_like(block) for device, block in blocks.items()}
        return {**nothing, **simulation.broadcast(blocks, groups, 0)}

    return _case("collective_broadcast", grid, local, local, text, expected)


def _number(grid: Grid, name: str) -> Case:
    result = TensorSpec((1,), "ui32")
    text = f"""%{{r}}_n = stablehlo.{name} : tensor<ui32>
  %{{r}} = stablehlo.reshape %{{r}}_n : (tensor<ui32>) -> {result}"""
    return _case(name, grid, TensorSpec((1,), "i32"), result, text, lambda b: {d: np.array([d], np.uint32) for d in b})
