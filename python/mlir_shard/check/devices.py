# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers that each device computes of its position, permutations of devices, and tensors assembled of tiles.

What is affine in the position on the mesh is an index. What is not is a table with an entry for each device: a digit of
its own, beside the mesh axes, of which no collective is certified that moves along an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard.check.lemmas import Lemmas
from mlir_shard.check.values import Entry, Value, entry_of, width
from mlir_shard.deferred import numpy as np


def entry_by_device(lemmas: Lemmas, entries: Any, matters: Any = None, *, like: Entry = (0, ())) -> Entry:
    """The index that is `entries` for each device that matters, affine if there is one, else a table.

    For other devices it is any. Along axes that the devices that matter do not differ by, an affine index has the
    strides of `like`.
    """
    mesh, places = lemmas.nodes.real_mesh, lemmas.nodes.places()
    chosen = np.ones(entries.shape, bool) if matters is None else matters
    if not chosen.any():
        return 0, ()
    known, at = entries[chosen], places[:, chosen]
    strides = {-1 - one: stride for stride, one in like[1] if 0 <= -1 - one < len(mesh)}
    for axis in range(len(mesh)):
        others = np.ones(at.shape[1], bool)
        for one in range(len(mesh)):
            others &= (at[one] == at[one, 0]) | (one == axis)
        different = np.flatnonzero(others & (at[axis] != at[axis, 0]))
        if len(different):
            step, distance = int(known[different[0]] - known[0]), int(at[axis, different[0]] - at[axis, 0])
            strides[axis] = step // distance
    offset = int(known[0]) - sum(stride * int(at[axis, 0]) for axis, stride in strides.items())
    fit = offset + sum((stride * at[axis] for axis, stride in strides.items()), np.zeros(at.shape[1], np.int64))
    if np.array_equal(fit, known):
        return entry_of(offset, {-1 - axis: stride for axis, stride in strides.items()})
    filled = np.where(chosen, entries, known[0])
    low = int(filled.min())
    return low, ((1, lemmas.nodes.table(filled - low)),)


def number_by_device(lemmas: Lemmas, element: str, entries: Any) -> Value:
    """The value that is `entries` on each device."""
    return lemmas.index(element, entry_by_device(lemmas, entries), ())


def is_by_device(value: Value) -> bool:
    """Whether a value is an integer of each device."""
    return (
        value.node.op[0] == "index"
        and not any(value.dims)
        and not any(variable >= 0 for _, terms in value.index for _, variable in terms)
    )


_NUMPY = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "floor_divide",
    "remainder": "mod",
    "maximum": "maximum",
    "minimum": "minimum",
}


def computed_by_device(lemmas: Lemmas, name: str, values: Sequence[Value]) -> Any:
    """The result of an op on integers of each device, for each of them; None if it is none of those known."""
    if name not in _NUMPY or not all(map(is_by_device, values)):
        return None
    left, right = (lemmas.nodes.by_device(value.index[0]) for value in values)
    if name in ("divide", "remainder") and ((left < 0).any() or (right <= 0).any()):
        return None
    return getattr(np, _NUMPY[name])(left, right)


def looked_up(lemmas: Lemmas, value: Value) -> Value:
    """An entry of a table of integers, by the position of the device."""
    if value.node.op[0] != "table" or any(variable >= 0 for _, terms in value.index for _, variable in terms):
        return value
    element = str(value.node.op[1].type.element_type)
    if not width(element) or any(value.dims):
        return value
    found = np.array(value.node.op[1])[tuple(lemmas.nodes.by_device(entry) for entry in value.index)]
    number = number_by_device(lemmas, element, found.astype(np.int64))
    return Value(number.node, number.index, value.dims)


def truth_by_device(lemmas: Lemmas, value: Value) -> Any:
    """For each device whether a comparison of integers holds; None if the value is something else."""
    holds = {"is NE 0": lambda one: one != 0, "is EQ 0": lambda one: one == 0, "is positive": lambda one: one > 0}
    if value.node.op[0] == "constant" and value.node.op[2] in ("True", "False"):
        return np.full(prod(lemmas.nodes.real_mesh), value.node.op[2] == "True")
    if value.node.op[0] not in holds or any(variable >= 0 for _, terms in value.index for _, variable in terms):
        return None
    return holds[value.node.op[0]](lemmas.nodes.by_device(value.index[0]))
