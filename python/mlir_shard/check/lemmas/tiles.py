# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that are assembled from tiles: permutations of devices, halos, and branches that some devices take."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry
from mlir_shard.check.lemmas.indices import refined, substituted
from mlir_shard.check.lemmas.lemmas import Lemmas
from mlir_shard.check.lemmas.values import Node, Value
from mlir_shard.check.ops.tensors import FAR
from mlir_shard.deferred import numpy as np

_MOST_PARTS = 4096


def received(lemmas: Lemmas, value: Value, senders: Any) -> Value:
    """Returns the value that each device received from the device in `senders`; any value where that is -1."""
    found = list[Entry]()
    for entry in value.index:
        rows = lemmas.mesh.by_device(entry)[np.maximum(senders, 0)]
        offset, along = lemmas.entry_of_devices(rows, senders >= 0, like=entry)
        found.append((offset, (*along, *(term for term in entry[1] if term[1] >= 0))))
    return Value(value.node, tuple(found), value.dims)


def merged(lemmas: Lemmas, chosen: Any, first: Value, second: Value) -> Value:
    """Returns the first value on the chosen devices, and the second one on the others."""
    if chosen.all() or first == second:
        return first
    places = np.where(chosen, 0, -FAR) * np.ones((max(len(first.dims), 1), 1), np.int64)
    found = assembled(lemmas, second, first, places)
    return covered(lemmas, found, [0] * len(first.dims), first.shape) or found


def assembled(lemmas: Lemmas, base: Value, tile: Value, places: Any) -> Value:
    """Returns a tensor with a tile at a place of each device, over earlier ones; parts outside are ignored.

    It is a node of the number of the device and the position; `covered` expresses it as a part of another node. A
    scalar has one place too.
    """
    shape, rank = base.shape, len(places)
    pieces = list[tuple[Value, tuple[int, ...]]]()
    for value, at in ((base, np.zeros_like(places)), (tile, places)):
        inner = value.node.op[1] if lemmas.is_assembly(value) else ()
        moved = list[tuple[Value, tuple[int, ...]]]()
        for one, own in inner:
            own = np.array(own, np.int64).reshape(-1, rank).T
            sizes, around = _column(one.shape or (1,)), _column(value.shape or (1,))
            inside = ((own >= 0) & (own + sizes <= around)).all(axis=0)
            if not (inside | ((own >= around) | (own + sizes <= 0)).any(axis=0)).all():
                moved, inner = [], ()
                break
            moved.append((one, tuple(np.where(inside & (at > -FAR), own + at, -FAR).T.ravel().tolist())))
        pieces += moved if inner else [(value, tuple(at.T.ravel().tolist()))]
    return lemmas.assembly(pieces, shape)


class _Tile:
    """A tile of an assembled tensor.

    Attributes:
        low, high: its bounds on each device, a row for each dimension.
        number: its value if it is one number; else `core` is its node without padding.
        strides: the stride of each dimension of the tensor in the index of the core.
        index: the index in the core; origin: the index of position zero of the tensor, on each device.
        behind: the number that extends the core, and the extended sides; None if they are unknown.
    """

    def __init__(self, lemmas: Lemmas, value: Value, at: Any) -> None:
        self.low, self.high = at, at + _column(value.shape)
        self.number = lemmas.number_of(value, "tiles") if lemmas.is_number(value) else None
        self.core, entries = lemmas.nodes.core(value.node)
        is_behind = value.node.op[0] == "extended" and self.core is value.node.reads[0][0]
        self.behind = value.node.op[1:3] if is_behind else None
        dim_of = [dim for dim, of in enumerate(value.dims) for _ in of]
        self.index = index = [substituted(entry, dict(enumerate(value.index))) for entry in entries]
        self.strides = [{dim_of[one]: stride for stride, one in terms if one >= 0} for _, terms in index]
        self.origin = np.stack([np.zeros_like(at[0]), *(lemmas.mesh.by_device(entry) for entry in index)])[1:]
        for row, of in zip(self.origin, self.strides, strict=True):
            for dim, stride in of.items():
                row -= stride * at[dim]

    def holds(self, number: str, sides: Any) -> bool:
        """Returns whether the tile is known to be a number beyond the end of the core on these sides."""
        if self.number is not None:
            return self.number == number
        return (
            self.behind is not None
            and self.behind[0] == number
            and not (np.array(sides) & ~np.array(self.behind[1])).any()
        )


