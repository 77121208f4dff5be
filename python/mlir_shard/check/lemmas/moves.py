# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lemmas of ops that move elements: accesses, reshapes, pads and concatenations; and the layouts of shards."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry, entry_of
from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.lemmas.canonical import UNLIMITED, Canonical
from mlir_shard.check.lemmas.indices import Index, is_inside, refined, split, substituted
from mlir_shard.check.lemmas.values import Value
from mlir_shard.deferred import numpy as np


class Moves(Canonical):
    """Lemmas of ops that move elements, and of leaves."""

    def index(self, type_: str, entry: Entry, dims: Sequence[Sequence[int]]) -> Value:
        """Returns a tensor of integers that are an affine index: constants, iota, and numbers of devices."""
        return self.nodes.value(self.nodes.node(("index", type_), UNLIMITED, (), ()), (entry,), dims)

    def constant(self, type_: str, number: str, shape: Sequence[int]) -> Value:
        """Returns a tensor of one number."""
        return self.nodes.value(
            self.nodes.node(("constant", type_, number), (), (), ()), (), [(size,) for size in shape]
        )

    def leaf(self, op: tuple[Any, ...], shape: Sequence[int]) -> Value:
        """Returns a global tensor that is known by its name alone."""
        node = self.nodes.node(op, tuple((0, size) for size in shape), (), ())
        index = tuple((0, ((1, digit),)) for digit in range(len(shape)))
        return self.nodes.value(node, index, [(size,) for size in shape])

    def accessed(
        self,
        value: Value,
        entries: Sequence[Entry],
        sizes: Sequence[int],
        lemma: str = "access",
        *,
        bounded: bool = True,
    ) -> Value:
        digits: list[tuple[int, ...]] = [(size,) if size != 1 else () for size in sizes]
        taken = set[int]()
        for dim, (_, terms) in enumerate(entries):
            # A dimension of the result that reads one of the value contiguously has its digits, or the last of them.
            along = [(stride, one) for stride, one in terms if one >= 0]
            if len(value.dims[dim]) < 2 or len(along) != 1 or abs(along[0][0]) != 1 or along[0][1] in taken:
                continue
            size, whole = sizes[along[0][1]], value.shape[dim]
            fine = None
            if size and whole % size == 0:
                fine = refined(value.dims[dim], [one for one in (whole // size, size) if one > 1])
            if fine is not None:
                taken.add(along[0][1])
                dims = (*value.dims[:dim], fine, *value.dims[dim + 1 :])
                value = Value(value.node, self.nodes.digits(value, dims), dims)
                digits[along[0][1]] = next(fine[at:] for at in range(len(fine) + 1) if prod(fine[at:]) == size)
        positions, first = dict[Any, Entry](), 0
        for one, of in enumerate(digits):
            units = [(prod(of[at + 1 :]), first + at) for at in range(len(of))]
            positions[one], first = (0, tuple(units)), first + len(of)
        flat = [size for of in digits for size in of]
        mesh, by, first = self.mesh.sizes, dict[Any, Entry](), 0

        def size_of(variable: int) -> int:
            return flat[variable] if variable >= 0 else mesh[-1 - variable]

        for dim, (entry, of) in enumerate(zip(entries, value.dims, strict=True)):
            entry = substituted(entry, positions)
            if bounded and 0 not in sizes and not is_inside(entry, (0, prod(of)), size_of):
                raise NotCertified(f"an index of dimension {dim} is out of bounds on some devices", lemma)
            parts = [entry][: len(of)] if len(of) < 2 else split(entry, of, size_of)
            if parts is None:
                return self.accessed(self.copied(value, dim), entries, sizes, lemma, bounded=bounded)
            by.update(enumerate(parts, first))
            first += len(of)
        return self.nodes.replaced(value, by, digits)

    def laid_out(self, value: Value, axes: Sequence[Sequence[int]]) -> Value:
        """Returns the shard of a global value with dimensions divided along mesh axes; local sizes are rounded up."""
        entries, sizes = list[Entry](), list[int]()
        for dim, (size, along) in enumerate(zip(value.shape, axes, strict=True)):
            local = -(-size // prod(self.mesh.sizes[axis] for axis in along))
            entries.append((0, (*self.mesh.along(along if size > 1 else (), local), (1, dim))))
            sizes.append(local)
        return self.accessed(value, entries, sizes, "layout", bounded=False)

    def given(self, leaf: Value, axes: Sequence[Sequence[int]]) -> Value:
        """Returns the shard of a leaf that a program takes; elements beyond the end of the leaf are unknown."""
        value = self.laid_out(leaf, axes)
        index = list(value.index)
        for dim, along in enumerate(axes):
            if along and leaf.dims[dim] == ():
                index[dim] = 0, self.mesh.along(along, 1)
        return self.nodes.value(value.node, tuple(index), value.dims)

    def is_shard(self, found: Value, value: Value, axes: Sequence[Sequence[int]]) -> bool:
        """Returns whether a value is the shard of a global one: it equals that, or all shards form the global value.

        Elements beyond the end of the global value are ignored, whether they are known or not.
        """
        if len(axes) != len(value.dims):
            return False
        wanted = self.laid_out(value, axes)
        if found.shape != wanted.shape:
            return False
        if found == wanted:
            return True
        core, index = self.nodes.core(found.node)
        own: dict[Any, Entry] = dict(enumerate(found.index))
        inner = self.nodes.value(core, tuple(substituted(one, own) for one in index), found.dims)
        if inner == wanted or self._is_same_inside(inner, wanted, value.shape, axes):
            return True
        try:
            for dim, (along, size) in enumerate(zip(axes, value.shape, strict=True)):
                if along:
                    found = self.sliced(self.gathered(found, dim, along), dim, (0, ()), size)
            return found == value
        except NotCertified:
            return False

    def _is_same_inside(self, found: Value, wanted: Value, shape: Sequence[int], axes: Sequence[Sequence[int]]) -> bool:
        """Returns whether two values are equal on each device whose shard of a tensor of this shape is not empty."""
        if found.node is not wanted.node or found.dims != wanted.dims:
            return False
        found_rows, rows = ([self.mesh.by_device(entry) for entry in one.index] for one in (found, wanted))
        local = [[[term for term in terms if term[1] >= 0] for _, terms in one.index] for one in (found, wanted)]
        inside = np.ones(self.mesh.devices, bool)
        for size, along, part in zip(shape, axes, wanted.shape, strict=True):
            inside &= self.mesh.by_device((0, self.mesh.along(along, part))) < size
        return local[0] == local[1] and all(
            (one == other)[inside].all() for one, other in zip(found_rows, rows, strict=True)
        )

    def gathered(self, value: Value, dim: int, axes: Sequence[int]) -> Value:
        """Returns an all-gather: the mesh axes become the major digits of a dimension."""
        value = self.along_axes(value)
        first = sum(map(len, value.dims[:dim]))
        by: dict[Any, Entry] = {one: (0, ((1, one + len(axes)),)) for one in range(first, sum(map(len, value.dims)))}
        by |= {-1 - axis: (0, ((1, first + at),)) for at, axis in enumerate(axes)}
        sizes = [self.mesh.sizes[axis] for axis in axes]
        return self.nodes.replaced(value, by, [*value.dims[:dim], (*sizes, *value.dims[dim]), *value.dims[dim + 1 :]])

    def along_axes(self, value: Value) -> Value:
        """Returns a value if its index depends on the device by mesh axes only; else an assembly of the value."""
        if all(-1 - variable < len(self.mesh.axes) for _, terms in value.index for _, variable in terms):
            return value
        return self.assembly([(value, (0,) * (self.mesh.devices * max(len(value.dims), 1)))], value.shape)

    def assembly(self, pieces: Sequence[tuple[Value, tuple[int, ...]]], shape: Sequence[int]) -> Value:
        """Returns a tensor of tiles, each with a place on each device; later tiles cover earlier ones."""
        bounds = ((0, self.mesh.devices), *((0, size) for size in shape))
        node = self.nodes.node(("assembly", tuple(pieces)), bounds, (), ())
        return Value(node, self._of_assembly(shape), tuple((size,) if size > 1 else () for size in shape))

    def is_assembly(self, value: Value) -> bool:
        """Returns whether a value is a tensor of tiles, with each element at its own position."""
        return value.node.op[0] == "assembly" and value.index == self._of_assembly(value.shape)

    def _of_assembly(self, shape: Sequence[int]) -> Index:
        mesh, digits = self.mesh.axes, [number for number, size in enumerate(shape) if size > 1]
        device = {-1 - axis: prod(mesh[axis + 1 :]) for axis in range(len(mesh)) if mesh[axis] > 1}
        entries = [(0, ((1, digits.index(dim)),) if dim in digits else ()) for dim in range(len(shape))]
        return entry_of(0, device), *entries

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """Returns a reshape: it regroups digits if possible, else it is an op on the dimensions that it mixes."""
        if value.shape == tuple(shape):
            return value
        flat = [size for dim in value.dims for size in dim]
        fine = refined(flat, [size for size in shape if size > 1]) if 0 not in shape else None
        if fine is None:
            return self._mixed(value, shape)
        cut = self.nodes.digits(Value(value.node, value.index, (tuple(flat),)), [fine])
        dims, taken = list[tuple[int, ...]](), 0
        for size in shape:
            first = taken
            while prod(fine[first:taken]) < size:
                taken += 1
            dims.append(tuple(fine[first:taken]))
        return self.nodes.value(value.node, cut, dims)

    def _mixed(self, value: Value, shape: Sequence[int]) -> Value:
        before, after = value.shape, tuple(shape)
        first = 0
        while first < min(len(before), len(after)) and before[first] == after[first]:
            first += 1
        kept = [f"d{dim}" for dim in range(first)]
        labels = kept + [f"i{dim}" for dim in range(first, len(before))]
        results = {f"o{dim}": after[dim] for dim in range(first, len(after))}
        op = ("reshape", before[first:], after[first:])
        return self.opaque(op, [(value, labels)], [*kept, *results], labels[first:], results)

    def padded(self, value: Value, number: Value, low: Sequence[int], high: Sequence[int]) -> Value:
        """Returns a pad, a read of the node extended by the number; negative padding slices."""
        for dim, (before, behind) in enumerate(zip(low, high, strict=True)):
            if before < 0 or behind < 0:
                start = max(-before, 0)
                value = self.sliced(value, dim, (start, ()), value.shape[dim] - start - max(-behind, 0), 1, "pad")
        for dim, ends in enumerate(zip(low, high, strict=True)):
            before, behind = (max(end, 0) for end in ends)
            if before or behind:
                value = self._padded(value, self.number_of(number, "pad"), dim, before, behind)
        return value

    def _padded(self, value: Value, number: str, dim: int, before: int, behind: int) -> Value:
        size = value.shape[dim]
        first, digits = self._starts(value.dims)[dim], value.dims[dim]
        alone = [
            at
            for at, (entry, bound) in enumerate(zip(value.index, value.node.bounds, strict=True))
            if entry == (0, ((1, first),)) and bound == (0, size)
        ]
        if len(digits) != 1 or len(alone) != 1:
            # A copy has the dimension as its last variable.
            value = self.copied(value, dim, keeps=True)
            first, digits, alone = self._starts(value.dims)[dim], value.dims[dim], [len(value.index) - 1]
        index = list(value.index if digits else self._with_digit(value, dim))
        at = alone[0]
        index[at] = -before, ((1, first),)
        sides = tuple((before > 0, behind > 0) if one == at else (False, False) for one in range(len(index)))
        dims = [*value.dims[:dim], (before + size + behind,), *value.dims[dim + 1 :]]
        return self.nodes.value(self.nodes.extended(value.node, number, sides), tuple(index), dims)

    def copied(self, value: Value, dim: int, *, keeps: bool = False) -> Value:
        """Returns the value as a node of which one dimension of the value, from 0 to its size, is the last variable.

        Unless `keeps`, a read of the copy of a dimension of one digit becomes a read of the original.
        """
        labels = [f"d{one}" for one in range(len(value.dims))]
        results = list(labels)
        results[dim] = "copy"
        return self.opaque(
            ("copy",), [(value, labels)], results, [labels[dim]], {"copy": value.shape[dim]}, keeps=keeps
        )

    @staticmethod
    def is_number(value: Value) -> bool:
        """Returns whether a value is one number everywhere."""
        return value.node.op[0] == "constant" or (value.node.op[0] == "index" and not value.index[0][1])

    def number_of(self, value: Value, lemma: str) -> str:
        """Returns the number that all elements of a value equal. Raises NotCertified if they are not one number."""
        if value.node.op[0] == "constant":
            return str(value.node.op[2])
        if value.node.op[0] == "index" and not value.index[0][1]:
            return str(value.index[0][0])
        raise NotCertified("a number that is not constant", lemma)

    def _with_digit(self, value: Value, dim: int) -> Index:
        """Returns the index of a value whose dimension has no digit, with digits numbered as if it had one."""
        first = self._starts(value.dims)[dim]
        total = self._starts(value.dims)[-1]
        by: dict[Any, Entry] = {one: (0, ((1, one + 1),)) for one in range(first, total)}
        return tuple(substituted(entry, by) for entry in value.index)
