# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meaning of a value, element by element: the definition of each kind of node, and of the equality of two elements.

An element is a term, and a tensor of all devices is an array of the numbers of its terms. Lemmas prove values of any
size on any number of devices. Values without such a proof are compared by this definition if they are small enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard.check.kernel.kinds import IDEMPOTENT, NotCertified
from mlir_shard.check.kernel.terms import FLOATS, UNKNOWN, Terms, entries_of, number
from mlir_shard.check.lemmas.indices import Index
from mlir_shard.check.lemmas.nodes import Nodes
from mlir_shard.check.lemmas.values import Node, Value
from mlir_shard.deferred import numpy as np

MOST = 2**21
"""The maximum number of elements that one check computes."""
_OF_INDEX: dict[str, Any] = {
    "index": int,
    "position": int,
    "is positive": lambda at: at > 0,
    "is NE 0": lambda at: at != 0,
    "is EQ 0": lambda at: at == 0,
}
_UNBOUNDED = ("extended", *_OF_INDEX)


class Elements:
    """The tensors of terms of values."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes, self.terms = nodes, Terms()
        self._known: dict[Node, Any] = {}
        self._left = MOST

    def shards(self, value: Value, *, on_devices: bool = True) -> Any:
        """Returns the terms of a value: for each device, or for a global value without the dimension of devices."""
        sizes = [size for dim in value.dims for size in dim]
        devices = prod(self.nodes.mesh.axes) if on_devices else 1
        self._compute(value.node, devices * prod(sizes))
        shape = (devices, *sizes)
        grid = np.ogrid[tuple(map(slice, shape))]
        index = []
        for offset, terms in value.index:
            own = (offset, tuple(term for term in terms if term[1] < 0))
            at = self.nodes.mesh.by_device(own).reshape(-1, *(1 for _ in sizes))[:devices]
            index.append(at + sum(stride * grid[1 + one] for stride, one in terms if one >= 0))
        found = np.broadcast_to(self.at(value.node, index), shape)
        return found.reshape(devices, *value.shape) if on_devices else found.reshape(value.shape)

    def at(self, node: Node, index: Sequence[Any]) -> Any:
        """Returns the terms of a node at indices, which are arrays."""
        name = node.op[0]
        if name in _OF_INDEX:
            distinct, at = np.unique(index[0], return_inverse=True)
            of = float if node.op[1:] and node.op[1] in FLOATS else _OF_INDEX[name]
            numbers = [self.terms.number(of(one)) for one in distinct.tolist()]
            return np.array(numbers, np.int64)[at].reshape(np.shape(index[0]))
        bounds = (node.reads[0][0] if name == "extended" else node).bounds
        below = [False if low is None else at < low for at, (low, _) in zip(index, bounds, strict=True)]
        above = [False if high is None else at >= high for at, (_, high) in zip(index, bounds, strict=True)]
        if name == "extended":
            inner = self.at(node.reads[0][0], index)
            behind, unknown = np.array(False), np.array(False)
            for sides, *where in zip(node.op[2], below, above, strict=True):
                for is_known, here in zip(sides, where, strict=True):
                    behind, unknown = (behind | here, unknown) if is_known else (behind, unknown | here)
            return np.where(behind & ~unknown, self._text(node.op[1]), inner)
        whole, outside = self._known[node], np.array(False)
        for one in (*below, *above):
            outside = outside | one
        if 0 in whole.shape:
            return np.full(np.shape(outside), UNKNOWN)
        ends = ((low or 0, high or 0) for low, high in bounds)
        inside = tuple(np.clip(at, low, high - 1) - low for at, (low, high) in zip(index, ends, strict=True))
        return np.where(outside, UNKNOWN, whole[inside])

    def _text(self, text: str) -> int:
        of = number(text)
        return self.terms.term("constant", text) if of is None else self.terms.number(of)

    def _compute(self, node: Node, more: int) -> None:
        """Computes all elements of the nodes that a node reads, in order of creation, and counts `more` as well."""
        left, needed = [node], set[Node]()
        while left:
            one = left.pop()
            if one in needed or one in self._known:
                continue
            needed.add(one)
            left += [inner for inner, _ in one.reads]
            left += [tile.node for tile, _ in one.op[1]] if one.op[0] == "assembly" else []
        sizes = dict[Node, list[int]]()
        for one in sorted(needed, key=lambda one: one.number):
            if one.op[0] in _UNBOUNDED:
                continue
            sizes[one] = [0 if low is None or high is None else high - low for low, high in one.bounds]
            more += prod(sizes[one]) * prod(size for _, size in one.sizes) * max(len(one.reads), 1)
        if more > self._left:
            raise NotCertified("too many elements to be compared one by one", "elements")
        self._left -= more
        for one, shape in sizes.items():
            self._known[one] = np.asarray(self._whole(one, shape))

    def _whole(self, node: Node, shape: Sequence[int]) -> Any:
        name = node.op[0]
        if name == "constant":
            return self._text(node.op[2])
        if name == "assembly":
            return self._assembled(node, shape)
        if not node.reads:
            return self._leaf(node, shape)
        sizes = [size for _, size in node.sizes]
        grid = np.ogrid[tuple(map(slice, (*shape, *sizes)))] if shape or sizes else []
        free = [one + low for one, (low, _) in zip(grid, node.bounds, strict=False)]
        grid = [*free, *grid[len(free) :]]
        if name in ("copy", "concatenate", "reshape"):
            return self._moved(node, shape, grid)
        reads = [self.at(inner, _indices(index, grid)) for inner, index in node.reads]
        last = node.op[-1]
        if isinstance(last, tuple) and last[:1] == ("reduce",):
            op, kind, times = node.op[:-1], last[1], last[2]
            full = (*shape, *sizes)
            if op[0] == "lookup":
                reads = [np.broadcast_to(one, full) for one in reads]
                rows = np.stack(reads, axis=-1).reshape(prod(shape), -1, len(reads))
                return self._by_row(rows, lambda row: self.terms.looked_up(None, row * times)).reshape(shape)
            terms = reads[0] if op[0] == "identity" else self._pointwise(("stablehlo.multiply", *op[1:2]), reads)
            rows = np.sort(np.broadcast_to(terms, full).reshape(prod(shape), -1), axis=1)
            repeated = 1 if kind in IDEMPOTENT else times
            return self._by_row(rows, lambda row: self.terms.combined(kind, row * repeated)).reshape(shape)
        if not sizes and not node.made and name not in ("update", "several"):
            return np.broadcast_to(self._pointwise(node.op, reads), shape)
        return self._along(node, shape, sizes, reads)

    def _pointwise(self, op: tuple[Any, ...], reads: Sequence[Any]) -> Any:
        """Applies an op to the elements at each position. Equal operands are computed once."""
        rows = np.stack(np.broadcast_arrays(*reads), axis=-1)
        return self._by_row(rows.reshape(-1, len(reads)), lambda row: self.terms.applied(op, tuple(row))).reshape(
            rows.shape[:-1]
        )

    @staticmethod
    def _by_row(rows: Any, compute: Any) -> Any:
        if not len(rows):
            return np.zeros(0, np.int64)
        flat = rows.reshape(len(rows), -1)
        if flat.shape[1] == 0:
            return np.full(len(rows), compute([]), np.int64)
        codes = flat[:, 0]
        for column in flat.T[1:]:
            # Rows are numbered by their prefixes.
            codes = np.unique(codes, return_inverse=True)[1] * (int(column.max()) + 1) + column
        _, first, at = np.unique(codes, return_index=True, return_inverse=True)
        return np.array([compute(row) for row in rows[first].tolist()], np.int64)[at]

    def _leaf(self, node: Node, shape: Sequence[int]) -> Any:
        entries = entries_of(node.op[1]) if node.op[0] == "table" else None
        if entries is not None and entries.shape == tuple(shape):
            return np.array([self.terms.number(one) for one in entries.ravel().tolist()], np.int64).reshape(shape)
        first = len(self.terms.keys)
        self.terms.keys += [("leaf", node, at) for at in range(prod(shape))]
        return np.arange(first, len(self.terms.keys)).reshape(shape)

    def _along(self, node: Node, shape: Sequence[int], sizes: Sequence[int], reads: Sequence[Any]) -> Any:
        """Computes an op that does the same for each position. Its reads have no order except for positions."""
        free = len(shape) - node.made
        full = (*shape[:free], *(1 for _ in range(node.made)), *sizes)
        rows = np.stack([np.broadcast_to(one, full) for one in reads], axis=-1)
        rows = rows.reshape(prod(shape[:free]), prod(sizes), len(reads))

        def compute(row: Any) -> int:
            if node.op[0] == "update":
                return self.terms.looked_up(row[0][0], [one[1:] for one in row])
            if UNKNOWN in (term for one in row for term in one):
                return UNKNOWN
            if node.op[0] == "several":
                return self.terms.several(node.op, row)
            return self.terms.term("op", (*node.op, "makes", *shape[free:]), tuple(sorted(map(tuple, row))))

        found = self._by_row(rows, compute).reshape(shape[:free])
        if node.made:
            made = np.arange(prod(shape[free:]))
            found = self._pointwise(
                ("part",), (found[..., None], np.array([self.terms.number(int(one)) for one in made]))
            )
        return found.reshape(shape)

    def _moved(self, node: Node, shape: Sequence[int], grid: Sequence[Any]) -> Any:
        """Computes an op that moves elements along dimensions; its bound variables are the positions that it reads."""
        values = [read for read in node.reads if read[0].op[0] != "position"]
        positions = [_indices(index, grid)[0] for inner, index in node.reads if inner.op[0] == "position"]
        sizes = [size for _, size in node.sizes]
        free = len(shape) - node.made
        found = np.full((*shape[:free], prod(shape[free:])), UNKNOWN, np.int64)
        full = (*shape[:free], *(1 for _ in range(node.made)), *sizes)
        start = 0
        for part, (inner, index) in enumerate(values):
            terms = np.broadcast_to(self.at(inner, _indices(index, grid)), full).reshape(*shape[:free], -1)
            if node.op[0] == "reshape":
                # Positions of size 1 are the same everywhere.
                at = sum(
                    (one * prod(node.op[1][dim + 1 :]) for dim, one in enumerate(positions)), np.zeros((), np.int64)
                )
            else:
                at = positions[part] + start
                start += node.op[1 + part] if node.op[0] == "concatenate" else 0
            found[..., np.broadcast_to(at, (*(1 for _ in shape), *sizes)).reshape(-1)] = terms
        return found.reshape(shape)

    def _assembled(self, node: Node, shape: Sequence[int]) -> Any:
        """Assembles tiles, each at a place on each device. A later tile overwrites an earlier one."""
        # A scalar also has one place.
        around = shape[1:] or (1,)
        found: Any = np.full((shape[0], *around), UNKNOWN, np.int64)
        for tile, places in node.op[1]:
            terms = self.shards(tile).reshape(shape[0], *(tile.shape or around))
            for device, start in enumerate(np.array(places, np.int64).reshape(shape[0], -1).tolist()):
                boxes = [
                    (max(at, 0), min(at + size, whole), at)
                    for at, size, whole in zip(start, terms.shape[1:], around, strict=True)
                ]
                if all(low < high for low, high, _ in boxes):
                    here = tuple(slice(low, high) for low, high, _ in boxes)
                    found[device][here] = terms[device][tuple(slice(low - at, high - at) for low, high, at in boxes)]
        return found.reshape(shape)


def _indices(index: Index, grid: Sequence[Any]) -> list[Any]:
    return [
        offset + sum((stride * grid[one] for stride, one in terms), np.zeros((), np.int64)) for offset, terms in index
    ]