def covered(lemmas: Lemmas, value: Value, starts: Sequence[int], sizes: Sequence[int]) -> Value | None:
    """Returns a box of an assembled tensor if it is a part of one node on each device; else None.

    The box is cut where a tile or the node ends. In each part the last tile must equal the node or, beyond the end of
    the node, the number that extends it. If no number matches beyond the end, the elements there are unknown.
    """
    if not lemmas.is_assembly(value) or 0 in sizes:
        return None
    if not sizes:
        pieces = [(lemmas.reshaped(tile, (1,)), at) for tile, at in value.node.op[1]]
        found = covered(lemmas, lemmas.assembly(pieces, (1,)), [0], [1])
        return None if found is None else lemmas.reshaped(found, ())
    places = [
        (tile, np.array(at, np.int64).reshape(-1, len(sizes)).T - _column(starts)) for tile, at in value.node.op[1]
    ]
    for is_cut in (False, True):
        cut = _cut_into_digits(lemmas, places, sizes, is_cut=is_cut)
        found = None if cut is None else _of_one_node(lemmas, *cut, sizes)
        if found is not None:
            return found
    return None


def _of_one_node(
    lemmas: Lemmas, tiles: Sequence[_Tile], dims: Sequence[tuple[int, ...]], sizes: Sequence[int]
) -> Value | None:
    flat = [size for of in dims for size in of]
    inside = [tile for tile in tiles if ((tile.high > 0) & (tile.low < _column(flat))).all(axis=0).any()]
    numbers = {tile.number for tile in inside if tile.number is not None}
    cores = {tile.core for tile in inside if tile.number is None}
    if not cores and len(numbers) == 1:
        return lemmas.constant("any", str(numbers.pop()), sizes)
    if len(cores) != 1:
        return None
    core, of_core = cores.pop(), [tile for tile in inside if tile.number is None]
    strides = _common_strides(of_core, len(core.bounds), flat)
    if strides is None:
        return None
    numbers |= {tile.behind[0] for tile in of_core if tile.behind is not None}
    box = _Box(lemmas, inside, core, strides, flat)
    found = (box.value(number, dims) for number in (*sorted(map(str, numbers)), None))
    return next((one for one in found if one is not None), None)


