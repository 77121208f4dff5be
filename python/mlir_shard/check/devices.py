# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers that each device computes of its position, permutations of devices, and tensors assembled of tiles.

What is affine in the position on the mesh is an index. What is not is a table with an entry for each device: a digit of
its own, beside the mesh axes, of which no collective is certified that moves along an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

from mlir_shard.check.lemmas import Lemmas
from mlir_shard.check.reading import width
from mlir_shard.check.values import Bound, Entry, Node, NotCertified, Value, entry_of, span
from mlir_shard.deferred import numpy as np

_FAR = 2**40


def places_of(lemmas: Lemmas) -> Any:
    """The position along each mesh axis of each device, as rows."""
    mesh = lemmas.nodes.real_mesh
    return np.indices(mesh).reshape(len(mesh), -1)


def by_device(lemmas: Lemmas, entry: Entry) -> Any:
    """What the mesh axes and tables add to an index, for each device."""
    places, total = places_of(lemmas), np.full(prod(lemmas.nodes.real_mesh), entry[0], np.int64)
    for stride, variable in entry[1]:
        axis = -1 - variable
        if axis >= 0:
            known = len(places)
            total = total + stride * (places[axis] if axis < known else lemmas.nodes.tables[axis - known])
    return total


def nowhere(bound: Bound) -> int:
    """An index that is out of bounds, so that nothing is known of what is there."""
    if bound == (None, None):
        raise NotCertified("what some devices have is not known", "permutation")
    return -_FAR if bound[0] is not None else _FAR


def entry_by_device(lemmas: Lemmas, entries: Any, matters: Any = None, bound: Bound = (0, 0)) -> Entry:
    """The index that is `entries` for each device that matters, affine if there is one, else a table.

    In a table the index of other devices is out of bounds.
    """
    mesh, places = lemmas.nodes.real_mesh, places_of(lemmas)
    chosen = np.ones(entries.shape, bool) if matters is None else matters
    if not chosen.any():
        return nowhere(bound), ()
    known, at = entries[chosen], places[:, chosen]
    strides = dict[int, int]()
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
    filled = entries if matters is None else np.where(chosen, entries, nowhere(bound))
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
    left, right = (by_device(lemmas, value.index[0]) for value in values)
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
    found = np.array(value.node.op[1])[tuple(by_device(lemmas, entry) for entry in value.index)]
    number = number_by_device(lemmas, element, found.astype(np.int64))
    return Value(number.node, number.index, value.dims)


def truth_by_device(lemmas: Lemmas, value: Value) -> Any:
    """For each device whether a comparison of integers holds; None if the value is something else."""
    holds = {"is NE 0": lambda one: one != 0, "is EQ 0": lambda one: one == 0, "is positive": lambda one: one > 0}
    if value.node.op[:2] == ("constant", "i1"):
        return np.full(prod(lemmas.nodes.real_mesh), value.node.op[2] == "True")
    if value.node.op[0] not in holds or any(variable >= 0 for _, terms in value.index for _, variable in terms):
        return None
    return holds[value.node.op[0]](by_device(lemmas, value.index[0]))


def permuted(lemmas: Lemmas, value: Value, senders: Any, element: str) -> Value:
    """What each device has after it received what another one had, whose number `senders` is; -1 for none.

    A device without a sender has zeros: they extend the value where its index is behind the end there, and elsewhere
    nothing is known of them.
    """
    receives = senders >= 0
    totals = [by_device(lemmas, entry)[np.maximum(senders, 0)] for entry in value.index]
    local = [tuple(term for term in terms if term[1] >= 0) for _, terms in value.index]
    entries = list[Entry]()
    for total, terms, bound in zip(totals, local, value.node.bounds, strict=True):
        offset, along = entry_by_device(lemmas, total, receives, bound)
        entries.append((offset, (*along, *terms)))
    nodes = lemmas.nodes
    found = nodes.value(value.node, tuple((at, tuple(terms)) for at, terms in entries), value.dims)
    if receives.all():
        return found
    size_of = nodes.size_in(value)
    number = "False" if element == "i1" else "0" if element[0] in "iu" else "0.0"
    for at, ((low, high), terms) in enumerate(zip(value.node.bounds, local, strict=True)):
        least, most = span((0, terms), size_of)
        known = by_device(lemmas, entries[at])
        inside = receives & True
        below = low is not None and bool((known + most < low)[~receives].all())
        above = high is not None and bool((known + least >= high)[~receives].all())
        is_inside = (low is None or bool((known + least >= low)[inside].all())) and (
            high is None or bool((known + most < high)[inside].all())
        )
        if (below or above) and is_inside:
            sides = tuple((below, above) if one == at else (False, False) for one in range(len(entries)))
            return nodes.value(nodes.extended(value.node, number, sides), tuple(entries), value.dims)
    finite = next((at for at, bound in enumerate(value.node.bounds) if bound != (None, None)), None)
    if finite is None:
        raise NotCertified("what a device without a sender has is not known", "permutation")
    filled = np.where(receives, totals[finite], nowhere(value.node.bounds[finite]))
    low = int(filled.min())
    entries[finite] = low, ((1, nodes.table(filled - low)), *local[finite])
    return nodes.value(value.node, tuple(entries), value.dims)


