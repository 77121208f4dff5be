# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lemmas: what an op computes from values, as a value. docs/certificates.md states each one.

Each method returns a value that is a fact if its operands are facts. The same methods read the global program, where no
index has a mesh axis, and the local one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

from mlir_shard.check.values import (
    KINDS,
    MOVING,
    Bound,
    Entry,
    Index,
    Node,
    Nodes,
    NotCertified,
    Read,
    Value,
    entry_of,
    is_inside,
    linear,
    parts_of,
    refined,
    span,
    split,
    substituted,
    width,
)
from mlir_shard.deferred import numpy as np

IDEMPOTENT = frozenset(("maximum", "minimum", "and", "or", "maxnum", "minnum", "maxui", "minui"))
# What changes nothing in a reduction.
NEUTRAL = {
    "add": ("0", "0.0", "-0.0"),
    "multiply": ("1", "1.0"),
    "maximum": ("-inf",),
    "minimum": ("inf",),
    "or": ("False", "0"),
    "xor": ("False", "0"),
    "and": ("True", "-1"),
}
_ZEROS = ("0", "0.0", "False")
# The operands that an op is linear in, all at once, if the others do not depend on what is summed over.
_LINEAR: dict[str, Any] = {
    "stablehlo.add": (0, 1),
    "stablehlo.subtract": (0, 1),
    "stablehlo.negate": (0,),
    "stablehlo.multiply": "any one",
    "stablehlo.divide": (0,),
    "stablehlo.select": (1, 2),
    "arith.addf": (0, 1),
    "arith.subf": (0, 1),
    "arith.mulf": "any one",
    "arith.divf": (0,),
}
_FLOATS = {"f64": "float64", "f32": "float32", "f16": "float16"}
# What is exact, or rounded as IEEE 754 says.
_FOLDED = {
    "add": "add",
    "addf": "add",
    "sub": "subtract",
    "subtract": "subtract",
    "subf": "subtract",
    "mul": "multiply",
    "multiply": "multiply",
    "mulf": "multiply",
    "divf": "divide",
    "divide": "divide",
    "maximum": "maximum",
    "maximumf": "maximum",
    "minimum": "minimum",
    "minimumf": "minimum",
    "negate": "negative",
    "negf": "negative",
    "abs": "absolute",
    "absf": "absolute",
    "floor": "floor",
    "ceil": "ceil",
    "sitofp": "positive",
}
MULTIPLIES = ("stablehlo.multiply", "arith.mulf", "arith.muli")
_UNLIMITED: tuple[Bound, ...] = ((None, None),)


def _reduces(node: Node, kind: str) -> bool:
    last = node.op[-1]
    return isinstance(last, tuple) and last[:2] == ("reduce", kind)


