# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One data-flow edge, and what the edges of an op have to be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir


@dataclass(frozen=True, slots=True)
class DataFlowEdge:
    """One edge: the target that owns it, the values that are sources, and the other targets.

    Targets are results of the op, or arguments of blocks in its regions; sources are operands of the op, or of
    terminators in its regions. All have one shape, as they shard alike.
    """

    owner: Any
    sources: tuple[Any, ...]
    other_targets: tuple[Any, ...] = ()


def check_edges(edges: Iterable[Any], op: Any) -> str | None:
    """The edges are edges of the op: targets are its own, each in one edge, and what an edge ties has one shape."""
    known: dict[Any, int] = {}
    for number, edge in enumerate(edges):
        if not isinstance(edge, DataFlowEdge):
            return f"edge {number} is {edge!r}, but has to be a DataFlowEdge"
        targets = (edge.owner, *edge.other_targets)
        for value in (*targets, *edge.sources):
            if not isinstance(value, ir.Value):
                return f"edge {number} ties {value!r}, which is no ir.Value"
        for target in targets:
            if not _is_target(target, op):
                return f"{_shown(target)} of edge {number} is no result of the op and no argument of a block in it"
            if target in known:
                return f"{_shown(target)} is a target of both edge {known[target]} and edge {number}"
            known[target] = number
        for value in (*edge.other_targets, *edge.sources):
            if _shape(value) != _shape(edge.owner):
                return (
                    f"edge {number} ties {_shown(value)} to its owner of type {edge.owner.type}, "
                    "but only tensors of one shape shard alike"
                )
    return None


def is_static_tensor(value: Any) -> bool:
    """Whether a value can carry an edge: it is shaped, and its shape static."""
    return is_static(value.type)


def is_static(type_: Any) -> bool:
    """Whether a type has a shape, and a static one."""
    return isinstance(type_, ir.ShapedType) and type_.has_rank and type_.has_static_shape


def _is_target(value: Any, op: Any) -> bool:
    owner = value.owner
    around = owner.owner if isinstance(owner, ir.Block) else owner
    return bool(around.operation == op.operation)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a tensor that can carry an edge; None for all other values, which are left alone."""
    return tuple(value.type.shape) if is_static_tensor(value) else None


def _shown(value: Any) -> str:
    kind = "a block argument" if isinstance(value.owner, ir.Block) else f"a value of '{value.owner.operation.name}'"
    return f"{kind} of type {value.type}"