def assembled(lemmas: Lemmas, base: Value, tile: Value, starts: Sequence[Entry]) -> Value:
    """A tensor with a tile at a place of each device.

    It is a node of the number of the device and the position; `covered` tells what it is of another node.
    """
    shape = base.shape
    places = np.stack([by_device(lemmas, start) for start in starts]) if starts else np.zeros((0, 1), int)
    most = np.array([size - one for size, one in zip(shape, tile.shape, strict=True)])
    clamped = np.clip(places, 0, most[:, None])
    if not np.array_equal(clamped, places):
        raise NotCertified("a tile is out of bounds on some devices", "tiles")
    before: tuple[Any, ...] = ()
    if base.node.op[0] == "assembly" and base.index == _own(lemmas, shape):
        before = base.node.op[1]
    elif base.node.op[0] != "constant" and base.node.op[0] != "index":
        before = ((base, (0,) * (len(shape) * places.shape[1])),)
    pieces = (*before, (tile, tuple(clamped.T.ravel().tolist())))
    number = prod(lemmas.nodes.real_mesh)
    node = lemmas.nodes.node(("assembly", pieces), ((0, number), *((0, size) for size in shape)), (), ())
    return Value(node, _own(lemmas, shape), tuple((size,) if size > 1 else () for size in shape))


def _own(lemmas: Lemmas, shape: Sequence[int]) -> tuple[Entry, ...]:
    strides, stride = dict[int, int](), 1
    for axis in reversed(range(len(lemmas.nodes.real_mesh))):
        strides[-1 - axis] = stride if lemmas.nodes.real_mesh[axis] > 1 else 0
        stride *= lemmas.nodes.real_mesh[axis]
    digits, entries = 0, list[Entry]()
    for size in shape:
        entries.append((0, ((1, digits),) if size > 1 else ()))
        digits += size > 1
    return (entry_of(0, strides), *entries)


def _inner(node: Node) -> Node:
    """What a node extends: of the padding of a tile nothing is claimed."""
    return node.reads[0][0] if node.op[0] == "extended" else node


def covered(lemmas: Lemmas, value: Value, starts: Sequence[int], sizes: Sequence[int]) -> Value | None:
    """A box of an assembled tensor, if tiles of one node that fit together cover it on each device; else None.

    What no tile covers must be behind the end of the node, where nothing is known.
    """
    if value.node.op[0] != "assembly" or value.index != _own(lemmas, value.shape):
        return None
    pieces = value.node.op[1]
    node, rank = _inner(pieces[0][0].node), len(sizes)
    number = prod(lemmas.nodes.real_mesh)
    lows, highs, origins, strides = [], [], [], None
    for tile, places in pieces:
        if _inner(tile.node) is not node or any(len(dim) > 1 for dim in tile.dims):
            return None
        at = np.array(places).reshape(number, rank).T
        begin = np.array(starts)[:, None]
        lows.append(np.clip(at - begin, 0, np.array(sizes)[:, None]))
        highs.append(np.clip(at + np.array(tile.shape)[:, None] - begin, 0, np.array(sizes)[:, None]))
        digit_of, digits = {}, 0
        for dim, of in enumerate(tile.dims):
            if of:
                digit_of[digits] = dim
                digits += 1
        along = [{digit_of[variable]: stride for stride, variable in terms if variable >= 0} for _, terms in tile.index]
        if strides is None:
            strides = along
        for one, other in zip(strides, along, strict=True):
            for dim, stride in other.items():
                if one.setdefault(dim, stride) != stride:
                    return None
        origins.append((tile, at - begin))
    assert strides is not None
    totals = []
    for tile, at in origins:
        rows = [
            by_device(lemmas, entry) - sum((stride * at[dim] for dim, stride in of.items()), np.zeros(number, np.int64))
            for entry, of in zip(tile.index, strides, strict=True)
        ]
        totals.append(np.stack(rows) if rows else np.zeros((0, number), np.int64))
    entries, matter = list[Entry](), [(high > low).all(axis=0) for low, high in zip(lows, highs, strict=True)]
    known = np.any(matter, axis=0)
    common = np.zeros_like(totals[0])
    for total, at in zip(totals, matter, strict=True):
        common = np.where(at, total, common)
    for row, bound in zip(common, node.bounds, strict=True):
        entries.append(entry_by_device(lemmas, row, known, bound))
    common = np.stack([by_device(lemmas, entry) for entry in entries]) if entries else common
    if any((total != common)[:, at].any() for total, at in zip(totals, matter, strict=True)):
        return None
    # The box of the elements that are in bounds of the node.
    need_low, need_high = np.zeros((rank, number), np.int64), np.repeat(np.array(sizes)[:, None], number, axis=1)
    for (low, high), total, of in zip(node.bounds, common, strides, strict=True):
        if len(of) > 1 or any(stride != 1 for stride in of.values()):
            continue
        for dim in of:
            if low is not None:
                need_low[dim] = np.maximum(need_low[dim], low - total)
            if high is not None:
                need_high[dim] = np.minimum(need_high[dim], high - total)
        if not of:
            outside = ((total < low) if low is not None else False) | ((total >= high) if high is not None else False)
            need_high[0:1] = np.where(outside, need_low[0:1], need_high[0:1])
    boxes = [(np.maximum(low, need_low), np.minimum(high, need_high)) for low, high in zip(lows, highs, strict=True)]
    volume = sum(np.maximum(high - low, 0).prod(axis=0) for low, high in boxes)
    for (low, high), (low2, high2) in combinations(boxes, 2):
        both = np.maximum(np.minimum(high, high2) - np.maximum(low, low2), 0).prod(axis=0)
        if both.any():
            return None
    if (volume != np.maximum(need_high - need_low, 0).prod(axis=0)).any():
        return None
    index = []
    new = {dim: at for at, dim in enumerate(dim for dim, size in enumerate(sizes) if size > 1)}
    for entry, of in zip(entries, strides, strict=True):
        terms = [(stride, new[dim]) for dim, stride in of.items() if dim in new]
        index.append((entry[0], (*entry[1], *terms)))
    return lemmas.nodes.value(node, tuple(index), [(size,) if size > 1 else () for size in sizes])
