# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on integers that are affine indices, comparisons of them, and masks that select by such a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry, entry_of
from mlir_shard.check.kernel.kinds import NotCertified, fits, width
from mlir_shard.check.lemmas.indices import Index, is_inside, linear, span, substituted
from mlir_shard.check.lemmas.lemmas import Lemmas
from mlir_shard.check.lemmas.nodes import Nodes
from mlir_shard.check.lemmas.values import Node, Read, Value

_SAME = frozenset(("convert", "index_cast", "index_castui", "extsi", "extui", "trunci"))
_MOST_COMPONENTS = 16
NAMES = {
    "addi": "add",
    "subi": "subtract",
    "muli": "multiply",
    "divui": "divide",
    "divsi": "divide",
    "floordivsi": "divide",
    "remui": "remainder",
    "remsi": "remainder",
    "maxsi": "maximum",
    "minsi": "minimum",
    "maxui": "maximum",
    "minui": "minimum",
}


def aligned(lemmas: Lemmas, values: Sequence[Value]) -> tuple[list[tuple[int, ...]], list[Index], Any]:
    """Returns common dims of values of one shape, their indices in these, and a function from variables to sizes."""
    labels = [str(dim) for dim in range(len(values[0].dims))]
    dims, indices, _ = lemmas._aligned([(value, labels) for value in values], "pointwise")
    found = [dims[label] for label in labels]
    return found, indices, lemmas.nodes.size_in(Value(values[0].node, (), tuple(found)))


def computed(lemmas: Lemmas, name: str, values: Sequence[Value], element: str) -> Value | None:
    """Returns the result of an integer op on affine indices if it is affine and does not wrap; else None."""
    if not width(element) or any(value.node.op[0] != "index" or not width(value.node.op[1]) for value in values):
        return None
    try:
        dims, indices, size_of = aligned(lemmas, values)
    except NotCertified:
        return None
    entry = _result(NAMES.get(name, name), [index[0] for index in indices], size_of)
    if entry is None or not fits(element, *span(entry, size_of)):
        return None
    return lemmas.index(element, entry, dims)