def _cut_into_digits(
    lemmas: Lemmas, places: Sequence[tuple[Value, Any]], sizes: Sequence[int], *, is_cut: bool
) -> tuple[list[_Tile], list[tuple[int, ...]]] | None:
    """Returns the tiles and the dims of the box, with a dimension for each digit of dimensions cut into digits by
    tiles.

    If `is_cut`, a dimension that has tiles of one size side by side is cut into one that counts them and one within
    them.
    """
    dims: list[tuple[int, ...]] = []
    for dim, size in enumerate(sizes):
        factors = [tile.dims[dim] for tile, _ in places if not lemmas.is_number(tile)]
        fine = refined(*factors) if len({prod(of) for of in factors}) == 1 and max(map(len, factors)) > 1 else ()
        if fine is None or (not fine and any(len(of) > 1 for of in factors)):
            return None
        part, ends = prod(fine), [size, *(tile.shape[dim] for tile, _ in places)]
        if is_cut and not fine and len(set(factors)) == 1 and 1 < prod(factors[0]) < size:
            fine = factors[0]
            part = prod(fine)
        if any(end % part for end in ends) or any((at[dim] % part)[at[dim] > -FAR // 2].any() for _, at in places):
            if len(max(factors, key=len)) > 1:
                return None
            fine, part = (), 1
        dims.append((size // part, *fine))
    tiles = list[_Tile]()
    for tile, at in places:
        rows, found = list[Any](), list[tuple[int, ...]]()
        for dim, of in enumerate(dims):
            part = prod(of[1:])
            rows += [at[dim] // part, *(np.zeros_like(at[dim]) for _ in of[1:])]
            whole = tile.shape[dim] // part
            found += [(whole,) if whole > 1 else (), *((one,) for one in of[1:])]
        if not lemmas.is_number(tile):
            exact = [of[1:] or own for of, own in zip(dims, tile.dims, strict=True)]
            tile = Value(tile.node, lemmas.nodes.digits(tile, exact), tuple(found))
        else:
            tile = Value(tile.node, tile.index, tuple(found))
        tiles.append(_Tile(lemmas, tile, np.stack(rows)))
    return tiles, dims


def _common_strides(tiles: Sequence[_Tile], count: int, sizes: Sequence[int]) -> list[dict[int, int]] | None:
    """Returns the stride of each dimension in the index of the core, for tiles of size 1 from their places."""
    strides: list[dict[int, int]] = [{} for _ in range(count)]
    for tile in tiles:
        for one, other in zip(strides, tile.strides, strict=True):
            for dim, stride in other.items():
                if one.setdefault(dim, stride) != stride:
                    return None
    known = {dim for tile in tiles for dim in range(len(sizes)) if (tile.high - tile.low)[dim].max() > 1}
    for dim in set(range(len(sizes))) - known:
        for first, second in combinations(tiles, 2):
            is_in = [((tile.low >= 0) & (tile.high <= _column(sizes))).all(axis=0) for tile in (first, second)]
            others = [one for one in range(len(sizes)) if one != dim]
            both = is_in[0] & is_in[1] & (first.low[others] == second.low[others]).all(axis=0)
            at = np.flatnonzero(both & (first.low[dim] != second.low[dim]))
            if len(at):
                distance = int(second.low[dim, at[0]] - first.low[dim, at[0]])
                for one, row in zip(strides, (second.origin - first.origin)[:, at[0]], strict=True):
                    if row % distance == 0 and row:
                        one[dim] = int(row) // distance
                break
    for tile in tiles:
        for one, other, row in zip(strides, tile.strides, tile.origin, strict=True):
            for dim in one.keys() - other.keys():
                if (tile.high - tile.low)[dim].max() > 1:
                    return None
                row -= one[dim] * tile.low[dim]
    return strides


def _column(sizes: Sequence[int]) -> Any:
    return np.array(sizes, np.int64)[:, None]


class _Box:
    """A box of a tensor that is assembled from tiles, as a box of the node of which the tiles may be parts."""

    def __init__(self, lemmas: Lemmas, tiles: Sequence[_Tile], core: Node, strides: Any, sizes: Sequence[int]) -> None:
        self.lemmas, self.tiles, self.core, self.strides, self.sizes = lemmas, tiles, core, strides, sizes
        devices = lemmas.mesh.devices
        like: list[Entry] = [(0, ()) for _ in core.bounds]
        origin, known = np.zeros((len(core.bounds), devices), np.int64), np.zeros(devices, bool)
        for tile in tiles:
            if tile.number is None:
                low, high = np.maximum(tile.low, 0), np.minimum(tile.high, _column(sizes))
                matters = (low < high).all(axis=0) & self._touches(tile.origin, low, high)
                origin, known = np.where(matters, tile.origin, origin), known | matters
                like = tile.index if matters.any() else like
        self.entries = [lemmas.entry_of_devices(row, known, like=one) for row, one in zip(origin, like, strict=True)]
        rows = [lemmas.mesh.by_device(entry) for entry in self.entries]
        self.origin = np.stack(rows) if rows else origin

    def _touches(self, origin: Any, low: Any, high: Any) -> Any:
        """Returns for each device whether a box is at least partly in the bounds of the core."""
        found = np.ones(origin.shape[1], bool)
        for row, of, (first, last) in zip(origin, self.strides, self.core.bounds, strict=True):
            if all(stride > 0 for stride in of.values()):
                least = row + sum((stride * low[dim] for dim, stride in of.items()), np.zeros_like(row))
                most = row + sum((stride * (high[dim] - 1) for dim, stride in of.items()), np.zeros_like(row))
                found &= (most >= first if first is not None else True) & (least < last if last is not None else True)
        return found

    def _cuts(self, dim: int) -> list[Any]:
        """Returns the positions along a dimension where a tile or the core ends on each device, in order."""
        size, devices = self.sizes[dim], self.origin.shape[1]
        rows = [np.zeros(devices, np.int64), np.full(devices, size)]
        rows += [np.clip(row, 0, size) for tile in self.tiles for row in (tile.low[dim], tile.high[dim])]
        for row, of, bound in zip(self.origin, self.strides, self.core.bounds, strict=True):
            if of == {dim: 1}:
                rows += [np.clip(end - row, 0, size) for end in bound if end is not None]
        distinct = {row.tobytes(): row for row in rows}
        return list(np.sort(np.stack(list(distinct.values())), axis=0))

    def value(self, number: str | None, dims: Sequence[tuple[int, ...]]) -> Value | None:
        """Returns the box as a value that is `number` beyond the end of the core; None if the tiles do not match it."""
        cuts = [self._cuts(dim) for dim in range(len(self.sizes))]
        if prod(map(len, cuts)) > _MOST_PARTS:
            return None
        sides = np.zeros((len(self.core.bounds), 2), bool)
        for part in product(*(range(len(of) - 1) for of in cuts)):
            start = [of[at] for of, at in zip(cuts, part, strict=True)]
            left = np.ones(self.origin.shape[1], bool)
            for of, at in zip(cuts, part, strict=True):
                left &= of[at] < of[at + 1]
            if not left.any():
                continue
            index = self._index(self.origin, start)
            below, above = self._outside(index)
            outside = below.any(axis=0) | above.any(axis=0)
            for tile in reversed(self.tiles):
                here = left.copy()
                for dim, row in enumerate(start):
                    here &= (tile.low[dim] <= row) & (row < tile.high[dim])
                left &= ~here
                is_same = np.zeros_like(here)
                if tile.number is None:
                    is_same = (self._index(tile.origin, start) == index).all(axis=0)
                if (here & ~outside & ~is_same).any():
                    return None
                if number is not None and (here & outside).any():
                    behind = np.stack([(below & here).any(axis=1), (above & here).any(axis=1)], axis=1)
                    sides |= behind
                    if not tile.holds(number, behind) or (tile.number is None and (here & outside & ~is_same).any()):
                        return None
            if (left & ~outside).any() or (number is not None and left.any()):
                return None
        every = tuple((bool(low), bool(high)) for low, high in sides)
        digit_of = {dim: at for at, dim in enumerate(dim for dim, size in enumerate(self.sizes) if size > 1)}
        found = []
        for entry, of in zip(self.entries, self.strides, strict=True):
            terms = [(stride, digit_of[dim]) for dim, stride in of.items() if dim in digit_of]
            found.append((entry[0], (*entry[1], *terms)))
        nodes = self.lemmas.nodes
        node = nodes.extended(self.core, number, every) if number is not None else self.core
        return nodes.value(node, tuple(found), [tuple(size for size in of if size > 1) for of in dims])

    def _index(self, origin: Any, start: Sequence[Any]) -> Any:
        rows = [
            row + sum((stride * start[dim] for dim, stride in of.items()), np.zeros_like(row))
            for row, of in zip(origin, self.strides, strict=True)
        ]
        return np.stack(rows) if rows else origin

    def _outside(self, index: Any) -> tuple[Any, Any]:
        """Returns for each dimension of the core whether a part is before or beyond it, if the core's ends are cuts."""
        below, above = np.zeros(index.shape, bool), np.zeros(index.shape, bool)
        for at, (of, (first, last)) in enumerate(zip(self.strides, self.core.bounds, strict=True)):
            if not of or list(of.values()) == [1]:
                below[at] = index[at] < first if first is not None else False
                above[at] = index[at] >= last if last is not None else False
        return below, above
