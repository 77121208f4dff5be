# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data-flow edges of ops, their values by number.

Calls become named computations, so a program may have very many of these: their edges are read without the IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.dialects.data_flow_edges import edges_of
from mlir_shard.host import ir
from mlir_shard.sharding.tensor import EdgeFrame
from mlir_shard.transforms.propagate.edge_frames import edge_frame

NAMED_COMPUTATION = "sdy.named_computation"


@dataclass(frozen=True, slots=True)
class NumberedEdge:
    """One edge: the target that owns it, the sources, the other targets; and the frame, in a manual computation."""

    owner: int
    sources: tuple[int, ...]
    other_targets: tuple[int, ...]
    is_of_argument: bool
    frame: EdgeFrame | None = None


def numbered_edges(
    arrays: ModuleArrays, ops: Sequence[tuple[int, str]], returns: Mapping[int, int]
) -> Iterator[NumberedEdge]:
    """The edges of ops, given with their names; `returns` has the op that ends the body of each computation."""
    for op, name in ops:
        yield from _of_computation(arrays, op, returns[op]) if name == NAMED_COMPUTATION else _of_any(arrays, op)


def _of_computation(arrays: ModuleArrays, op: int, terminator: int) -> Iterator[NumberedEdge]:
    for argument, operand in zip(arrays.arguments(op), arrays.operands(op), strict=True):
        yield NumberedEdge(argument, (operand,), (), is_of_argument=True)
    for result, returned in zip(arrays.results(op), arrays.operands(terminator), strict=True):
        yield NumberedEdge(result, (returned,), (), is_of_argument=False)


def _of_any(arrays: ModuleArrays, op: int) -> Iterator[NumberedEdge]:
    def number(value: Any) -> int:
        found = arrays.number_of(value)
        if found is None:
            raise ValueError(f"a data-flow edge has a value that is not in the module: {value}")
        return found

    ir_op = arrays.operation(op)
    for edge in edges_of(ir_op):
        yield NumberedEdge(
            number(edge.owner),
            tuple(map(number, edge.sources)),
            tuple(map(number, edge.other_targets)),
            isinstance(edge.owner, ir.BlockArgument),
            edge_frame(ir_op, edge.owner),
        )
