# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lemmas: the result of each op on values, as a value. docs/certificates.md states each lemma.

Each method returns a value that is a fact if its operands are facts. The same methods read the local program and the
global one, whose indices have no mesh axes. `moves` has the lemmas that move elements; `canonical` makes the nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry, entry_of
from mlir_shard.check.kernel.kinds import IDEMPOTENT, KINDS, width
from mlir_shard.check.kernel.mesh import Mesh
from mlir_shard.check.kernel.terms import folded, number
from mlir_shard.check.lemmas.indices import is_inside, linear, span, substituted
from mlir_shard.check.lemmas.moves import Moves
from mlir_shard.check.lemmas.values import MOVING, Node, Value, parts_of

# The operands in which an op is jointly linear if the other operands do not depend on the summed variables.
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


class Lemmas(Moves):
    """All lemmas, over the nodes of one check."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__(mesh)
        self._reduced: dict[Any, Value] = {}

    def joined(self, values: Sequence[Value], dim: int) -> Value:
        """Returns a concatenation: one value if the indices of the values continue each other, else an op along `dim`.

        Constants at the ends become padding.
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
        """Returns the two values as one if the index of the second continues that of the first; else None."""
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
        """Returns a node that both values read if one extends the other; else None."""
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

    def pointwise(self, op: tuple[Any, ...], values: Sequence[Value]) -> Value:
        """Returns an op on elements at the same position; ops on numbers are folded, and a maximum of x and x is x."""
        if KINDS.get(op[0]) in IDEMPOTENT and values[0] == values[1]:
            return values[0]
        if all(map(self.is_number, values)):
            found = folded(op, [number(self.number_of(value, "")) for value in values])
            if isinstance(found, float):
                return self.constant("", repr(found), values[0].shape)
        labels = [str(dim) for dim in range(len(values[0].dims))]
        return self.opaque(op, [(value, labels) for value in values], labels, ())

    def clamped(self, value: Value, low: int, high: int, element: str) -> Value:
        """Returns an integer clamped between two numbers."""
        if value.node.op[0] == "index":
            least, most = span(value.index[0], self.nodes.size_in(value))
            if low <= least and most <= high:
                return value
        ends = [self.index(element, (end, ()), value.dims) for end in (low, high)]
        return self.pointwise(("stablehlo.clamp", element), [ends[0], value, ends[1]])

    def is_natural(self, value: Value) -> bool:
        """Returns whether a value is an affine index that is never negative."""
        return value.node.op[0] == "index" and span(value.index[0], self.nodes.size_in(value))[0] >= 0

    def without_shift(self, value: Value) -> tuple[Value, Entry]:
        """Returns an integer without a per-device number subtracted from it, and that number; modulo its type."""
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
        """Returns a reduction along dimensions and mesh axes."""
        if axes:
            value = self.along_axes(value)
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
        """Returns a reduction of a concatenation along another dimension as one of reduced parts; else None."""
        at = self._joint(value)
        if at is None or at in dims:
            return None
        # Parts may be concatenations, nested hundreds deep if tensors were packed one by one.
        left, parts = [value], list[Value]()
        while left:
            one = left.pop()
            if self._joint(one) == at:
                left += [self._part(one, at, number) for number in reversed(range(len(parts_of(one.node))))]
            else:
                parts.append(self.reduced(kind, one, dims, axes))
        return self.joined(parts, at - sum(dim < at for dim in dims))

    def _joint(self, value: Value) -> int | None:
        """Returns the dimension along which a value is an entire concatenation or copy; None if it is neither."""
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
        """Returns a part of a concatenation along a dimension that is the last variable of its node."""
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
        """Returns a sum of sums, differences, selections or multiples as that op on sums of its operands; else None.

        A maximum of maxima is the maximum of those of the operands, and so on.
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
        if node.op[0] == "stablehlo.divide" and width(node.op[1]):
            # Integers are rounded.
            return None
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
        """Returns whether a value may depend on the position along dimensions, or of the device along mesh axes."""
        starts = self._starts(value.dims)
        over = {digit for dim in dims for digit in range(starts[dim], starts[dim + 1])} | {-1 - axis for axis in axes}
        return any(variable in over for _, terms in value.index for _, variable in terms)

    def _without(self, value: Value, dims: Collection[int]) -> Value:
        """Drops dimensions of a value that does not depend on the position along them."""
        starts, by, new = self._starts(value.dims), dict[Any, Entry](), 0
        kept = [dim for dim in range(len(value.dims)) if dim not in dims]
        for dim in kept:
            for digit in range(starts[dim], starts[dim + 1]):
                by[digit] = (0, ((1, new),))
                new += 1
        return self.nodes.replaced(value, by, [value.dims[dim] for dim in kept])
