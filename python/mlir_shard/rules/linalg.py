# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of linalg's structured ops, named or generic, from their indexing maps and iterator types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.rules.without_rule import without_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_linalg = dialect("linalg")
_PARALLEL = "#linalg.iterator_type<parallel>"

without_rule(
    "linalg.index",
    "linalg.yield",
    because="it stands in the body of a structured op, whose loops it follows",
)


def is_structured(op: Any) -> bool:
    """Whether `op` has the interface of linalg's structured ops."""
    return op.name.startswith("linalg.") and _linalg.get_indexing_maps(op) is not None


@dataclass(frozen=True, slots=True)
class Loops:
    """The loop nest of a structured op.

    `dims[operand][dim]` is the loop that dimension follows, or None where it follows an expression of several
    loops or a constant; `reductions` are the loops that no output follows. `windows[operand]` holds the dimensions
    along which the operand is read in windows, each with the loop that goes from window to window. Loops in `bound`
    are in an expression with others, or of a parallel loop no output follows, so that each device needs all of it.
    """

    count: int
    dims: tuple[tuple[int | None, ...], ...]
    reductions: frozenset[int]
    windows: tuple[dict[int, int], ...]
    bound: frozenset[int]


def loops_of(op: Any) -> Loops:
    """The loop nest of the structured op `op`, read from its indexing maps."""
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
            if len(moving) == 1 and operand < inputs and _is_window(expr) and not moving & set(dims[operand]):
                of_operand[dim] = next(iter(moving))
                over -= moving
            bound |= over
        windows.append(of_operand)
    return Loops(count, dims, frozenset(range(count)) - parallel, tuple(windows), frozenset(bound))


def _overwriting(op: Any, parallel: set[int]) -> set[int]:
    """The loops said to be parallel that no output follows: which iteration writes last is not a reduction."""
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


def _is_window(expr: Any) -> bool:
    """Whether `expr` is a sum of loops, each times a constant: the stride or the dilation of a window."""
    if isinstance(expr, ir.AffineAddExpr):
        return _is_window(expr.lhs) and _is_window(expr.rhs)
    if isinstance(expr, ir.AffineMulExpr):
        sides = (expr.lhs, expr.rhs)
        return any(isinstance(side, ir.AffineConstantExpr) and side.value > 0 for side in sides) and any(
            isinstance(side, ir.AffineDimExpr) for side in sides
        )
    return isinstance(expr, ir.AffineDimExpr)


def is_pointwise(op: Any) -> bool:
    """Whether `op` is a structured op that computes each element of its result on its own, with no reduction."""
    if len(op.results) != 1 or not is_structured(op):
        return False
    loops = loops_of(op)
    return not loops.reductions and not any(loops.windows)


@sharding_rule(when=is_structured)
def structured(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """One factor for each loop: pass-through where an output follows it, else a reduction. None on buffers.

    Along a loop that goes from window to window neighbours exchange what overlaps, unless a window is one element;
    the loops inside of a window have to be whole, as has the loop of a diagonal. A dimension that follows an
    expression of another kind has a factor of its own that cannot be sharded.
    """
    if not len(op.results):
        return None
    loops = loops_of(op)
    shapes = [shape_of(operand.type) for operand in op.operands]
    inputs = len(op.operands) - len(op.results)
    builder = RuleBuilder.for_op(op)
    followed = [_dims_of_loops(loops, operand) for operand in range(len(shapes))]
    for loop in range(loops.count):
        sizes = {shape[dims.index(loop)] for shape, dims in zip(shapes, loops.dims, strict=True) if loop in dims}
        if not sizes:
            continue
        dims = [of_operand.get(loop) for of_operand in followed]
        size = sizes.pop()
        type_ = _factor_type(loops, shapes, loop, size)
        blocked = options.conservative and type_ is FactorType.PERMUTATION
        builder.add_factor(dims, dims[inputs:], size, type_, blocked=blocked)
    for number, of_operand in enumerate(loops.dims):
        for dim in range(len(of_operand)):
            if dim not in followed[number].values():
                own = [dim if other == number else None for other in range(len(shapes))]
                builder.add_factor(own, own[inputs:], shapes[number][dim], FactorType.NEED_REPLICATION)
    return builder.build()


def _dims_of_loops(loops: Loops, operand: int) -> dict[int, int]:
    """For each loop the first dimension of an operand that follows it, alone or from window to window."""
    found = {loop: dim for dim, loop in loops.windows[operand].items()}
    for dim, loop in reversed(list(enumerate(loops.dims[operand]))):
        if loop is not None:
            found[loop] = dim
    return found


def _factor_type(loops: Loops, shapes: list[tuple[int, ...]], loop: int, size: int) -> FactorType:
    if loop in loops.bound or any(of_operand.count(loop) > 1 for of_operand in loops.dims):
        return FactorType.NEED_REPLICATION
    if loop in loops.reductions:
        return FactorType.REDUCTION
    read = [shapes[number][dim] for number, of in enumerate(loops.windows) for dim, over in of.items() if over == loop]
    return FactorType.PASS_THROUGH if all(one == size for one in read) else FactorType.PERMUTATION
