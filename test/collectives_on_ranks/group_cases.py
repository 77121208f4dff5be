# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives among all devices of a group."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod

import numpy as np

from collectives_on_ranks.case import Case, Grid, resized
from mlir_shard.resharding import simulation
from mlir_shard.resharding.simulation import Blocks
from mlir_shard.runtime.arrays import TensorSpec, is_float, numpy_dtype

ARITHMETIC = ("sum", "product", "max", "min")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
# Types to which elements may be converted before a reduction.
WIDER = {"f16": "f32", "bf16": "f64", "f32": "f64", "i8": "i32", "i16": "f32", "i32": "i64", "i1": "i32"}


def of_shape(grid: Grid, shape: tuple[int, ...], element_type: str, draw: random.Random) -> list[Case]:
    """Returns one case of each collective. `shape` is not scalar, and is multiplied where it must be divisible."""
    local, size = TensorSpec(shape, element_type), prod(grid.sizes)
    dims = range(len(shape))
    dim, other = draw.choice(dims), draw.choice(dims)
    cut = resized(local, [(dim, size)])
    groups, axes = grid.groups(), list(grid.axes)
    root, root_text, index_types = _root(grid, draw)
    kinds = (
        ("max", "min", *BITWISE)
        if element_type == "i1"
        else (*ARITHMETIC, *(() if is_float(element_type) else BITWISE))
    )
    on = f"{{a}} on @{{g}} grid_axes = {axes}"

    def case(
        name: str,
        attributes: str,
        argument: TensorSpec,
        result: TensorSpec,
        expected: Callable[[Blocks], Blocks],
        most: int = 9,
        *,
        dynamic: bool = False,
    ) -> Case:
        types = f"({argument}{index_types}) -> {result}" if "root" in attributes else f"{argument} -> {result}"
        constants = root_text[1] if "root" in attributes else ""
        text = f"{constants}%{{r}} = shard.{name} {on} {attributes} : {types}"
        least = 1 if "product" in attributes else 0
        return Case(name, grid, argument, result, text, expected, least, 2 if least else most)

    at_root = f"root = {root_text[0]}"
    kind, scattered_kind, rooted_kind = (draw.choice(kinds) for _ in range(3))
    converted = WIDER.get(element_type, element_type)
    wide = TensorSpec(shape, converted)

    def converted_sum(blocks: Blocks) -> Blocks:
        as_wide = {device: block.astype(numpy_dtype(converted)) for device, block in blocks.items()}
        return simulation.all_reduce(as_wide, groups, "sum")

    concatenated = resized(cut, [(dim, 1 / size), (other, size)])
    cases = [
        case("all_gather", f"gather_axis = {dim}", local, cut, lambda b: simulation.all_gather(b, groups, dim)),
        case("all_slice", f"slice_axis = {dim}", cut, local, lambda b: simulation.all_slice(b, groups, dim)),
        case(
            "all_to_all",
            f"split_axis = {dim} concat_axis = {other}",
            cut,
            concatenated,
            lambda b: simulation.all_to_all(b, groups, dim, other),
        ),
        case("all_reduce", f"reduction = {kind}", local, local, lambda b: simulation.all_reduce(b, groups, kind)),
        case("all_reduce", "", local, wide, converted_sum, 1 if converted == "i1" else 9),
        case(
            "reduce_scatter",
            f"reduction = {scattered_kind} scatter_dim = {dim}",
            cut,
            local,
            lambda b: simulation.reduce_scatter(b, groups, dim, scattered_kind),
        ),
        case("broadcast", at_root, local, local, lambda b: simulation.broadcast(b, groups, root)),
        case("gather", f"gather_axis = {dim} {at_root}", local, cut, lambda b: simulation.gather(b, groups, dim, root)),
        case(
            "scatter", f"scatter_dim = {dim} {at_root}", cut, local, lambda b: simulation.scatter(b, groups, dim, root)
        ),
        case(
            "reduce",
            f"reduction = {rooted_kind} {at_root}",
            local,
            local,
            lambda b: simulation.reduce(b, groups, root, rooted_kind),
        ),
    ]
    return cases


def _root(grid: Grid, draw: random.Random) -> tuple[int, tuple[str, str], str]:
    """Returns a device of the group: its number, its text with the constants that this needs, and their types."""
    numbers = [draw.randrange(size) for size in grid.sizes]
    texts, constants, types = [], "", ""
    for place, number in enumerate(numbers):
        if draw.random() < 0.4:
            constants += f"%{{r}}_root{place} = arith.constant {number} : index\n  "
            texts.append(f"%{{r}}_root{place}")
            types += ", index"
        else:
            texts.append(str(number))
    number = int(np.ravel_multi_index(numbers, grid.sizes)) if numbers else 0
    return number, (f"[{', '.join(texts)}]", constants), types
