# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on integers that are affine indices, comparisons of them, and masks that select by such a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.check.lemmas import Lemmas
from mlir_shard.check.reading import fits, width
from mlir_shard.check.values import Entry, Index, NotCertified, Value, entry_of, linear, span

_SAME = frozenset(("convert", "index_cast", "index_castui", "extsi", "extui", "trunci"))
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
    """The dims that fit values of one shape, their indices in these, and a function to the sizes of variables."""
    labels = [str(dim) for dim in range(len(values[0].dims))]
    dims, indices, _ = lemmas._aligned([(value, labels) for value in values], "pointwise")
    found = [dims[label] for label in labels]
    return found, indices, lemmas.nodes.size_in(Value(values[0].node, (), tuple(found)))


def computed(lemmas: Lemmas, name: str, values: Sequence[Value], element: str) -> Value | None:
    """The result of an integer op on affine indices, if it is one and does not wrap."""
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
    """The comparison of affine indices: whether an index is positive, or whether it is zero."""
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
    """A selection; one between a value and a number at the end of the value is the value extended by the number."""
    if condition.node.op[:2] == ("constant", "i1"):
        return then if condition.node.op[2] == "True" else otherwise
    if then == otherwise:
        return then
    if condition.node.op[0] == "is positive":
        found = _masked(lemmas, condition, then, otherwise, 1) or _masked(lemmas, condition, otherwise, then, -1)
        if found is not None:
            return found
    return lemmas.pointwise(("stablehlo.select",), [condition, then, otherwise])


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
