# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Orders the loops of structured ops in memory, so that LLVM vectorizes the innermost, and tiles transposes.

Reduction loops keep their relative order: each element of a result combines the same values in the same order, except
for sums and products of floats, which LLVM may reassociate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir.editing import clone_with, operations_named
from mlir_shard.runtime.collectives import buffers
from mlir_shard.runtime.launch.cpu import Cpu
from mlir_shard.runtime.lowering.loops import transposes

_memref, _scf = host.dialect("memref"), host.dialect("scf")
_GENERIC, _INDEX = "linalg.generic", "linalg.index"
_MAPS, _ITERATORS, _SEGMENTS = "indexing_maps", "iterator_types", "operandSegmentSizes"
_COMBINING: Final = ("arith.addf", "arith.mulf")
_SUBTRACT: Final = "arith.subf"
# The cost of an iteration of the innermost loop for an operand with steps larger than 1, which may load a line of the
# cache, and for one with steps of 1.
_FAR, _NEAR = 16, 1
# Loops with fewer iterations are not worth vectorizing; their additional cost.
_SHORT, _OF_SHORT = 8, 4
# The iterations of each of two loops for which the elements of two operands fit in the L1 cache.
_TILE: Final = 16
_WORTH_TILES: Final = 4096


def arrange(module: Any, cpu: Cpu) -> None:
    """Reorders and tiles the loops of each `linalg.generic` in memory of a module, in place."""
    decided: dict[Any, tuple[int, ...]] = {}
    for op in operations_named(module, _GENERIC):
        if not len(op.results):
            _arrange(op, decided, cpu.vector_bytes)


def _arrange(op: Any, decided: dict[Any, tuple[int, ...]], vector_bytes: int) -> None:
    key = op.attributes[_MAPS], op.attributes[_ITERATORS], *(one.type for one in op.operands)
    if key not in decided:
        steps = _steps(op)
        decided[key] = () if steps is None else _order(steps, _sizes(op), _is_reduced(op))
    order = decided[key]
    if order != tuple(range(len(order))):
        _interchange(op, order)
    if any(_is_reduced(op)):
        _reassociate(op)
    elif len(order) > 1:
        _tile(op, vector_bytes)


def _steps(op: Any) -> list[tuple[int, ...]] | None:
    """Returns, for each operand in memory, the elements by which each loop advances; None if unknown."""
    found = []
    for attribute, operand in zip(op.attributes[_MAPS], op.operands, strict=True):
        map_, type_ = attribute.value, operand.type
        if not isinstance(type_, ir.MemRefType):
            continue
        strides = buffers.strides(type_)
        if strides is None or not type_.has_static_shape:
            return None
        steps = [0] * map_.n_dims
        for expression, stride in zip(map_.results, strides, strict=True):
            for loop in range(map_.n_dims):
                steps[loop] += _coefficient(expression, loop) * stride
        found.append(tuple(steps))
    return found


def _coefficient(expression: Any, loop: int) -> int:
    """Returns the coefficient of a loop in an affine expression; 0 if the expression is not linear."""
    if isinstance(expression, ir.AffineDimExpr):
        return int(expression.position == loop)
    if isinstance(expression, ir.AffineAddExpr):
        return _coefficient(expression.lhs, loop) + _coefficient(expression.rhs, loop)
    if isinstance(expression, ir.AffineMulExpr) and isinstance(expression.rhs, ir.AffineConstantExpr):
        return _coefficient(expression.lhs, loop) * int(expression.rhs.value)
    return 0


def _sizes(op: Any) -> list[int]:
    """Returns the number of iterations of each loop; 0 if no operand's shape determines it."""
    sizes = [0] * op.attributes[_MAPS][0].value.n_dims
    for attribute, operand in zip(op.attributes[_MAPS], op.operands, strict=True):
        for dim, expression in enumerate(attribute.value.results):
            if isinstance(expression, ir.AffineDimExpr):
                sizes[expression.position] = operand.type.shape[dim]
    return sizes


