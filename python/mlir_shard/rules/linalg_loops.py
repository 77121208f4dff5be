# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loop nests of linalg's structured ops, read from their indexing maps and iterator types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.host import dialect, ir

_linalg = dialect("linalg")
_PARALLEL = "#linalg.iterator_type<parallel>"


def is_structured(op: Any) -> bool:
    """Returns whether `op` has the interface of linalg's structured ops."""
    return op.name.startswith("linalg.") and _linalg.get_indexing_maps(op) is not None


@dataclass(frozen=True, slots=True)
class Loops:
    """The loop nest of a structured op.

    `dims[operand][dim]` is the loop that indexes the dimension; None if a constant or an expression of several loops
    does. `reductions` are the loops that index no output. `windows[operand]` maps the dimensions along which the
    operand is read in windows to the loop that moves from window to window. Loops in `bound` have to run entirely on
    each device: they are in an expression without moving from window to window, or are parallel and index no output.
    """

    count: int
    dims: tuple[tuple[int | None, ...], ...]
    reductions: frozenset[int]
    windows: tuple[dict[int, int], ...]
    bound: frozenset[int]


def loops_of(op: Any) -> Loops:
    """Returns the loop nest of the structured op `op`, read from its indexing maps."""
    maps = [attr.value for attr in _linalg.get_indexing_maps(op)]
    dims = tuple(
        tuple(expr.position if isinstance(expr, ir.AffineDimExpr) else None for expr in map_.results) for map_ in maps
    )
    count = maps[0].n_dims if maps else 0
    inputs = len(op.operands) - len(op.results)
    parallel = {loop for of_output in dims[inputs:] for loop in of_output if loop is not None}
    windows: list[dict[int, int]] = []
    bound = _overwriting(op, parallel)
    for operand, map_ in enumerate(maps):
        of_operand: dict[int, int] = {}
        for dim, expr in enumerate(map_.results):
            if dims[operand][dim] is not None:
                continue
            over = _loops_in(expr)
            moving = over & parallel
            if len(moving) == 1 and operand < inputs and steps_of(expr) is not None and not moving & set(dims[operand]):
                of_operand[dim] = next(iter(moving))
                over -= moving
            bound |= over
        windows.append(of_operand)
    return Loops(count, dims, frozenset(range(count)) - parallel, tuple(windows), frozenset(bound))


def _overwriting(op: Any, parallel: set[int]) -> set[int]:
    """Returns the loops declared parallel that index no output: iterations overwrite results, and reduce nothing."""
    if "iterator_types" not in op.attributes:
        return set()
    types = [str(type_) for type_ in op.attributes["iterator_types"]]
    return {loop for loop, type_ in enumerate(types) if type_ == _PARALLEL} - parallel


def _loops_in(expr: Any) -> set[int]:
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position}
    if isinstance(expr, ir.AffineBinaryExpr):
        return _loops_in(expr.lhs) | _loops_in(expr.rhs)
    return set()


def steps_of(expr: Any) -> dict[int, int] | None:
    """Returns for a sum of loops, each times a positive constant, the constant of each loop; None for anything else."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position: 1}
    if isinstance(expr, ir.AffineAddExpr):
        left, right = steps_of(expr.lhs), steps_of(expr.rhs)
        if left is None or right is None:
            return None
        return {loop: left.get(loop, 0) + right.get(loop, 0) for loop in (*left, *right)}
    sides = (expr.lhs, expr.rhs) if isinstance(expr, ir.AffineMulExpr) else ()
    loops = [side.position for side in sides if isinstance(side, ir.AffineDimExpr)]
    constants = [side.value for side in sides if isinstance(side, ir.AffineConstantExpr) and side.value > 0]
    return {loops[0]: constants[0]} if loops and constants else None


def is_pointwise(op: Any) -> bool:
    """Returns whether `op` is a structured op that computes each element of its one result alone, with no reduction."""
    if len(op.results) != 1 or not is_structured(op):
        return False
    loops = loops_of(op)
    return not loops.reductions and not any(loops.windows)
