# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The nodes of one check: equal nodes are one object, and reads drop padding that they do not reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry, entry_of
from mlir_shard.check.kernel.kinds import width
from mlir_shard.check.kernel.mesh import Mesh
from mlir_shard.check.lemmas.indices import Bound, Index, is_inside, linear, span, split, substituted
from mlir_shard.check.lemmas.values import MOVING, Node, Read, Value, parts_of
from mlir_shard.deferred import numpy as np


class Nodes:
    """All nodes of one check, and the values on them.

    Attributes:
        mesh: the devices.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.place: Any = None
        self._known: dict[Any, Node] = {}
        self._cores: dict[Any, Read] = {}
        # The node that a node was first narrowed from, and the index in it.
        self._wider: dict[Node, Read] = {}
        self._narrowed: dict[Any, tuple[Node, tuple[int, ...]]] = {}

    def node(
        self,
        op: tuple[Any, ...],
        bounds: tuple[Bound, ...],
        sizes: tuple[Any, ...],
        reads: tuple[Read, ...],
        made: int = 0,
    ) -> Node:
        """Returns the node of this name, bounds and reads."""
        if op[0] == "constant":
            # A number is the same in all types.
            op = ("constant", "", op[2])
        if op[0] == "stablehlo.clamp" and all(
            reads[at][0].op[0] == "index" and not reads[at][1][0][1] for at in (0, 2)
        ):
            # The ends are numbers.
            op, reads = ("clamped", op[1], *(str(reads[at][1][0][0]) for at in (0, 2))), reads[1:2]
        key = (op, bounds, sizes, tuple((node.number, index) for node, index in reads), made)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Node(op, bounds, sizes, reads)
            found.number, found.place, found.made = len(self._known), self.place, made
            if op[0] == "extended":
                found.padded = frozenset(at for at, sides in enumerate(op[2]) if any(sides)) | reads[0][0].padded
            else:
                along = {
                    variable
                    for inner, index in reads
                    if inner.padded
                    for at in inner.padded
                    for _, variable in index[at][1]
                }
                found.padded = frozenset(one for one in along if one < len(bounds))
        return found

    def size_in(self, value: Value) -> Any:
        """Returns a function from the variables of a value's index to their sizes."""
        sizes = [size for dim in value.dims for size in dim]
        mesh = self.mesh.sizes
        return lambda variable: sizes[variable] if variable >= 0 else mesh[-1 - variable]

    def value(self, node: Node, index: Index, dims: Sequence[Sequence[int]]) -> Value:
        """Returns the value in canonical form: digits always side by side are merged, and those of size 1 dropped."""
        strides = [linear(terms) for _, terms in index]
        first, kept, new, by = 0, list[tuple[int, ...]](), 0, dict[int, int]()
        for dim in dims:
            sizes: list[int] = []
            for digit, size in enumerate(dim, first):
                if size == 1:
                    continue
                previous = by.get(new - 1) if sizes else None
                if previous is not None and all(of.get(previous, 0) == of.get(digit, 0) * size for of in strides):
                    sizes[-1] *= size
                    by[new - 1] = digit
                else:
                    by[new] = digit
                    sizes.append(size)
                    new += 1
            first += len(dim)
            kept.append(tuple(sizes))
        renumbered = {digit: number for number, digit in by.items()}
        entries = []
        for (offset, _), of in zip(index, strides, strict=True):
            moved = {}
            for variable, stride in of.items():
                if variable < 0:
                    if self.mesh.sizes[-1 - variable] > 1:
                        moved[variable] = stride
                elif variable in renumbered:
                    moved[renumbered[variable]] = stride
            entries.append(entry_of(offset, moved))
        value = Value(node, tuple(entries), tuple(kept))
        if not node.padded and node.op[0] not in MOVING and all(terms for _, terms in value.index):
            return value
        return Value(*self.narrowed(node, value.index, self.size_in(value)), value.dims)

    def narrowed(self, node: Node, index: Index, size_of: Any) -> Read:
        """Returns a read of a node as a read of one without the padding that it does not reach.

        An op on padded operands, read only outside the padding, equals the op on the unpadded operands.
        """
        node = self.stripped(node, index, size_of)
        while node.op[0] in MOVING:
            inner = self._moved(node, index, size_of)
            if inner is None:
                break
            node, index = inner
            node = self.stripped(node, index, size_of)
        if node.op[0] == "extended":
            return self._behind(node, index, size_of)
        if node.op[0] == "table" and index and not any(terms for _, terms in index):
            return self._entry_of_table(node, index)
        free = len(node.bounds) - node.made
        fixed = {at for at, (_, terms) in enumerate(index[:free]) if not terms} if node.reads else set()
        if not node.padded and not fixed:
            return node, index
        ranges, lows = list[Bound](), dict[int, int]()
        for at, (entry, bound) in enumerate(zip(index, node.bounds, strict=True)):
            low, high = span(entry, size_of)
            first, last = bound
            if first is None or last is None or low < first or high >= last:
                fixed.discard(at)
                ranges.append(bound)
            elif at in node.padded or at in fixed:
                if (low, high + 1) != bound or at in fixed:
                    lows[at] = low
                ranges.append((0, high + 1 - low) if at in lows else bound)
            else:
                ranges.append(bound)
        if not lows:
            return node, index
        key = node.number, tuple(lows.items()), tuple(ranges)
        if key not in self._narrowed:
            left = [at for at, (low, high) in enumerate(ranges) if at not in lows or low is None or high != 1]
            new = {at: number for number, at in enumerate(left)}
            new |= {len(ranges) + at: len(left) + at for at in range(len(node.sizes))}
            by: dict[Any, Entry] = {at: (lows.get(at, 0), ((1, number),)) for at, number in new.items()}
            by |= {at: (low, ()) for at, low in lows.items() if at not in new}
            bounds = tuple(ranges[at] for at in left)
            sizes = [0 if high is None or low is None else high - low for low, high in bounds]
            sizes += [size for _, size in node.sizes]
            reads = tuple(
                self.narrowed(inner, tuple(substituted(entry, by) for entry in entries), sizes.__getitem__)
                for inner, entries in node.reads
            )
            self._narrowed[key] = self._with_used(node, bounds, reads, left)
            narrow, kept = self._narrowed[key]
            if narrow is not node:
                new = {at: number for number, at in enumerate(kept)}
                wide = tuple(
                    (lows.get(at, 0 if at in new else first or 0), ((1, new[at]),) if at in new else ())
                    for at, (first, _) in enumerate(node.bounds)
                )
                self._wider.setdefault(narrow, (node, wide))
        narrow, kept = self._narrowed[key]
        return narrow, tuple((index[at][0] - lows.get(at, 0), index[at][1]) for at in kept)

    def _entry_of_table(self, node: Node, index: Index) -> Read:
        """Returns an entry of a table of integers at a constant index as an index; other reads are unchanged."""
        element = str(node.op[1].type.element_type)
        if not width(element) or any(
            not is_inside(entry, bound, int) for entry, bound in zip(index, node.bounds, strict=True)
        ):
            return node, index
        number = int(np.array(node.op[1])[tuple(at for at, _ in index)])
        return self.node(("index", element), ((None, None),), (), ()), ((number, ()),)

    def _with_used(
        self, node: Node, bounds: tuple[Bound, ...], reads: tuple[Read, ...], left: Sequence[int]
    ) -> tuple[Node, tuple[int, ...]]:
        """Returns a node with other reads, and the variables that it keeps: those read, or made by the op."""
        used = {variable for _, index in reads for _, terms in index for _, variable in terms}
        count = len(bounds)
        kept = [at for at in range(count) if at in used or left[at] >= len(node.bounds) - node.made]
        new = {at: number for number, at in enumerate([*kept, *range(count, count + len(node.sizes))])}
        by: dict[Any, Entry] = {at: (0, ((1, number),)) for at, number in new.items()}
        moved = tuple((inner, tuple(substituted(entry, by) for entry in index)) for inner, index in reads)
        made = sum(left[at] >= len(node.bounds) - node.made for at in kept)
        found = self.node(node.op, tuple(bounds[at] for at in kept), node.sizes, moved, made)
        return found, tuple(left[at] for at in kept)

    def _behind(self, node: Node, index: Index, size_of: Any) -> Read:
        """Returns a read of an extended node; a read of its extension alone becomes the constant that extends it."""
        outside = False
        for entry, (low, high), (first, last) in zip(index, node.op[2], node.reads[0][0].bounds, strict=True):
            if not is_inside(entry, (None if low else first, None if high else last), size_of):
                return node, index
            least, most = span(entry, size_of)
            outside |= (low and first is not None and most < first) or (high and last is not None and least >= last)
        return (self.node(("constant", "any", node.op[1]), (), (), ()), ()) if outside else (node, index)

    @staticmethod
    def _moved(node: Node, index: Index, size_of: Any) -> Read | None:
        """Returns the read behind a copy or a part of a concatenation at an index in its bounds; None if unknown."""
        sizes = parts_of(node)
        start, count = 0, len(sizes)
        for at, size in enumerate(sizes):
            if is_inside(index[-1], (start, start + size), size_of):
                (inner, entries), (_, (position,)) = node.reads[at], node.reads[count + at]
                by: dict[Any, Entry] = dict(enumerate(index[:-1]))
                digits = [variable for _, variable in position[1]]
                entry = index[-1][0] - start, index[-1][1]
                parts = split(entry, [node.sizes[one - len(node.bounds)][1] for one in digits], size_of)
                if parts is None:
                    return None
                by.update(zip(digits, parts, strict=True))
                return inner, tuple(substituted(entry, by) for entry in entries)
            start += size
        return None

    def core(self, node: Node) -> Read:
        """Returns the node without the padding that it reads, and the index into it; its bounds exclude the padding.

        A part of a wider node is read as a part of that node, so that all parts of the wider node have one core.
        """
        wider = self._wider.get(node)
        if wider is not None:
            core, index = self.core(wider[0])
            by: dict[Any, Entry] = dict(enumerate(wider[1]))
            return core, tuple(substituted(entry, by) for entry in index)
        if node not in self._cores:
            inner = node.reads[0][0] if node.op[0] == "extended" else node
            found: Read = (inner, tuple((0, ((1, at),)) for at in range(len(node.bounds))))
            ranges = self._unpadded(inner) if inner.padded else None
            if ranges is not None:
                lows = [low or 0 for low, _ in ranges]
                sizes = [1 if high is None else high - low for low, (_, high) in zip(lows, ranges, strict=True)]
                index = tuple((low, ((1, at),)) for at, low in enumerate(lows))
                core, entries = self.narrowed(inner, index, sizes.__getitem__)
                kept = {
                    of[1][0][1]: core.bounds[at]
                    for at, of in enumerate(entries)
                    if of[0] == 0 and len(of[1]) == 1 and of[1][0][0] == 1
                }
                # The core does not bound the node along a dimension that it does not have.
                if all(kept.get(at) == (0, size) for at, size in enumerate(sizes)):
                    by = {at: (-low, ((1, at),)) for at, low in enumerate(lows)}
                    found = core, tuple(substituted(entry, by) for entry in entries)
            self._cores[node] = found
        return self._cores[node]

    def _unpadded(self, node: Node) -> list[Bound] | None:
        """Returns a range of each variable in which a node reads no padding; None if these ranges do not form a box."""
        if node.op[0] == "extended":
            return self._unpadded(node.reads[0][0])
        ranges = list(node.bounds)
        for inner, index in node.reads if node.padded else ():
            inside = self._unpadded(inner) if inner.padded else None
            for at in inner.padded:
                offset, terms = index[at]
                if not terms:
                    continue
                (stride, variable), (first, last) = terms[0], inside[at] if inside is not None else (None, None)
                if len(terms) > 1 or stride < 0 or variable >= len(ranges) or first is None or last is None:
                    return None
                low, high = ranges[variable]
                ends = -((offset - first) // stride), -((offset - last) // stride)
                ranges[variable] = (
                    max(ends[0], ends[0] if low is None else low),
                    min(ends[1], ends[1] if high is None else high),
                )
        return None if any(low is not None and high is not None and low >= high for low, high in ranges) else ranges

    def stripped(self, node: Node, index: Index, size_of: Any) -> Node:
        """Returns an extended node without the sides where the index is in the bounds of the inner node."""
        if node.op[0] != "extended":
            return node
        inner, _ = node.reads[0]
        sides = tuple(
            (low and not is_inside(entry, (first, None), size_of), high and not is_inside(entry, (None, last), size_of))
            for (low, high), entry, (first, last) in zip(node.op[2], index, inner.bounds, strict=True)
        )
        return node if sides == node.op[2] else self.extended(inner, node.op[1], sides)

    def extended(self, node: Node, number: Any, sides: tuple[tuple[bool, bool], ...]) -> Node:
        """Returns the node with a number beyond the ends of its dimensions, at the low or at the high sides."""
        if not any(low or high for low, high in sides):
            return node
        if node.op[0] == "extended" and node.op[1] == number:
            sides = tuple((a or c, b or d) for (a, b), (c, d) in zip(sides, node.op[2], strict=True))
            node = node.reads[0][0]
        bounds = tuple(
            (None if low else first, None if high else last)
            for (low, high), (first, last) in zip(sides, node.bounds, strict=True)
        )
        index = tuple((0, ((1, dim),)) for dim in range(len(bounds)))
        return self.node(("extended", number, sides), bounds, (), ((node, index),))

    def digits(self, value: Value, dims: Sequence[Sequence[int]]) -> Index:
        """Returns the index of a value with its digits cut into finer ones; the value's dims refine to `dims`."""
        by: dict[Any, Entry] = {}
        old = new = 0
        for coarse, fine in zip(value.dims, dims, strict=True):
            taken = 0
            for size in coarse:
                parts: list[int] = []
                while prod(parts) < size:
                    parts.append(fine[taken])
                    taken += 1
                terms, stride = list[tuple[int, int]](), size
                for part in parts:
                    stride //= part
                    terms.append((stride, new))
                    new += 1
                by[old] = (0, tuple(terms))
                old += 1
            new += len(fine) - taken
        return tuple(substituted(entry, by) for entry in value.index)

    def replaced(self, value: Value, by: Mapping[Any, Entry], dims: Sequence[Sequence[int]]) -> Value:
        """Returns the value with variables of its index replaced, all at once, and other dimensions."""
        return self.value(value.node, tuple(substituted(entry, by) for entry in value.index), dims)