def _is_reduced(op: Any) -> list[bool]:
    return ["reduction" in str(one) for one in op.attributes[_ITERATORS]]


def _order(steps: Sequence[tuple[int, ...]], sizes: Sequence[int], reduced: Sequence[bool]) -> tuple[int, ...]:
    """Returns the loops from the outermost to the innermost, which is the one with the cheapest steps."""
    last_reduced = max((loop for loop, one in enumerate(reduced) if one), default=-1)
    loops = range(len(sizes))

    def cost(loop: int) -> tuple[int, int]:
        far = sum(0 if of[loop] == 0 else _NEAR if of[loop] == 1 else _FAR for of in steps)
        return far + (_OF_SHORT if sizes[loop] < _SHORT else 0), -loop

    # Any other reduction loop as the innermost would change the order in which an element combines values.
    innermost = min((one for one in loops if not reduced[one] or one == last_reduced), key=cost, default=None)
    return tuple(loops) if innermost is None else (*(one for one in loops if one != innermost), innermost)


def _interchange(op: Any, order: Sequence[int]) -> None:
    """Makes loop `order[i]` the loop `i` of an op, in place."""
    place = {loop: new for new, loop in enumerate(order)}
    substitution = ir.AffineMap.get(len(order), 0, [ir.AffineDimExpr.get(place[loop]) for loop in range(len(order))])
    maps = [
        ir.AffineMap.get(len(order), 0, [one.compose(substitution) for one in attribute.value.results])
        for attribute in op.attributes[_MAPS]
    ]
    iterators = list(op.attributes[_ITERATORS])
    op.attributes[_MAPS] = ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps])
    op.attributes[_ITERATORS] = ir.ArrayAttr.get([iterators[loop] for loop in order])
    for inner in operations_named(op, _INDEX):
        dim = inner.attributes["dim"]
        inner.attributes["dim"] = ir.IntegerAttr.get(dim.type, place[dim.value])


def _reassociate(op: Any) -> None:
    """Allows LLVM to reassociate the sums and products that the body of a reduction accumulates."""
    body = op.regions[0].blocks[0]
    inputs = ir.DenseI32ArrayAttr(op.attributes[_SEGMENTS])[0]
    accumulated = list(body.arguments)[inputs:]
    *_, end = body.operations
    for value, before in zip(end.operation.operands, accumulated, strict=True):
        adder = value.owner
        if isinstance(adder, ir.Block):
            continue
        name, operands = adder.operation.name, list(adder.operation.operands)
        if (name in _COMBINING and before in operands) or (name == _SUBTRACT and before == operands[0]):
            adder.operation.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<reassoc>")


def _tile(op: Any, vector_bytes: int) -> None:
    """Tiles the two loops of an op if each of them is the contiguous dimension of some operand."""
    steps, sizes = _steps(op), _sizes(op)
    if steps is None or 0 in sizes or list(operations_named(op, _INDEX)):
        return
    *_, inner = range(len(sizes))
    of_other = {loop for of in steps for loop, step in enumerate(of) if step == 1 and loop != inner and of[inner] > 1}
    if len(of_other) != 1 or any(not _is_projection(one.value) for one in op.attributes[_MAPS]):
        return
    (outer,) = of_other
    rows = _rows_in_registers(op, vector_bytes) if _is_transposition(op, {outer, inner}) else None
    tile = rows or _TILE
    if min(sizes[outer], sizes[inner]) < min(tile, _SHORT) or prod(sizes) < _WORTH_TILES:
        return
    with ir.InsertionPoint(op), op.location:
        for start_outer, size_outer in _parts(sizes[outer], tile):
            for start_inner, size_inner in _parts(sizes[inner], tile):
                parts = {outer: (start_outer, size_outer), inner: (start_inner, size_inner)}
                if rows and min(size_outer, size_inner) >= rows:
                    _transposed_tiles(op, sizes, parts, rows)
                else:
                    _tiles(op, sizes, parts, tile)
    op.erase()


