# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Structured ops: loops over affine accesses, a body at each point, and a reduction along loops that no result has.

All ops of linalg are read from their own indexing maps and bodies. Windows of convolutions and pools are accesses too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.check.kernel.indices import Entry, entry_of
from mlir_shard.check.kernel.kinds import NEUTRAL, NotCertified
from mlir_shard.check.ops.reading import READERS, Reading, reduction_of
from mlir_shard.check.ops.tensors import Tensors, Value
from mlir_shard.host import ir

_linalg = host.dialect("linalg")


def is_structured(op: Any) -> bool:
    """Returns whether an op itself defines its loops, accesses and body."""
    return bool(op.name.startswith("linalg.")) and len(op.regions) == 1 and len(op.regions[0].blocks) == 1


def structured(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    """Returns the results of an op of linalg."""
    maps = [[_entry(one) for one in attribute.value.results] for attribute in _linalg.get_indexing_maps(op) or ()]
    if len(maps) != len(values):
        raise NotCertified("no indexing maps", op.name)
    tensors, block, count = reading.tensors, op.regions[0].blocks[0], len(values) - len(op.results)
    known: dict[int, int] = {}
    for entries, value in zip(maps, values, strict=True):
        known.update(
            (entry[1][0][1], size) for entry, size in zip(entries, value.shape, strict=True) if _is_loop(entry)
        )
    sizes = [known.get(loop, 0) for loop in range(max(known, default=-1) + 1)]
    if 0 in sizes:
        raise NotCertified("a loop of unknown size", op.name)
    body = _Body(reading, sizes)
    for argument, entries, value in zip(block.arguments, maps, values, strict=True):
        body.values[argument] = tensors.accessed(value, entries, sizes, op.name)
    *inside, terminator = (one.operation for one in block.operations)
    found = []
    for at, yielded in enumerate(terminator.operands, count):
        loops = [entry[1][0][1] for entry in maps[at] if _is_loop(entry)]
        rest = [dim for dim, entry in enumerate(maps[at]) if not _is_loop(entry)]
        shape = values[at].shape
        if any(maps[at][dim] != (0, ()) or shape[dim] != 1 for dim in rest) or len(set(loops)) != len(loops):
            raise NotCertified("a result dimension that is not a loop", op.name)
        reduced = [loop for loop in range(len(sizes)) if loop not in loops]
        kind, part, mask = _reduction(inside, block.arguments[at], yielded) if reduced else ("", yielded, None)
        neutral = None if mask is None else tensors.neutral(kind, reading.type_of(yielded.type)[1], sizes)
        if reduced and (not kind or (mask is not None and neutral is None)):
            return _along_loops(reading, op, values, maps, sizes)
        value = body.value(part)
        if neutral is not None:
            value = tensors.selected(body.value(mask), value, neutral)
        if reduced:
            left = [loop for loop in range(len(sizes)) if loop in loops]
            value = tensors.transposed(tensors.reduced(kind, value, reduced), [left.index(loop) for loop in loops])
            value = initial(reading, kind, values[at], tensors.reshaped(value, shape))
        else:
            value = tensors.reshaped(tensors.transposed(value, loops), shape)
        found.append(value)
    return found


def _reduction(inside: Sequence[Any], accumulator: Any, yielded: Any) -> tuple[str, Any, Any]:
    """Returns the kind of a reduction, its operand, and the condition that selects it; None if it is always reduced."""
    last = next((op for op in inside if list(op.results) == [yielded]), None)
    if last is None or last.name != "arith.select" or last.operands[2] != accumulator:
        return (*reduction_of(inside, accumulator, yielded), None)
    others = [op for op in inside if op != last]
    return (*reduction_of(others, accumulator, last.operands[1]), last.operands[0])


def _is_loop(entry: Entry) -> bool:
    return entry[0] == 0 and len(entry[1]) == 1 and entry[1][0][0] == 1


def _entry(expression: Any) -> Entry:
    """Returns an affine expression of the loops as an index."""
    if isinstance(expression, ir.AffineDimExpr):
        return 0, ((1, expression.position),)
    if isinstance(expression, ir.AffineConstantExpr):
        return expression.value, ()
    if isinstance(expression, (ir.AffineAddExpr, ir.AffineMulExpr)):
        left, right = _entry(expression.lhs), _entry(expression.rhs)
        strides: dict[Any, int] = {}
        if isinstance(expression, ir.AffineAddExpr):
            for stride, loop in (*left[1], *right[1]):
                strides[loop] = strides.get(loop, 0) + stride
            return entry_of(left[0] + right[0], strides)
        factor, other = (left, right) if not left[1] else (right, left)
        if not factor[1]:
            return entry_of(other[0] * factor[0], {loop: stride * factor[0] for stride, loop in other[1]})
    raise NotCertified("an access that is not affine", "access")


class _Body:
    """The values of a body, each as a tensor over the loops."""

    def __init__(self, reading: Reading, sizes: Sequence[int]) -> None:
        self.reading, self.sizes = reading, sizes
        self.values: dict[Any, Value] = {}

    def value(self, wanted: Any) -> Value:
        """Returns a value that is defined in the body or outside of it."""
        found = self.values.get(wanted)
        if found is None:
            op = None if isinstance(wanted, ir.BlockArgument) else wanted.owner
            if wanted in self.reading.environment:
                found = self.reading.environment[wanted]
            elif op is None or len(op.results) != 1:
                raise NotCertified(f"a body with {op.name if op is not None else wanted}", "body")
            elif op.name == "tensor.extract":
                found = self._extracted(op)
            elif not op.name.startswith(("arith.", "math.", "linalg.index")) or op.name not in (
                *READERS,
                "linalg.index",
            ):
                raise NotCertified(f"a body with {op.name if op is not None else wanted}", "body")
            elif op.name == "linalg.index":
                loop, dims = op.attributes["dim"].value, [(size,) for size in self.sizes]
                found = self.reading.tensors.index("index", (0, ((1, loop),)), dims)
            else:
                (found,) = READERS[op.name](self.reading, op, [self.value(one) for one in op.operands])
            if not found.rank and self.sizes:
                found = self.reading.tensors.broadcast(found, self.sizes, ())
            self.values[wanted] = found
        return found

    def _extracted(self, op: Any) -> Value:
        """Returns an element of a tensor at indices that are computed, or affine in the loops; they are in bounds."""
        value, tensors, count = self.reading.environment[op.operands[0]], self.reading.tensors, len(self.sizes)
        numbers = [self.value(one) for one in list(op.operands)[1:]]
        entries, rest = list[Entry](), list[int]()
        for dim, number in enumerate(numbers):
            entry = tensors.in_loops(number)
            if entry is None:
                entry = 0, ((1, count + len(rest)),)
                rest.append(dim)
            entries.append(entry)
        value = tensors.accessed(value, entries, [*self.sizes, *(value.shape[dim] for dim in rest)], "extract")
        loops = [f"l{loop}" for loop in range(count)]
        starts = {count + at: (numbers[dim], loops, 1) for at, dim in enumerate(rest)}
        labels = [*loops, *(f"d{dim}" for dim in rest)]
        return looked_up_at(tensors, value, labels, starts, loops, "index") if rest else value


def _along_loops(
    reading: Reading, op: Any, values: Sequence[Value], maps: Sequence[Sequence[Entry]], sizes: Sequence[int]
) -> list[Value]:
    """Returns the results of an op with another reduction: one function of its reads for each result position."""
    if not all(_is_loop(entry) for entries in maps for entry in entries):
        raise NotCertified("an unknown reduction of windows", op.name)
    labels = [[f"l{entry[1][0][1]}" for entry in entries] for entries in maps]
    count = len(values) - len(op.results)
    kept = {label for of in labels[count:] for label in of}
    core = [f"l{loop}" for loop in range(len(sizes)) if f"l{loop}" not in kept]
    if any(set(of) != kept for of in labels[count:]):
        raise NotCertified("results along different loops", op.name)
    name = ("reduction", tuple(map(tuple, labels)), reading.region_key(op))
    operands = list(zip(values, labels, strict=True))
    return [reading.tensors.opaque((*name, at), operands, of, core) for at, of in enumerate(labels[count:])]


def initial(reading: Reading, kind: str, start: Value, value: Value) -> Value:
    """Returns a reduction that starts with a value."""
    try:
        if reading.tensors.number_of(start, "reduce") in NEUTRAL.get(kind, ()):
            return value
    except NotCertified:
        pass
    if start.rank != value.rank:
        start = reading.tensors.broadcast(start, value.shape, ())
    return reading.tensors.pointwise((f"stablehlo.{kind}", "initial"), [start, value])


def looked_up_at(
    tensors: Tensors,
    value: Value,
    labels: Sequence[str],
    starts: Mapping[int, tuple[Value, Sequence[str], int]],
    results: Sequence[str],
    element: str,
) -> Any:
    """Returns the elements of a tensor at computed positions, each as a sum over all positions that has one match.

    Args:
        labels: the labels of the dimensions of the value.
        starts: for each dimension that is looked up, the first position, its labels, and the number of positions from
            it on, which have the label `o` and the dimension in the result.
    """
    places, found = list[tuple[Entry, Sequence[tuple[int, str]]]](), list[Any]()
    for dim, (start, of, size) in starts.items():
        found.append((tensors.clamped(start, 0, value.shape[dim] - size, element), of))
        places.append(((0, ()), ((1, labels[dim]), (-1, f"o{dim}")) if f"o{dim}" in results else ((1, labels[dim]),)))
    others = {f"o{dim}": size for dim, (_, _, size) in starts.items() if f"o{dim}" in results}
    operands: list[tuple[Value, Sequence[str]]] = [(value, labels), *found]
    return tensors.opaque(("lookup",), operands, results, (), None, "add", places=places, others=others)
