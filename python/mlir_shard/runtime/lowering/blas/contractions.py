# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions: structured ops that sum products of two inputs, including convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import clone_with, inline_body, operations_named, operations_where, replace_with

_func, _linalg = host.dialect("func"), host.dialect("linalg")
_GENERIC, _CONTRACT = "linalg.generic", "linalg.contract"
_MAPS, _SEGMENTS = "indexing_maps", "operandSegmentSizes"
_MULTIPLY: Final = {"arith.mulf": "arith.addf", "complex.mul": "complex.add", "arith.muli": "arith.addi"}
_WIDEN: Final = ("arith.extf", "arith.extsi")
_OUTLINED: Final = "contraction outside of fusion "
FEWEST: Final = 512
"""The number of multiplications from which a call of BLAS is faster than loops."""

Index = tuple[tuple[int, int], ...]
"""The index of a dimension: the sum of pairs (loop, factor), each the loop times its factor."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """An op on tensors or memory of static shapes that adds `a * b` to `c`.

    Attributes:
        indices: for `a`, `b` and `c`, the index of each dimension; each index of `c` is a single loop.
        sizes: the number of iterations of each loop.
    """

    op: Any
    indices: tuple[tuple[Index, ...], ...]
    sizes: tuple[int, ...]

    @property
    def volume(self) -> int:
        """The number of products."""
        return prod(self.sizes)

    @property
    def loops(self) -> tuple[frozenset[int], ...]:
        """The loops that index each operand."""
        return tuple(frozenset(loop for index in of for loop, _ in index) for of in self.indices)

    @property
    def summed(self) -> frozenset[int]:
        """The loops over which products are summed."""
        a, b, c = self.loops
        return a & b - c

    def is_plain(self, operand: int) -> bool:
        """Returns whether each dimension of an operand is indexed by a single, distinct loop."""
        of = self.indices[operand]
        return all(len(index) == 1 and index[0][1] == 1 for index in of) and len(self.loops[operand]) == len(of)

    def plain_loops(self, operand: int) -> list[int]:
        """Returns the loop of each dimension of a plain operand."""
        return [index[0][0] for index in self.indices[operand]]

    @property
    def orders(self) -> tuple[list[int], ...]:
        """The loops of each operand in the order of batches, rows and columns of its matrices."""
        a, b, c = self.loops
        batch = sorted(a & b & c)
        rows, columns, summed = (sorted(one.difference(batch)) for one in (a & c, b & c, a & b))
        return batch + rows + summed, batch + summed + columns, batch + rows + columns


def contraction(op: Any) -> Contraction | None:
    """Returns the contraction of a linalg op; None if it is not one.

    The op may widen its inputs first. Every loop must index at least two operands, and one loop only the inputs.
    """
    if len(op.regions) != 1 or len(op.operands) != 3 or list(ir.DenseI32ArrayAttr(op.attributes[_SEGMENTS])) != [2, 1]:
        return None
    types = [one.type for one in op.operands]
    if not all(isinstance(one, (ir.RankedTensorType, ir.MemRefType)) and one.has_static_shape for one in types):
        return None
    maps = _linalg.get_indexing_maps(op)
    if maps is None or not _adds_products(op.regions[0].blocks[0]):
        return None
    indices: list[tuple[Index, ...]] = []
    for of in maps:
        terms = [index_of(one) for one in of.value.results]
        if None in terms:
            return None
        indices.append(tuple(one for one in terms if one is not None))
    size_of = {
        index[0][0]: size
        for of, type_ in zip(indices, types, strict=True)
        for index, size in zip(of, type_.shape, strict=True)
        if len(index) == 1 and index[0][1] == 1
    }
    count = maps[0].value.n_dims
    if len(size_of) < count:
        return None
    found = Contraction(op, tuple(indices), tuple(size_of[loop] for loop in range(count)))
    is_of_two = all(sum(loop in of for of in found.loops) > 1 for loop in range(count))
    return found if is_of_two and found.summed and found.is_plain(2) and min(found.sizes) > 0 else None


def protect(module: Any) -> list[Any]:
    """Prevents the host from fusing producers of inputs into contractions, until `release`; changes them in place.

    An op fused into the body of a contraction is recomputed for each product. A generic on tensors with plain operands
    becomes a `linalg.contract`; others are moved to functions, which are returned.
    """
    functions: list[Any] = []
    for op in operations_where(module, lambda name: name == _GENERIC):
        found = contraction(op) if op.results else None
        if found is None or found.volume < FEWEST:
            continue
        if all(map(found.is_plain, range(3))):
            _name(op)
        else:
            functions.append(_outline(module, op, f"{_OUTLINED}{len(functions)}"))
    return functions


def release(module: Any, functions: Sequence[Any]) -> None:
    """Inlines the functions that `protect` returned, and erases them."""
    by_name = {one.attributes["sym_name"].value: one for one in functions}
    for call in operations_named(module, "func.call"):
        function = by_name.get(call.attributes["callee"].value)
        if function is not None:
            inline_body(call, function)
    for function in functions:
        function.operation.erase()


def _name(op: Any) -> None:
    attributes = {_MAPS: op.attributes[_MAPS], _SEGMENTS: op.attributes[_SEGMENTS]}
    types, operands = [one.type for one in op.results], list(op.operands)
    with ir.InsertionPoint(op), op.location:
        made = ir.Operation.create(_CONTRACT, types, operands, attributes, regions=1)
    op.regions[0].blocks[0].append_to(made.regions[0])
    replace_with(op, made.results)


def _outline(module: Any, op: Any, symbol: str) -> Any:
    operands, types = list(op.operands), [one.type for one in op.results]
    with op.location:
        with ir.InsertionPoint(module.body):
            signature = ir.FunctionType.get([one.type for one in operands], types)
            function = _func.FuncOp(symbol, signature, visibility="private")
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            copy = clone_with(op, dict(zip(operands, block.arguments, strict=True)))
            _func.ReturnOp(list(copy.results))
        with ir.InsertionPoint(op):
            call = _func.CallOp(types, symbol, operands)
    replace_with(op, call.results)
    return function


def _adds_products(body: Any) -> bool:
    """Returns whether a body adds the product of its two inputs to its accumulator."""
    a, b, c = body.arguments
    multiply = add = None
    widened = {a: a, b: b}
    for one in body.operations:
        inner = one.operation
        operands = list(inner.operands)
        if inner.name in _WIDEN and operands[0] in (a, b):
            widened[inner.results[0]] = operands[0]
        elif inner.name in _MULTIPLY and multiply is None and all(one in widened for one in operands):
            if {widened[one] for one in operands} != {a, b}:
                return False
            multiply = inner
        elif multiply is not None and add is None and inner.name == _MULTIPLY[multiply.name]:
            if {*operands} != {c, multiply.results[0]}:
                return False
            add = inner
        elif inner.name != "linalg.yield" or add is None or operands[0] != add.results[0]:
            return False
    return add is not None


def index_of(expression: Any) -> Index | None:
    """Converts an expression of an indexing map to an index; returns None if it is not linear."""
    if isinstance(expression, ir.AffineDimExpr):
        return ((expression.position, 1),)
    if isinstance(expression, ir.AffineAddExpr):
        left, right = index_of(expression.lhs), index_of(expression.rhs)
        return None if left is None or right is None else left + right
    if isinstance(expression, ir.AffineMulExpr) and isinstance(expression.rhs, ir.AffineConstantExpr):
        terms = index_of(expression.lhs)
        return terms and tuple((loop, times * expression.rhs.value) for loop, times in terms)
    return None
