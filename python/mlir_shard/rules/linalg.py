# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of linalg: every structured op, named or generic, from its indexing maps and iterator types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_linalg = dialect("linalg")


def is_structured(op: Any) -> bool:
    """Whether `op` has the interface of linalg's structured ops."""
    return op.name.startswith("linalg.") and _linalg.get_indexing_maps(op) is not None


@dataclass(frozen=True, slots=True)
class Loops:
    """The loop nest of a structured op.

    `dims[operand][dim]` is the loop that dimension follows, or None where it follows an expression of several
    loops or a constant; `reductions` are the loops that no output follows.
    """

    count: int
    dims: tuple[tuple[int | None, ...], ...]
    reductions: frozenset[int]


def loops_of(op: Any) -> Loops:
    """The loop nest of the structured op `op`, read from its indexing maps."""
    maps = [attr.value for attr in _linalg.get_indexing_maps(op)]
    dims = tuple(
        tuple(expr.position if isinstance(expr, ir.AffineDimExpr) else None for expr in map_.results) for map_ in maps
    )
    count = maps[0].n_dims if maps else 0
    outputs = dims[len(op.operands) - len(op.results) :]
    parallel = {loop for of_output in outputs for loop in of_output if loop is not None}
    return Loops(count, dims, frozenset(range(count)) - parallel)


@sharding_rule(when=is_structured)
def structured(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """One factor for each loop: pass-through where an output follows it, else a reduction. None on buffers.

    A dimension that follows no single loop (the window of a convolution) or repeats the loop of another dimension
    (a diagonal) has a factor of its own that cannot be sharded.
    """
    if not len(op.results):
        return None
    loops = loops_of(op)
    shapes = [shape_of(operand.type) for operand in op.operands]
    inputs = len(op.operands) - len(op.results)
    builder = RuleBuilder.for_op(op)
    followed = [_first_dims(of_operand, loops.count) for of_operand in loops.dims]
    for loop in range(loops.count):
        dims = [of_operand[loop] for of_operand in followed]
        sizes = [shape[dim] for shape, dim in zip(shapes, dims, strict=True) if dim is not None]
        if not sizes:
            continue
        diagonal = any(of_operand.count(loop) > 1 for of_operand in loops.dims)
        builder.add_factor(dims, dims[inputs:], sizes[0], _factor_type(op, loop, loops, diagonal))
    for number, of_operand in enumerate(loops.dims):
        for dim, followed_loop in enumerate(of_operand):
            if followed_loop is None or followed[number][followed_loop] != dim:
                own = [dim if other == number else None for other in range(len(shapes))]
                builder.add_factor(own, own[inputs:], shapes[number][dim], FactorType.NEED_REPLICATION)
    return builder.build()


def _first_dims(of_operand: tuple[int | None, ...], count: int) -> list[int | None]:
    return [of_operand.index(loop) if loop in of_operand else None for loop in range(count)]


def _factor_type(op: Any, loop: int, loops: Loops, diagonal: bool) -> FactorType:
    if diagonal:
        return FactorType.NEED_REPLICATION
    return FactorType.REDUCTION if loop in loops.reductions else FactorType.PASS_THROUGH


@sharding_rule("linalg.softmax")
def softmax(op: Any, options: RuleOptions) -> OpShardingRule:
    """All dimensions go through but the one that is normalized, which has to be whole."""
    normalized = op.attributes["dimension"].value
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(
            shape_of(op.results[0].type),
            lambda dim: FactorType.NEED_REPLICATION if dim == normalized else FactorType.PASS_THROUGH,
        )
        .build()
    )
