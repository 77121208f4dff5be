# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Local programs with one mistake: a collective dropped, other groups, axes, orders, offsets, reductions or masks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

from mlir_shard.host import ir

Mutation = Callable[[], None]


def mutations(module: Any, grid: tuple[int, ...], random: Random) -> Iterator[tuple[str, Mutation]]:
    """Yields each mistake that can be made in a module: its name, and the function that makes it."""
    for op in _ops(module.operation):
        yield from _of_op(op, grid, random)


def _ops(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for one in block.operations:
                yield one.operation
                yield from _ops(one.operation)


def _of_op(op: Any, grid: tuple[int, ...], random: Random) -> Iterator[tuple[str, Mutation]]:
    name = op.name.partition(".")[2]
    is_same = len(op.operands) > 0 and len(op.results) == 1 and op.operands[0].type == op.results[0].type
    if is_same and name in ("all_reduce", "collective_permute", "recv", "update_halo", "all_to_all", "broadcast"):
        yield f"{name} dropped", lambda: op.results[0].replace_all_uses_with(op.operands[0])
    if name == "select":
        for which in (1, 2):
            if op.operands[which].type == op.results[0].type:
                yield "mask left out", lambda which=which: op.results[0].replace_all_uses_with(op.operands[which])
    if "grid_axes" in op.attributes:
        yield from _axes(op, grid, name)
    if "replica_groups" in op.attributes:
        yield from _groups(op, grid, name, random)
    if "source_target_pairs" in op.attributes:
        pairs = np.array(op.attributes["source_target_pairs"])
        if len(pairs) > 1:
            other = pairs.copy()
            first, second = random.sample(range(len(pairs)), 2)
            other[[first, second], 1] = other[[second, first], 1]
            yield "receivers swapped", _setter(op, "source_target_pairs", ir.DenseElementsAttr.get(other))
    if name in ("all_reduce", "reduce_scatter"):
        yield from _reductions(op, name)
    if name in ("slice", "extract_slice") and ("start_indices" in op.attributes or "static_offsets" in op.attributes):
        yield from _shifted(op, random)
    if name == "constant" and op.results:
        yield from _constants(op, random)
    if name == "compare":
        text = str(op.attributes["comparison_direction"])
        for one, other in (("LT", "LE"), ("GE", "GT"), ("LE", "LT"), ("GT", "GE")):
            if one in text:
                yield (
                    "mask moved",
                    _setter(op, "comparison_direction", ir.Attribute.parse(text.replace(one, other), op.context)),
                )


def _setter(op: Any, name: str, attribute: Any) -> Mutation:
    def change() -> None:
        op.attributes[name] = attribute

    return change


def _axes(op: Any, grid: tuple[int, ...], name: str) -> Iterator[tuple[str, Mutation]]:
    axes = list(op.attributes["grid_axes"])
    if name in ("send", "recv", "broadcast"):
        return

    def attribute(found: list[int]) -> Any:
        return ir.Attribute.parse(f"array<i16: {', '.join(map(str, found))}>", op.context)

    if len(axes) > 1 and name != "all_reduce":
        yield f"{name}: axes in another order", _setter(op, "grid_axes", attribute(axes[::-1]))
    for at, axis in enumerate(axes):
        for other, size in enumerate(grid):
            if other not in axes and size == grid[axis]:
                yield f"{name}: another axis", _setter(op, "grid_axes", attribute([*axes[:at], other, *axes[at + 1 :]]))


def _groups(op: Any, grid: tuple[int, ...], name: str, random: Random) -> Iterator[tuple[str, Mutation]]:
    groups = np.array(op.attributes["replica_groups"])
    if groups.shape[1] > 1 and name != "all_reduce":
        order = list(range(groups.shape[1]))
        while order == sorted(order):
            random.shuffle(order)
        yield (
            f"{name}: devices in another order",
            _setter(op, "replica_groups", ir.DenseElementsAttr.get(np.ascontiguousarray(groups[:, order]))),
        )
    if groups.shape[0] > 1 and groups.shape[1] > 1:
        other = groups.copy()
        other[0, 0], other[1, 0] = groups[1, 0], groups[0, 0]
        yield f"{name}: other groups", _setter(op, "replica_groups", ir.DenseElementsAttr.get(other))


def _reductions(op: Any, name: str) -> Iterator[tuple[str, Mutation]]:
    if "reduction" in op.attributes or op.name.startswith("shard."):
        text = str(op.attributes["reduction"]) if "reduction" in op.attributes else "#shard<partial sum>"
        other = "max" if "sum" in text else "sum"
        yield (
            f"{name}: another reduction",
            _setter(op, "reduction", ir.Attribute.parse(f"#shard<partial {other}>", op.context)),
        )
        return
    inner = op.regions[0].blocks[0].operations[0].operation

    def change() -> None:
        with ir.InsertionPoint(inner), inner.location:
            other = "stablehlo.maximum" if inner.name == "stablehlo.add" else "stablehlo.add"
            new = ir.Operation.create(other, [inner.results[0].type], list(inner.operands))
            inner.results[0].replace_all_uses_with(new.results[0])
            inner.erase()

    if inner.name in ("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.multiply"):
        yield f"{name}: another reduction", change


def _shifted(op: Any, random: Random) -> Iterator[tuple[str, Mutation]]:
    of_stablehlo = "start_indices" in op.attributes
    starts = list(op.attributes["start_indices" if of_stablehlo else "static_offsets"])
    shape, sizes = op.operands[0].type.shape, op.results[0].type.shape
    if len(shape) != len(sizes):
        return
    for dim, start in enumerate(starts):
        for step in (1, -1):
            if start < 0 or not 0 <= start + step <= shape[dim] - sizes[dim]:
                continue
            if not of_stablehlo:
                found = [*starts[:dim], start + step, *starts[dim + 1 :]]
                yield "slice shifted", _setter(op, "static_offsets", ir.DenseI64ArrayAttr.get(found, op.context))
            elif list(op.attributes["strides"])[dim] == 1:
                limits = list(op.attributes["limit_indices"])

                def change(dim: int = dim, step: int = step, limits: list[int] = limits) -> None:
                    for name, given in (("start_indices", starts), ("limit_indices", limits)):
                        moved = [*given[:dim], given[dim] + step, *given[dim + 1 :]]
                        op.attributes[name] = ir.DenseI64ArrayAttr.get(moved, op.context)

                yield "slice shifted", change


def _constants(op: Any, random: Random) -> Iterator[tuple[str, Mutation]]:
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr):
        return
    type_ = attribute.type
    if not re.fullmatch(r"(i|ui)(32|64)", str(type_.element_type)) or 0 in type_.shape:
        return
    entries = np.array(attribute)
    if entries.size > 4096:
        return
    other = np.ascontiguousarray(entries).copy()
    if attribute.is_splat:
        other[...] = other + 1
    else:
        at = random.randrange(other.size)
        if other.flat[at] == other.min():
            other.flat[at] += 1
        else:
            # The integers may be unsigned.
            other.flat[at] -= 1

    def change() -> None:
        op.attributes["value"] = ir.DenseElementsAttr.get(other, type=type_.element_type, shape=list(type_.shape))

    yield "offset changed", change