def _is_transposition(op: Any, loops: set[int]) -> bool:
    """Returns whether each of two loops indexes both operands of an op, and is the last dimension of one of them."""
    of_operands = [[one.position for one in attribute.value.results] for attribute in op.attributes[_MAPS]]
    is_last = {of[-1] for of in of_operands if of} == loops
    return len(of_operands) == 2 and is_last and all(loops <= set(of) for of in of_operands)


def _is_projection(map_: Any) -> bool:
    return all(isinstance(one, ir.AffineDimExpr) for one in map_.results)


def _rows_in_registers(op: Any, vector_bytes: int) -> int | None:
    """Returns the number of rows of a transposition's tiles in registers; None for other ops."""
    body, operands = op.regions[0].blocks[0], list(op.operands)
    (end, *more) = body.operations
    if more or len(operands) != 2 or end.operation.operands[0] != body.arguments[0]:
        return None
    if any((buffers.strides(one.type) or (0,))[-1] != 1 for one in operands):
        return None
    return transposes.rows_of_tile(operands[0].type.element_type, vector_bytes)


def _parts(size: int, tile: int) -> list[tuple[int, int]]:
    """Returns the start and the number of iterations of the full tiles and of the remainder."""
    whole = size // tile * tile
    return [(start, length) for start, length in ((0, whole), (whole, size - whole)) if length]


def _tiles(op: Any, sizes: Sequence[int], parts: Mapping[int, tuple[int, int]], tile: int) -> None:
    """Emits tiles for a part of two loops."""
    counts = {loop: min(length, tile) for loop, (_, length) in parts.items()}
    with _loops({loop: (*of, counts[loop]) for loop, of in parts.items()}) as at:
        # A value that is an operand twice has a different view for each.
        part = clone_with(op, {})
        for place, (attribute, operand) in enumerate(zip(op.attributes[_MAPS], op.operands, strict=True)):
            if isinstance(operand.type, ir.MemRefType):
                loops = [one.position for one in attribute.value.results]
                shape = [counts.get(loop, sizes[loop]) for loop in loops]
                start = [at.get(loop, 0) for loop in loops]
                with ir.InsertionPoint(part):
                    part.operands[place] = _memref.subview(operand, start, shape, [1] * len(loops))


def _transposed_tiles(op: Any, sizes: Sequence[int], parts: Mapping[int, tuple[int, int]], rows: int) -> None:
    """Emits tiles in registers for a part of two loops of a transposition."""
    ranges = {loop: (0, size, 1) for loop, size in enumerate(sizes) if loop not in parts}
    of_source, of_target = ([one.position for one in attribute.value.results] for attribute in op.attributes[_MAPS])
    with _loops(ranges | {loop: (*of, rows) for loop, of in parts.items()}) as at:

        def places(moving: int, loops: Sequence[int]) -> list[list[Any]]:
            starts = [at[moving], *(index.add(at[moving], index.constant(row)) for row in range(1, rows))]
            return [[start if loop == moving else at[loop] for loop in loops] for start in starts]

        source, target = op.operands
        # Rows are contiguous along the last dimension of their operand, and follow each other along the other one.
        rows_of_source, rows_of_target = places(of_target[-1], of_source), places(of_source[-1], of_target)
        transposes.transpose_tile(source, target, rows_of_source, rows_of_target)


@contextmanager
def _loops(ranges: Mapping[int, tuple[int, int, int]]) -> Iterator[dict[int, Any]]:
    """Emits loops around the ops built in the context, given start, count and step of each; yields their indices."""
    with ExitStack() as stack:
        at = {}
        for loop, (start, count, step) in ranges.items():
            made = _scf.ForOp(*map(index.constant, (start, start + count, step)))
            at[loop] = made.induction_variable
            with ir.InsertionPoint(made.body):
                end = _scf.YieldOp([])
            stack.enter_context(ir.InsertionPoint(end))
        yield at