def _result(name: str, entries: Sequence[Entry], size_of: Any) -> Entry | None:
    first = entries[0]
    if name in _SAME:
        return first
    if name == "negate":
        return _combined(first, first, -1, 0)
    if name in ("add", "subtract"):
        return _combined(first, entries[1], 1, 1 if name == "add" else -1)
    if name == "multiply":
        factors, others = (entries[1], first) if entries[1][1] else (first, entries[1])
        return None if others[1] else _combined(factors, factors, others[0], 0)
    if name in ("maximum", "minimum"):
        (low, high), (low2, high2) = span(first, size_of), span(entries[1], size_of)
        first, second = entries if name == "maximum" else entries[::-1]
        if low >= high2:
            return first
        return second if low2 >= high else None
    if name == "clamp":
        least = _result("maximum", entries[:2], size_of)
        return None if least is None else _result("minimum", (least, entries[2]), size_of)
    if name in ("divide", "remainder") and not entries[1][1] and entries[1][0] > 0:
        number = entries[1][0]
        if span(first, size_of)[0] < 0:
            return None
        parts = {key: stride for key, stride in linear(first[1]).items() if stride % number == 0}
        left = {key: stride for key, stride in linear(first[1]).items() if key not in parts}
        rest = entry_of(first[0] % number, left)
        low, high = span(rest, size_of)
        if low < 0 or high >= number:
            return None
        if name == "remainder":
            return rest
        return entry_of(first[0] // number, {key: stride // number for key, stride in parts.items()})
    return None


def _combined(first: Entry, second: Entry, one: int, other: int) -> Entry:
    strides = {key: stride * one for key, stride in linear(first[1]).items()}
    for key, stride in linear(second[1]).items():
        strides[key] = strides.get(key, 0) + stride * other
    return entry_of(first[0] * one + second[0] * other, strides)


def compared(lemmas: Lemmas, direction: str, left: Value, right: Value) -> Value | None:
    """Returns a comparison of affine indices as a test whether an index is positive or zero; None for other values."""
    if any(value.node.op[0] != "index" or not width(value.node.op[1]) for value in (left, right)):
        return None
    try:
        dims, ((first,), (second,)), size_of = aligned(lemmas, (left, right))
    except NotCertified:
        return None
    if direction in ("EQ", "NE"):
        entry = _combined(first, second, 1, -1)
        low, high = span(entry, size_of)
        if low > 0 or high < 0 or low == high == 0:
            return _everywhere(lemmas, str((low == high == 0) == (direction == "EQ")), dims)
        return lemmas.nodes.value(lemmas.nodes.node((f"is {direction} 0",), ((None, None),), (), ()), (entry,), dims)
    entry = _combined(first, second, 1, -1) if direction in ("GT", "GE") else _combined(second, first, 1, -1)
    if direction in ("GE", "LE"):
        entry = entry[0] + 1, entry[1]
    low, high = span(entry, size_of)
    if low > 0 or high <= 0:
        return _everywhere(lemmas, str(low > 0), dims)
    return lemmas.nodes.value(lemmas.nodes.node(("is positive",), ((None, None),), (), ()), (entry,), dims)


def _everywhere(lemmas: Lemmas, number: str, dims: Sequence[Sequence[int]]) -> Value:
    return lemmas.nodes.value(lemmas.nodes.node(("constant", "i1", number), (), (), ()), (), dims)


def selected(lemmas: Lemmas, condition: Value, then: Value, otherwise: Value) -> Value:
    """Returns a selection; between a value and a number beyond its end, it is the value extended by the number."""
    if condition.node.op[0] == "constant" and condition.node.op[2] in ("True", "False"):
        return then if condition.node.op[2] == "True" else otherwise
    if then == otherwise:
        return then
    if condition.node.op[0] == "is positive":
        for kept, filling, sign in ((then, otherwise, 1), (otherwise, then, -1)):
            core, index = lemmas.nodes.core(kept.node)
            own: dict[Any, Entry] = dict(enumerate(kept.index))
            inner = Value(core, tuple(substituted(one, own) for one in index), kept.dims)
            if _is_masked(lemmas, condition, kept, filling, sign):
                return kept
            found = _masked(lemmas, condition, kept, filling, sign) or _masked(lemmas, condition, inner, filling, sign)
            if found is not None:
                return found
    if then.node.op[0] == "lookup" and lemmas.is_zero(otherwise):
        found = _sharded_lookup(lemmas, condition, then)
        if found is not None:
            return found
    return lemmas.pointwise(("stablehlo.select",), [condition, then, otherwise])


def _sharded_lookup(lemmas: Lemmas, condition: Value, then: Value) -> Value | None:
    """Returns a lookup in a shard, masked by whether the shard has the positions, as a sum over positions; or None.

    The lookup is at J - A clamped between 0 and h, where A is the first position of the shard and A + h its last one,
    and the condition is that all J are between A and A + h. Without the mask, J is then compared with A plus the
    position.
    """
    try:
        dims, indices, size_of = aligned(lemmas, (condition, then))
    except NotCertified:
        return None
    node, nodes, free = then.node, lemmas.nodes, len(then.node.bounds)
    if not all(is_inside(entry, bound, size_of) for entry, bound in zip(indices[1], node.bounds, strict=True)):
        return None
    left = _conjuncts(nodes, condition.node, indices[0], size_of)
    by: dict[Any, Entry] = dict(enumerate(indices[1]))
    sizes = dict(enumerate(size for of in dims for size in of))
    sizes |= {-1 - axis: size for axis, size in enumerate(lemmas.mesh.sizes)}
    first, classes = len(sizes), dict[int, str]()
    for at, (of_class, size) in enumerate(node.sizes):
        sizes[first + at], classes[first + at] = size, of_class
        by[free + at] = (0, ((1, first + at),))
    reads = [(inner, tuple(substituted(entry, by) for entry in entries)) for inner, entries in node.reads]
    reads = [nodes.narrowed(*read, sizes.__getitem__) for read in reads]
    count = len(reads) // 2
    looked = [variable for _, index in reads[1 : 1 + count] for _, terms in index for _, variable in terms]
    if left is None or any(variable in classes for variable in looked):
        return None
    for at in range(1, 1 + count):
        (clamp, at_clamp), (position, (place,)) = reads[at], reads[at + count]
        if (
            clamp.op[0] != "clamped"
            or clamp.op[2] != "0"
            or any(one >= 0 and one not in classes for _, one in place[1])
        ):
            return None
        shifted, at_shifted = _read(nodes, (clamp, at_clamp), sizes.__getitem__)[0]
        if shifted.op[0] != "stablehlo.subtract":
            # The dimension of this index is not sharded.
            continue
        looked_for, shift = _read(nodes, (shifted, at_shifted), sizes.__getitem__)
        if shift[0].op[0] != "index":
            return None
        low = looked_for, shift[1][0]
        high = looked_for, (shift[1][0][0] + int(clamp.op[3]), shift[1][0][1])
        if ("GE", *low) not in left or ("LE", *high) not in left:
            return None
        left = [one for one in left if one not in (("GE", *low), ("LE", *high))]
        reads[at] = looked_for
        reads[at + count] = position, (_combined(place, shift[1][0], 1, 1),)
    if not all(_is_clamped(direction, looked_for, end, size_of) for direction, looked_for, end in left):
        return None
    found, index = lemmas._built(("lookup",), "add", reads, sizes, classes, ())
    return nodes.value(found, index, dims)


def _is_clamped(direction: str, looked_for: Read, end: Entry, size_of: Any) -> bool:
    """Returns whether a comparison with a number always holds because the compared value is clamped."""
    op, (low, high) = looked_for[0].op, span(end, size_of)
    return op[0] == "clamped" and (int(op[2]) >= high if direction == "GE" else int(op[3]) <= low)


def _read(nodes: Nodes, read: Read, size_of: Any) -> list[Read]:
    """Returns the reads of the node of a read, at its index."""
    by: dict[Any, Entry] = dict(enumerate(read[1]))
    return [
        nodes.narrowed(inner, tuple(substituted(entry, by) for entry in entries), size_of)
        for inner, entries in read[0].reads
    ]


def _conjuncts(nodes: Nodes, node: Node, index: Index, size_of: Any) -> list[Any] | None:
    """Returns the comparisons with affine indices that a node is a conjunction of; None if it has other parts."""
    if not all(is_inside(entry, bound, size_of) for entry, bound in zip(index, node.bounds, strict=True)):
        return None
    found = list[Any]()
    if node.op == ("identity", ("reduce", "and", 1)) and prod(size for _, size in node.sizes) <= _MOST_COMPONENTS:
        for place in product(*(range(size) for _, size in node.sizes)):
            by: dict[Any, Entry] = dict(enumerate((*index, *((at, ()) for at in place))))
            inner, entries = node.reads[0]
            read = nodes.narrowed(inner, tuple(substituted(entry, by) for entry in entries), size_of)
            part = _conjuncts(nodes, *read, size_of)
            if part is None:
                return None
            found += part
        return found
    if node.op[0] in ("stablehlo.and", "arith.andi"):
        for read in _read(nodes, (node, index), size_of):
            part = _conjuncts(nodes, *read, size_of)
            if part is None:
                return None
            found += part
        return found
    if node.op[0] == "compare" and node.op[1] in ("GE", "LE"):
        looked_for, end = _read(nodes, (node, index), size_of)
        if end[0].op[0] == "index":
            return [(node.op[1], looked_for, end[1][0])]
    return None


def _is_masked(lemmas: Lemmas, condition: Value, kept: Value, filling: Value, sign: int) -> bool:
    """Returns whether a value is extended by the filling, and so equals it, where the condition selects that."""
    if kept.node.op[0] != "extended" or not lemmas.is_number(filling):
        return False
    try:
        _, (((offset, terms),), index), size_of = aligned(lemmas, (condition, kept))
    except NotCertified:
        return False
    if kept.node.op[1] != lemmas.number_of(filling, "mask"):
        return False
    # The filling is selected where e <= 0; an index k e + r is beyond an end there if r always is.
    e = (offset, terms) if sign > 0 else (1 - offset, tuple((-stride, variable) for stride, variable in terms))
    of_e = linear(e[1])
    for entry, sides, bound in zip(index, kept.node.op[2], kept.node.reads[0][0].bounds, strict=True):
        strides = linear(entry[1])
        for variable, stride in of_e.items():
            factor, rest = divmod(strides.get(variable, 0), stride)
            if rest or not factor:
                continue
            low, high = span(_combined(entry, e, 1, -factor), size_of)
            if factor > 0 and sides[0] and bound[0] is not None and high < bound[0]:
                return True
            if factor < 0 and sides[1] and bound[1] is not None and low >= bound[1]:
                return True
    return False


def _masked(lemmas: Lemmas, condition: Value, kept: Value, filling: Value, sign: int) -> Value | None:
    try:
        number = lemmas.number_of(filling, "mask")
        dims, (((offset, terms),), index), _ = aligned(lemmas, (condition, kept))
    except NotCertified:
        return None
    # Kept where offset + terms > 0, or with the other sign where 1 - offset - terms > 0.
    if sign < 0:
        offset, terms = 1 - offset, tuple((-stride, variable) for stride, variable in terms)
    for at, ((start, of), (first, last)) in enumerate(zip(index, kept.node.bounds, strict=True)):
        if (
            linear(of) == {variable: -stride for stride, variable in terms}
            and last is not None
            and start + offset == last
        ):
            sides = (False, True)
        elif linear(of) == linear(terms) and first is not None and start - offset + 1 == first:
            sides = (True, False)
        else:
            continue
        every = tuple(sides if one == at else (False, False) for one in range(len(index)))
        return lemmas.nodes.value(lemmas.nodes.extended(kept.node, number, every), index, dims)
    return None