class Lemmas:
    """All lemmas, over the nodes of one check."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._reduced: dict[Any, Value] = {}
        self._position = nodes.node(("position",), _UNLIMITED, (), ())

    # Leaves.

    def index(self, type_: str, entry: Entry, dims: Sequence[Sequence[int]]) -> Value:
        """A tensor of integers that are an affine index themselves: constants, iota, and numbers of devices."""
        return self.nodes.value(self.nodes.node(("index", type_), _UNLIMITED, (), ()), (entry,), dims)

    def constant(self, type_: str, number: str, shape: Sequence[int]) -> Value:
        """A tensor of one number."""
        return self.nodes.value(
            self.nodes.node(("constant", type_, number), (), (), ()), (), [(size,) for size in shape]
        )

    def zero(self, element: str, shape: Sequence[int] = ()) -> Value:
        """Zeros of a type."""
        if width(element):
            return self.index(element, (0, ()), [(size,) for size in shape])
        return self.constant(element, "False" if element == "i1" else "0.0", shape)

    def leaf(self, op: tuple[Any, ...], shape: Sequence[int]) -> Value:
        """A global tensor that nothing is known of but its name."""
        node = self.nodes.node(op, tuple((0, size) for size in shape), (), ())
        index = tuple((0, ((1, digit),)) for digit in range(len(shape)))
        return self.nodes.value(node, index, [(size,) for size in shape])

    # What moves elements.

    def accessed(
        self,
        value: Value,
        entries: Sequence[Entry],
        sizes: Sequence[int],
        lemma: str = "access",
        *,
        bounded: bool = True,
    ) -> Value:
        """The tensor whose element at a position is that of the value at indices which are affine in the position.

        Args:
            entries: for each dimension of the value the index, in the dimensions of the result from 0 on and mesh axes.
            sizes: the shape of the result.
            bounded: whether indices must be in bounds on all devices; else nothing is known of what is behind the end.
        """
        digits: list[tuple[int, ...]] = [(size,) if size != 1 else () for size in sizes]
        taken = set[int]()
        for dim, (_, terms) in enumerate(entries):
            # A dimension of the result that goes through one of the value has its digits, or the last ones of them.
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
        mesh, by, first = self.nodes.mesh, dict[Any, Entry](), 0

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

    @staticmethod
    def _positions(rank: int) -> list[Entry]:
        return [(0, ((1, dim),)) for dim in range(rank)]

    def laid_out(self, value: Value, axes: Sequence[Sequence[int]]) -> Value:
        """The shard of a global value whose dimensions are divided along mesh axes, rounded up."""
        entries, sizes = list[Entry](), list[int]()
        for dim, (size, along) in enumerate(zip(value.shape, axes, strict=True)):
            local = -(-size // prod(self.nodes.mesh[axis] for axis in along))
            entries.append((0, (*self._along(along if size > 1 else (), local), (1, dim))))
            sizes.append(local)
        return self.accessed(value, entries, sizes, "layout", bounded=False)

    def given(self, leaf: Value, axes: Sequence[Sequence[int]]) -> Value:
        """The shard of a leaf as a program is given it: nothing is known of what is behind the end of the leaf."""
        value = self.laid_out(leaf, axes)
        index = list(value.index)
        for dim, along in enumerate(axes):
            if along and leaf.dims[dim] == ():
                index[dim] = 0, tuple(self._along(along, 1))
        return self.nodes.value(value.node, tuple(index), value.dims)

    def _along(self, axes: Sequence[int], unit: int) -> list[tuple[int, int]]:
        """The strides of mesh axes, major to minor, where the minor one has `unit`."""
        found, stride = list[tuple[int, int]](), unit
        for axis in reversed(axes):
            found.append((stride, -1 - axis))
            stride *= self.nodes.mesh[axis]
        return found[::-1]

    def is_shard(self, found: Value, value: Value, axes: Sequence[Sequence[int]]) -> bool:
        """Whether a value is the shard of a global one: it is equal, or all shards together are the global value.

        What is behind the end of the global value does not matter, and may be known or not.
        """
        if len(axes) != len(value.dims):
            return False
        wanted = self.laid_out(value, axes)
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
        except NotCertified:
            return False
        return found == value

    def _is_same_inside(self, found: Value, wanted: Value, shape: Sequence[int], axes: Sequence[Sequence[int]]) -> bool:
        """Whether a value is another one on each device that has elements of a tensor of a shape that is laid out."""
        if found.node is not wanted.node or found.dims != wanted.dims:
            return False
        found_rows, rows = ([self.nodes.by_device(entry) for entry in one.index] for one in (found, wanted))
        local = [[[term for term in terms if term[1] >= 0] for _, terms in one.index] for one in (found, wanted)]
        inside = np.ones(prod(self.nodes.real_mesh), bool)
        for size, along, part in zip(shape, axes, wanted.shape, strict=True):
            inside &= self.nodes.by_device((0, tuple(self._along(along, part)))) < size
        return local[0] == local[1] and all(
            (one == other)[inside].all() for one, other in zip(found_rows, rows, strict=True)
        )

    def gathered(self, value: Value, dim: int, axes: Sequence[int]) -> Value:
        """An all-gather: the mesh axes become the major digits of a dimension."""
        self.check_tables(value)
        first = sum(map(len, value.dims[:dim]))
        by: dict[Any, Entry] = {one: (0, ((1, one + len(axes)),)) for one in range(first, sum(map(len, value.dims)))}
        by |= {-1 - axis: (0, ((1, first + at),)) for at, axis in enumerate(axes)}
        sizes = [self.nodes.mesh[axis] for axis in axes]
        return self.nodes.replaced(value, by, [*value.dims[:dim], (*sizes, *value.dims[dim]), *value.dims[dim + 1 :]])

    def check_tables(self, value: Value) -> None:
        """Raises NotCertified where a value depends on the device by more than the mesh axes in its index."""
        if any(-1 - variable >= len(self.nodes.real_mesh) for _, terms in value.index for _, variable in terms):
            raise NotCertified("what devices hold is not a shard along mesh axes", "collective")

    def transposed(self, value: Value, permutation: Sequence[int]) -> Value:
        """A transpose."""
        entries = [(0, ((1, permutation.index(dim)),)) for dim in range(len(value.dims))]
        return self.accessed(value, entries, [value.shape[dim] for dim in permutation], "transpose")

    @staticmethod
    def _starts(dims: Sequence[Sequence[int]]) -> list[int]:
        starts, total = [0], 0
        for dim in dims:
            total += len(dim)
            starts.append(total)
        return starts

    def broadcast(self, value: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
        """A broadcast: each dimension of the value becomes one of `dims`, or is of size 1 and repeated."""
        sizes = value.shape
        entries = [(0, ((1, dim),) if sizes[at] == shape[dim] else ()) for at, dim in enumerate(dims)]
        return self.accessed(value, entries, shape, "broadcast")

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """A reshape groups digits anew; where it cannot, it is an op of its own on the dimensions that it mixes."""
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

    def sliced(self, value: Value, dim: int, start: Entry, size: int, step: int = 1, lemma: str = "slice") -> Value:
        """A slice adds its start, which may depend on the device, to the index."""
        if start == (0, ()) and step == 1 and size == value.shape[dim]:
            return value
        entries, sizes = self._positions(len(value.dims)), list(value.shape)
        entries[dim], sizes[dim] = (start[0], (*start[1], (step, dim))), size
        return self.accessed(value, entries, sizes, lemma)

    def windowed(self, value: Value, dim: int, count: int, stride: int, size: int, dilation: int) -> Value:
        """The windows of a dimension: a dimension that counts them, and one that counts the elements of each."""
        entries: list[Entry] = [(0, ((1, one + (one > dim)),)) for one in range(len(value.dims))]
        entries[dim] = (0, ((stride, dim), (dilation, dim + 1)))
        sizes = [*value.shape[:dim], count, size, *value.shape[dim + 1 :]]
        return self.accessed(value, entries, sizes, "window")

    def reversed(self, value: Value, dims: Collection[int]) -> Value:
        """A reverse counts down."""
        entries = self._positions(len(value.dims))
        for dim in dims:
            entries[dim] = value.shape[dim] - 1, ((-1, dim),)
        return self.accessed(value, entries, value.shape, "reverse")

    def padded(self, value: Value, number: Value, low: Sequence[int], high: Sequence[int]) -> Value:
        """A pad reads the node extended by the number; a negative one slices."""
        for dim, (before, behind) in enumerate(zip(low, high, strict=True)):
            if before < 0 or behind < 0:
                start = max(-before, 0)
                value = self.sliced(value, dim, (start, ()), value.shape[dim] - start - max(-behind, 0), 1, "pad")
        for dim, ends in enumerate(zip(low, high, strict=True)):
            before, behind = (max(end, 0) for end in ends)
            if before or behind:
                value = self._padded(value, self.number_of(number, "pad"), dim, before, behind)
        return value

    def dilated(self, value: Value, number: Value, dim: int, factor: int) -> Value:
        """A number between the elements of a dimension pads a new minor dimension; the last ones are sliced off."""
        size, shape = value.shape[dim], list(value.shape)
        if factor == 1 or not size:
            return value
        value = self.reshaped(value, [*shape[: dim + 1], 1, *shape[dim + 1 :]])
        high = [factor - 1 if one == dim + 1 else 0 for one in range(len(shape) + 1)]
        shape[dim] = size * factor
        value = self.reshaped(self.padded(value, number, [0] * len(high), high), shape)
        return self.sliced(value, dim, (0, ()), (size - 1) * factor + 1)

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
        """The value as a node that has a dimension of it, from 0 to its size, as one of its own.

        The copy of a dimension of one digit is read as what it is a copy of, unless `keeps`.
        """
        labels = [f"d{one}" for one in range(len(value.dims))]
        results = list(labels)
        results[dim] = "copy"
        return self.opaque(
            ("copy",), [(value, labels)], results, [labels[dim]], {"copy": value.shape[dim]}, keeps=keeps
        )

    def is_zero(self, value: Value) -> bool:
        """Whether a value is zero everywhere."""
        return self.is_number(value) and self.number_of(value, "zero") in _ZEROS

    @staticmethod
    def is_number(value: Value) -> bool:
        """Whether a value is one number everywhere."""
        return value.node.op[0] == "constant" or (value.node.op[0] == "index" and not value.index[0][1])

    def number_of(self, value: Value, lemma: str) -> str:
        """The number that a value is everywhere."""
        if value.node.op[0] == "constant":
            return str(value.node.op[2])
        if value.node.op[0] == "index" and not value.index[0][1]:
            return str(value.index[0][0])
        raise NotCertified("a number is not a constant", lemma)

    def joined(self, values: Sequence[Value], dim: int) -> Value:
        """A concatenation of values that continue each other is one value; else an op of its own along `dim`.

        Constants at the ends are padding.
        """
        values = [value for value in values if 0 not in value.shape] or values[:1]
        ends = [self.is_number(value) for value in values]
        if len(values) > 1 and not all(ends) and (ends[0] or ends[-1]):
            at, rest = (0, values[1:]) if ends[0] else (-1, values[:-1])
            size = values[at].shape[dim]
            pads = [
                [size if one == dim and at == side else 0 for one in range(len(values[0].dims))] for side in (0, -1)
            ]
            return self.padded(self.joined(rest, dim), values[at], *pads)
        found: list[Value] = []
        for value in values:
            joint = self._continued(found[-1], value, dim) if found else None
            if joint is None:
                found.append(value)
            else:
                found[-1] = joint
        if len(found) == 1:
            return found[0]
        total = sum(value.shape[dim] for value in found)
        labels = [f"d{one}" for one in range(len(found[0].dims))]
        reads = [(value, [*labels[:dim], f"c{at}", *labels[dim + 1 :]]) for at, value in enumerate(found)]
        results = [*labels[:dim], "o", *labels[dim + 1 :]]
        op = ("concatenate", *(value.shape[dim] for value in found))
        return self.opaque(op, reads, results, [f"c{at}" for at in range(len(found))], {"o": total})

    def _continued(self, first: Value, second: Value, dim: int) -> Value | None:
        """The two values as one, if the index of the second goes on where that of the first ends."""
        if len(first.dims[dim]) > 1 or len(second.dims[dim]) > 1:
            return None
        node = first.node if first.node is second.node else self._common(first, second)
        if node is None:
            return None
        firsts, seconds = (
            self.nodes.digits(one, [d if at != dim else (prod(d),) for at, d in enumerate(one.dims)])
            if one.dims[dim]
            else self._with_digit(one, dim)
            for one in (first, second)
        )
        dims = [list(one) for one in first.dims]
        if dims[:dim] + dims[dim + 1 :] != [list(one) for at, one in enumerate(second.dims) if at != dim]:
            return None
        digit = self._starts(first.dims)[dim]
        size, other = first.shape[dim], second.shape[dim]
        joint = []
        for (offset, terms), (offset2, terms2) in zip(firsts, seconds, strict=True):
            strides, strides2 = linear(terms), linear(terms2)
            stride, stride2 = strides.pop(digit, None), strides2.pop(digit, None)
            if strides != strides2:
                return None
            known = next((one for one in (stride, stride2) if one is not None), None)
            if size == 1 and other == 1:
                known = offset2 - offset
            elif known is None:
                known = 0
            if (
                offset2 - offset != known * size
                or (size > 1 and (stride or 0) != known)
                or (other > 1 and (stride2 or 0) != known)
            ):
                return None
            joint.append(entry_of(offset, strides | ({digit: known} if known else {})))
        dims[dim] = [size + other]
        return self.nodes.value(node, tuple(joint), dims)

    def _common(self, first: Value, second: Value) -> Node | None:
        """A node that both values are of, if one extends the other."""
        inner = [one.node.reads[0][0] if one.node.op[0] == "extended" else one.node for one in (first, second)]
        numbers = {one.node.op[1] for one in (first, second) if one.node.op[0] == "extended"}
        if inner[0] is not inner[1] or len(numbers) != 1:
            return None
        none = ((False, False),) * len(inner[0].bounds)
        sides = [one.node.op[2] if one.node.op[0] == "extended" else none for one in (first, second)]
        every = tuple((a or c, b or d) for (a, b), (c, d) in zip(*sides, strict=True))
        for value, own in zip((first, second), sides, strict=True):
            size_of = self.nodes.size_in(value)
            for entry, (low, high), (of_low, of_high), (least, most) in zip(
                value.index, own, every, inner[0].bounds, strict=True
            ):
                bound = (least if of_low and not low else None, most if of_high and not high else None)
                if not is_inside(entry, bound, size_of):
                    return None
        return self.nodes.extended(inner[0], numbers.pop(), every)

    def _with_digit(self, value: Value, dim: int) -> Index:
        """The index of a value whose dimension has no digit, numbered as if it had one."""
        first = self._starts(value.dims)[dim]
        total = self._starts(value.dims)[-1]
        by: dict[Any, Entry] = {one: (0, ((1, one + 1),)) for one in range(first, total)}
        return tuple(substituted(entry, by) for entry in value.index)

    # What computes.

    def _aligned(
        self, values: Sequence[tuple[Value, Sequence[str]]], lemma: str
    ) -> tuple[dict[str, tuple[int, ...]], list[Index], dict[str, int]]:
        """Digits for each label that fit all values, and the indices of the values in them; labels number digits."""
        factors: dict[str, list[tuple[int, ...]]] = {}
        unused: dict[str, tuple[int, ...]] = {}
        shapes: dict[str, int] = {}
        for value, labels in values:
            occurring = {variable for _, terms in value.index for _, variable in terms}
            first = 0
            for label, sizes in zip(labels, value.dims, strict=True):
                size = prod(sizes)
                if shapes.setdefault(label, size) != size:
                    raise NotCertified("operands differ in shape", lemma)
                if occurring.isdisjoint(range(first, first + len(sizes))):
                    unused.setdefault(label, sizes)
                else:
                    factors.setdefault(label, []).append(sizes)
                first += len(sizes)
        dims: dict[str, tuple[int, ...]] = {}
        for label in shapes:
            fine = refined(*factors[label]) if label in factors else unused[label]
            if fine is None:
                raise NotCertified("operands are divided in ways that do not refine each other", lemma)
            dims[label] = fine
        starts, total = dict[str, int](), 0
        for label, fine in dims.items():
            starts[label] = total
            total += len(fine)
        indices = []
        for value, labels in values:
            occurring = {variable for _, terms in value.index for _, variable in terms}
            by, first = dict[Any, Entry](), 0
            for label, sizes in zip(labels, value.dims, strict=True):
                if not occurring.isdisjoint(range(first, first + len(sizes))):
                    new, taken = starts[label], 0
                    for one, size in enumerate(sizes):
                        terms, left = list[tuple[int, int]](), size
                        while left > 1:
                            left //= dims[label][taken]
                            terms.append((left, new + taken))
                            taken += 1
                        by[first + one] = (0, tuple(terms))
                first += len(sizes)
            indices.append(tuple(substituted(entry, by) for entry in value.index))
        return dims, indices, starts

    def opaque(
        self,
        op: tuple[Any, ...],
        values: Sequence[tuple[Value, Sequence[str]]],
        results: Sequence[str],
        core: Collection[str],
        made: Mapping[str, int] | None = None,
        kind: str = "",
        extra: Collection[int] = (),
        *,
        keeps: bool = False,
        places: Sequence[tuple[Entry, Sequence[tuple[int, str]]]] = (),
        others: Mapping[str, int] | None = None,
    ) -> Value:
        """An op that does the same for each position of labels that are not in `core`.

        Args:
            op: its name with all that matters of it.
            values: the operands, with a label for each dimension.
            results: the labels of the result; core: labels that the op works along; made: sizes of new ones.
            kind: the reduction along labels that are in no result and not in `core`.
            extra: mesh axes that are reduced too.
            places: positions that the op compares with what it reads: an entry and labels that are added to it.
            others: sizes of labels that no operand has.
        """
        dims, indices, starts = self._aligned(values, str(op[0]))
        for label, size in (others or {}).items():
            starts[label], dims[label] = sum(map(len, dims.values())), (size,)
        made, total = made or {}, sum(map(len, dims.values()))
        classes: dict[int, str] = {-1 - axis: "r" for axis in extra}
        sizes: dict[int, int] = {-1 - axis: size for axis, size in enumerate(self.nodes.mesh)}
        reads: list[Read] = [(value.node, index) for (value, _), index in zip(values, indices, strict=True)]
        for label, fine in dims.items():
            for digit, size in enumerate(fine, starts[label]):
                sizes[digit] = size
                if label in core:
                    classes[digit] = "c" + label
                elif label not in results:
                    classes[digit] = "r"
            if label in core:
                strides = {
                    digit: prod(fine[digit - starts[label] + 1 :])
                    for digit in range(starts[label], starts[label] + len(fine))
                }
                reads.append((self._position, (entry_of(0, strides),)))
        for (offset, terms), labels in places:
            found = dict(linear(terms))
            for sign, label in labels:
                for at in range(len(dims[label])):
                    found[starts[label] + at] = sign * prod(dims[label][at + 1 :])
            reads.append((self._position, (entry_of(offset, found),)))
        outs: list[tuple[int, ...]] = []
        order: list[int] = []
        for label in results:
            if label in made:
                dims[label] = (made[label],)
                starts[label] = total
                sizes[total], classes[total] = made[label], "o" + label
                total += 1
            outs.append(dims[label])
            order += range(starts[label], starts[label] + len(dims[label]))
        made_digits = [starts[label] for label in made]
        node, index = self._built(op, kind, reads, sizes, classes, made_digits)
        by: dict[Any, Entry] = {digit: (0, ((1, new),)) for new, digit in enumerate(order)}
        moved = tuple(substituted(entry, by) for entry in index)
        return Value(node, moved, tuple(outs)) if keeps else self.nodes.value(node, moved, outs)

    def _built(
        self,
        op: tuple[Any, ...],
        kind: str,
        reads: Sequence[Read],
        sizes: dict[int, int],
        classes: dict[int, str],
        made: Sequence[int],
    ) -> tuple[Node, Index]:
        """The canonical node of an op, and its index in the given variables."""
        given, limits = (op, reads, dict(sizes), dict(classes)), list[Read]()
        op, reads, limits = self._flattened(op, kind, reads, sizes, classes)
        reads = [self.nodes.narrowed(inner, index, sizes.__getitem__) for inner, index in reads]
        count, reads = len(reads), [*reads, *limits]
        groups = self._groups(reads, sizes, classes, made)
        group_of = {digit: at for at, group in enumerate(groups) for digit in group}
        if any(len({group_of[one] for _, one in index[0][1]}) > 1 for _, index in limits):
            # Where the inner reduction is not known is not a range of one variable.
            op, reads, sizes, classes = given
            return self._canonical(
                op, kind, reads, len(reads), self._groups(reads, sizes, classes, made), sizes, classes, made
            )
        return self._canonical(op, kind, reads, count, groups, sizes, classes, made)

    def _canonical(
        self,
        op: tuple[Any, ...],
        kind: str,
        reads: Sequence[Read],
        count: int,
        groups: list[list[int]],
        sizes: Mapping[int, int],
        classes: Mapping[int, str],
        made: Sequence[int],
    ) -> tuple[Node, Index]:
        """The node of groups of variables; reads from `count` on only limit where it is known."""
        times = 1
        if kind and kind not in IDEMPOTENT:
            seen = {digit for group in groups for digit in group}
            times = prod(size for digit, size in sizes.items() if classes.get(digit) == "r" and digit not in seen)
        strides = [[linear(terms) for _, terms in index] for _, index in reads]
        offsets = [[offset for offset, _ in index] for _, index in reads]
        counts = [prod(sizes[digit] for digit in group) for group in groups]
        kinds = [classes.get(group[-1], "b") for group in groups]
        rows = [
            [{at: of[group[-1]] for at, group in enumerate(groups) if of.get(group[-1])} for of in row]
            for row in strides
        ]
        lows = [0] * len(groups)
        for at, of_kind in enumerate(kinds):
            if of_kind == "b":
                low, high = self._valid(at, counts[at], reads, rows, offsets)
            elif of_kind == "r":
                low, high = self._neutral(at, counts[at], kind, op, reads[:count], rows[:count], offsets[:count])
            else:
                continue
            if (low, high) != (0, counts[at]) and low < high:
                lows[at], counts[at] = low, high - low
                for row, offset in zip(rows, offsets, strict=True):
                    for dim, of in enumerate(row):
                        offset[dim] += of.get(at, 0) * low
        free = [at for at, of_kind in enumerate(kinds) if of_kind[0] in "bo"]
        bound = [at for at in range(len(groups)) if at not in free and (kinds[at] != "r" or counts[at] != 1)]
        number = {at: new for new, at in enumerate([*free, *bound])}
        final = {new: counts[at] for at, new in number.items()}
        found = []
        for (node, _), row, offset in list(zip(reads, rows, offsets, strict=True))[:count]:
            index = tuple(
                entry_of(one, {number[at]: stride for at, stride in of.items() if at in number})
                for one, of in zip(offset, row, strict=True)
            )
            found.append(self.nodes.narrowed(node, index, final.__getitem__))
        name = (*op, ("reduce", kind, times)) if kind else op
        over = tuple((kinds[at], counts[at]) for at in bound)
        node = self.nodes.node(name, tuple((0, counts[at]) for at in free), over, tuple(found), len(made))
        return node, tuple(
            entry_of(
                -lows[at],
                {digit: prod(sizes[one] for one in groups[at][place + 1 :]) for place, digit in enumerate(groups[at])},
            )
            for at in free
        )

    def _flattened(
        self,
        op: tuple[Any, ...],
        kind: str,
        reads: Sequence[Read],
        sizes: dict[int, int],
        classes: dict[int, str],
    ) -> tuple[tuple[Any, ...], Sequence[Read], list[Read]]:
        """A reduction of a reduction of the same kind is one along the variables of both; so is a sum of products.

        Also returns reads that limit where it is known.
        """
        node, index = reads[0]
        if kind and op == ("identity",) and node.op[0] == "extended":
            # What is behind the end of another dimension is not needed.
            inner = node.reads[0][0]
            padded = [entry for entry, sides in zip(index, node.op[2], strict=True) if any(sides)]
            is_reduced = inner.op[0] in MULTIPLIES or _reduces(inner, kind)
            if is_reduced and not any(classes.get(one, "b") != "b" for entry in padded for _, one in entry[1]):
                node = inner
        is_product = kind == "add" and node.op[0] in MULTIPLIES
        left: list[Read] = []
        if op[0] == "several":
            # All results of one reduction are reduced, with the numbers that it started with.
            count = len(reads) // 2
            operands, left = reads[:count], [(one, tuple(i)) for one, i in reads[count:]]
            if any(
                one.op != (*op[:2], at) or one.reads != node.reads or i != index or one.reads[count:] != tuple(left)
                for at, (one, i) in enumerate(operands)
            ):
                return op, reads, []
        elif not kind or op != ("identity",) or not (is_product or _reduces(node, kind)):
            return op, reads, []
        limits = list[Read]()
        for entry, bound in zip(index, node.bounds, strict=True):
            if is_inside(entry, bound, sizes.__getitem__):
                continue
            if any(classes.get(variable, "b") != "b" for _, variable in entry[1]):
                return op, reads, []
            limits.append((self.nodes.node(("limit",), (bound,), (), ()), (entry,)))
        by: dict[Any, Entry] = dict(enumerate(index))
        new = max(sizes, default=0) + 1
        for one, (of_class, size) in enumerate(node.sizes, len(node.bounds)):
            sizes[new], classes[new] = size, of_class
            by[one] = (0, ((1, new),))
            new += 1
        if not is_product and op[0] != "several":
            # What is added up several times is along a variable that nothing reads.
            sizes[new], classes[new] = node.op[-1][2], "r"
        found = [(inner, tuple(substituted(entry, by) for entry in entries)) for inner, entries in node.reads]
        if op[0] == "several":
            return op, found, limits
        return ("product", *node.op[1:]) if is_product else node.op[:-1], found, limits

    def _groups(
        self, reads: Sequence[Read], sizes: Mapping[int, int], classes: Mapping[int, str], made: Sequence[int]
    ) -> list[list[int]]:
        """The variables in the order in which they first occur; those that are always side by side together."""
        order: dict[int, None] = {}
        rows = [linear(terms) for _, index in reads for _, terms in index]

        def key(term: tuple[int, Any]) -> Any:
            one = term[1]
            column = [row.get(one, 0) for row in rows] if is_tied else ()
            return -abs(term[0]), classes.get(one, "b"), column, one < 0, abs(one)

        for _, index in reads:
            for _, terms in index:
                is_tied = len({abs(stride) for stride, _ in terms}) < len(terms)
                for _, variable in sorted(terms, key=key):
                    if sizes[variable] > 1:
                        order.setdefault(variable)
        groups: list[list[int]] = []
        for variable in order:
            kind, size = classes.get(variable, "b"), sizes[variable]
            for group in groups:
                last = group[-1]
                if classes.get(last, "b") == kind and all(of.get(last, 0) == of.get(variable, 0) * size for of in rows):
                    group.append(variable)
                    break
            else:
                groups.append([variable])
        return groups + [[variable] for variable in made]

    @staticmethod
    def _valid(
        at: int,
        count: int,
        reads: Sequence[Read],
        rows: Sequence[Sequence[Mapping[int, int]]],
        offsets: Sequence[Sequence[int]],
    ) -> tuple[int, int]:
        """Where all reads that depend on one variable alone are in bounds."""
        low, high = 0, count
        for (node, _), row, offset in zip(reads, rows, offsets, strict=True):
            for (first, last), of, start in zip(node.bounds, row, offset, strict=True):
                if list(of) != [at]:
                    continue
                stride = of[at]
                least, most = (
                    (first, last)
                    if stride > 0
                    else (
                        None if last is None else 1 - last,
                        None if first is None else 1 - first,
                    )
                )
                begin, step = (start, stride) if stride > 0 else (-start, -stride)
                if least is not None:
                    low = max(low, -((begin - least) // step))
                if most is not None:
                    high = min(high, -((begin - most) // step))
        return low, high

    @staticmethod
    def _neutral(
        at: int,
        count: int,
        kind: str,
        op: tuple[Any, ...],
        reads: Sequence[Read],
        rows: Sequence[Sequence[Mapping[int, int]]],
        offsets: Sequence[Sequence[int]],
    ) -> tuple[int, int]:
        """Where a reduction reads what may change it: elements that are neutral behind the end are left out."""
        if op[0] == "lookup":
            return Lemmas._looked_up(at, count, reads, rows, offsets)
        ranges = set[tuple[int, int]]()
        neutral = (
            NEUTRAL.get(kind, ()) if op == ("identity",) else _ZEROS if op[0] == "product" and kind == "add" else ()
        )
        for (node, _), row, offset in zip(reads, rows, offsets, strict=True):
            for dim, (of, start) in enumerate(zip(row, offset, strict=True)):
                if at not in of:
                    continue
                if node.op[0] != "extended" or node.op[1] not in neutral or of != {at: 1}:
                    return 0, count
                first, last = node.reads[0][0].bounds[dim]
                low, high = node.op[2][dim]
                begin = max(0, first - start) if low and first is not None else 0
                end = min(count, last - start) if high and last is not None else count
                ranges.add((begin, end))
        return ranges.pop() if len(ranges) == 1 else (0, count)

    @staticmethod
    def _looked_up(
        at: int,
        count: int,
        reads: Sequence[Read],
        rows: Sequence[Sequence[Mapping[int, int]]],
        offsets: Sequence[Sequence[int]],
    ) -> tuple[int, int]:
        """Where a lookup may find what it looks for: what it looks for is clamped to the bounds of what it reads."""
        half = (len(reads) - 1) // 2
        for number in range(1, 1 + half):
            of, start = rows[number + half][0], offsets[number + half][0]
            node = reads[number][0]
            if of != {at: 1} or node.op[0] != "clamped":
                continue
            low, high = int(node.op[2]), int(node.op[3])
            for (first, last), own, offset in zip(reads[0][0].bounds, rows[0], offsets[0], strict=True):
                if own == {at: 1} and first is not None and last is not None:
                    # The position is looked for from `low` to `high`; the element there has to be in bounds.
                    shift = offset - start
                    if low + shift >= first and high + shift < last:
                        return max(0, low - start), min(count, high + 1 - start)
        return 0, count

    def pointwise(self, op: tuple[Any, ...], values: Sequence[Value]) -> Value:
        """An op on elements at the same position; of numbers it is a number, and the greater of x and x is x."""
        if KINDS.get(op[0]) in IDEMPOTENT and values[0] == values[1]:
            return values[0]
        number = self._folded(op, values)
        if number is not None:
            return self.constant("", number, values[0].shape)
        labels = [str(dim) for dim in range(len(values[0].dims))]
        return self.opaque(op, [(value, labels) for value in values], labels, ())

    def _folded(self, op: tuple[Any, ...], values: Sequence[Value]) -> str | None:
        """The number that an op on floats computes of numbers, None for other ops and where it is not finite."""
        compute = _FOLDED.get(str(op[0]).partition(".")[2])
        if compute is None or len(op) < 2 or op[1] not in _FLOATS or not all(map(self.is_number, values)):
            return None
        try:
            given = [getattr(np, _FLOATS[op[1]])(float(self.number_of(value, ""))) for value in values]
        except ValueError:
            return None
        if not np.isfinite(given).all():
            return None
        with np.errstate(all="ignore"):
            found = float(getattr(np, compute)(*given))
        return repr(found) if np.isfinite(found) else None

    def clamped(self, value: Value, low: int, high: int, element: str) -> Value:
        """An integer moved between two numbers."""
        if value.node.op[0] == "index":
            least, most = span(value.index[0], self.nodes.size_in(value))
            if low <= least and most <= high:
                return value
        ends = [self.index(element, (end, ()), value.dims) for end in (low, high)]
        return self.pointwise(("stablehlo.clamp", element), [ends[0], value, ends[1]])

    def without_shift(self, value: Value) -> tuple[Value, Entry]:
        """An integer without a number of the device that is subtracted from it, and that number; modulo its type."""
        node = value.node
        if node.op[0] != "stablehlo.subtract" or node.reads[1][0].op[0] != "index":
            return value, (0, ())
        by: dict[Any, Entry] = dict(enumerate(value.index))
        shift = substituted(node.reads[1][1][0], by)
        size_of = self.nodes.size_in(value)
        if any(one >= 0 for _, one in shift[1]) or not all(
            map(is_inside, value.index, node.bounds, [size_of] * len(by))
        ):
            return value, (0, ())
        inner, entries = node.reads[0]
        return self.nodes.value(inner, tuple(substituted(one, by) for one in entries), value.dims), shift

    def reduced(self, kind: str, value: Value, dims: Collection[int], axes: Collection[int] = ()) -> Value:
        """A reduction along dimensions and mesh axes."""
        if axes:
            self.check_tables(value)
        key = kind, value, tuple(sorted(dims)), tuple(sorted(axes))
        if key not in self._reduced:
            found = self._in_parts(kind, value, dims, axes)
            if kind in IDEMPOTENT and not self._depends(value, dims, axes):
                found = self._without(value, dims)
            if found is None and (kind == "add" or kind in IDEMPOTENT):
                found = self._distributed(kind, value, dims, axes)
            if found is None:
                labels = [str(dim) for dim in range(len(value.dims))]
                results = [label for dim, label in enumerate(labels) if dim not in dims]
                found = self.opaque(("identity",), [(value, labels)], results, (), None, kind, axes)
            self._reduced[key] = found
        return self._reduced[key]

    def _in_parts(self, kind: str, value: Value, dims: Collection[int], axes: Collection[int]) -> Value | None:
        """A reduction of a concatenation along another dimension is that of the reductions of its parts."""
        at = self._joint(value)
        if at is None or at in dims:
            return None
        # Parts may be concatenations themselves, hundreds deep where tensors were packed one by one.
        left, parts = [value], list[Value]()
        while left:
            one = left.pop()
            if self._joint(one) == at:
                left += [self._part(one, at, number) for number in reversed(range(len(parts_of(one.node))))]
            else:
                parts.append(self.reduced(kind, one, dims, axes))
        return self.joined(parts, at - sum(dim < at for dim in dims))

    def _joint(self, value: Value) -> int | None:
        """The dimension along which a value is all of a concatenation or copy, None if it is none."""
        if value.node.op[0] not in MOVING:
            return None
        (offset, terms), starts = value.index[-1], self._starts(value.dims)
        for dim, sizes in enumerate(value.dims):
            if (
                len(sizes) == 1
                and terms == ((1, starts[dim]),)
                and not offset
                and sizes[0] == sum(parts_of(value.node))
            ):
                return dim
        return None

    def _part(self, value: Value, at: int, number: int) -> Value:
        """A part of a concatenation along a dimension that is the last variable of its node."""
        node, first = value.node, self._starts(value.dims)[at]
        (inner, entries), (_, (position,)) = node.reads[number], node.reads[len(node.reads) // 2 + number]
        digits = [variable for _, variable in position[1]]
        cut = tuple(node.sizes[variable - len(node.bounds)][1] for variable in digits)
        total = self._starts(value.dims)[-1]
        later: dict[Any, Entry] = {one: (0, ((1, one + len(cut) - 1),)) for one in range(first + 1, total)}
        by: dict[Any, Entry] = {one: substituted(entry, later) for one, entry in enumerate(value.index[:-1])}
        by |= {variable: (0, ((1, first + one),)) for one, variable in enumerate(digits)}
        dims = [*value.dims[:at], cut, *value.dims[at + 1 :]]
        return self.nodes.value(inner, tuple(substituted(entry, by) for entry in entries), dims)

    def _distributed(self, kind: str, value: Value, dims: Collection[int], axes: Collection[int]) -> Value | None:
        """A sum of what is linear is that of the sums: of sums, differences, selections, and multiples.

        The greatest of maxima is that of the greatest ones, and so on.
        """
        node, size_of = value.node, self.nodes.size_in(value)
        if self.is_number(value) and (kind in IDEMPOTENT or self.is_zero(value)):
            return self._without(value, dims)
        linear_in = _LINEAR.get(node.op[0]) if kind == "add" else (0, 1) if KINDS.get(node.op[0]) == kind else None
        if linear_in is None or not all(
            is_inside(entry, bound, size_of) for entry, bound in zip(value.index, node.bounds, strict=True)
        ):
            return None
        starts = self._starts(value.dims)
        summed = {digit for dim in dims for digit in range(starts[dim], starts[dim + 1])} | {-1 - axis for axis in axes}
        by: dict[Any, Entry] = dict(enumerate(value.index))
        operands = [
            self.nodes.value(inner, tuple(substituted(entry, by) for entry in entries), value.dims)
            for inner, entries in node.reads
        ]
        depends = [
            any(variable in summed for entry in entries for _, variable in substituted(entry, by)[1])
            for _, entries in node.reads
        ]
        if linear_in == "any one":
            linear_in = (depends.index(True),) if depends.count(True) == 1 else ()
        if not linear_in or any(depends[at] for at in range(len(operands)) if at not in linear_in):
            return None
        found = [
            self.reduced(kind, operand, dims, axes) if at in linear_in else self._without(operand, dims)
            for at, operand in enumerate(operands)
        ]
        return self.pointwise(node.op, found)

    def _depends(self, value: Value, dims: Collection[int], axes: Collection[int]) -> bool:
        """Whether a value may be another one at another position along dimensions, or on another device along axes."""
        starts = self._starts(value.dims)
        over = {digit for dim in dims for digit in range(starts[dim], starts[dim + 1])} | {-1 - axis for axis in axes}
        return any(variable in over for _, terms in value.index for _, variable in terms)

    def _without(self, value: Value, dims: Collection[int]) -> Value:
        """A value that does not depend on the position along dimensions, without these."""
        starts, by, new = self._starts(value.dims), dict[Any, Entry](), 0
        kept = [dim for dim in range(len(value.dims)) if dim not in dims]
        for dim in kept:
            for digit in range(starts[dim], starts[dim + 1]):
                by[digit] = (0, ((1, new),))
                new += 1
        return self.nodes.replaced(value, by, [value.dims[dim] for dim in kept])
