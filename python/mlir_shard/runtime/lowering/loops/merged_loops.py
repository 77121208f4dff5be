# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Merges adjacent loops of structured ops in memory if every operand is contiguous across both.

An element-wise op on contiguous memory becomes one loop. LLVM compiles it faster and vectorizes it even if the last
dimension is short, and ops whose shapes have the same product have equal loops, which `shared_loops` shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.runtime.collectives import buffers

_memref = host.dialect("memref")
_GENERIC, _INDEX = "linalg.generic", "linalg.index"
_MAPS, _ITERATORS = "indexing_maps", "iterator_types"


@dataclass(frozen=True, slots=True)
class _Memory:
    """An operand in memory: the loop of each dimension, its shape and its strides."""

    loops: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def merge(module: Any) -> None:
    """Merges loops of each `linalg.generic` in memory of a module, in place."""
    for op in operations_named(module, _GENERIC):
        if not len(op.results) and not operations_named(op, _INDEX):
            memories = _memories(op)
            if memories is not None:
                groups = _groups(memories, [str(one) for one in op.attributes[_ITERATORS]])
                if any(len(one) > 1 for one in groups):
                    _rewrite(op, memories, groups)


def _memories(op: Any) -> list[_Memory | None] | None:
    """Returns the operands, with None for scalars; None if an operand is not indexed by single, distinct loops."""
    found: list[_Memory | None] = []
    for attribute, operand in zip(op.attributes[_MAPS], op.operands, strict=True):
        map_, type_ = attribute.value, operand.type
        if not isinstance(type_, ir.MemRefType):
            if len(map_.results):
                return None
            found.append(None)
            continue
        strides = buffers.strides(type_)
        if strides is None or not type_.has_static_shape:
            return None
        if not all(isinstance(one, ir.AffineDimExpr) for one in map_.results):
            return None
        loops = tuple(one.position for one in map_.results)
        if len(set(loops)) < len(loops):
            return None
        found.append(_Memory(loops, tuple(type_.shape), tuple(strides)))
    return found


def _groups(memories: Sequence[_Memory | None], iterators: Sequence[str]) -> list[list[int]]:
    """Returns the loops, grouped by those that are merged."""
    groups = [[0]] if iterators else []
    for loop, next_loop in pairwise(range(len(iterators))):
        is_merged = iterators[loop] == iterators[next_loop] and all(
            one is None or _continues(one, loop, next_loop) for one in memories
        )
        if is_merged:
            groups[-1].append(next_loop)
        else:
            groups.append([next_loop])
    return groups


def _continues(memory: _Memory, outer: int, inner: int) -> bool:
    """Returns whether the outer loop's next iteration continues in memory where the inner loop has ended."""
    if outer not in memory.loops or inner not in memory.loops:
        return outer not in memory.loops and inner not in memory.loops
    dim = memory.loops.index(outer)
    is_next = memory.loops[dim + 1 : dim + 2] == (inner,)
    return is_next and memory.strides[dim] == memory.strides[dim + 1] * memory.shape[dim + 1]


def _rewrite(op: Any, memories: Sequence[_Memory | None], groups: Sequence[Sequence[int]]) -> None:
    of_loop = {loop: place for place, group in enumerate(groups) for loop in group}
    maps = []
    with ir.InsertionPoint(op), op.location:
        for place, memory in enumerate(memories):
            loops: list[int] = []
            if memory is not None:
                loops = list(dict.fromkeys(of_loop[loop] for loop in memory.loops))
                if len(loops) < len(memory.loops):
                    op.operands[place] = _collapsed(op.operands[place], memory, [groups[one] for one in loops])
            maps.append(ir.AffineMap.get(len(groups), 0, [ir.AffineDimExpr.get(one) for one in loops]))
    iterators = list(op.attributes[_ITERATORS])
    op.attributes[_MAPS] = ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps])
    op.attributes[_ITERATORS] = ir.ArrayAttr.get([iterators[group[0]] for group in groups])


def _collapsed(value: Any, memory: _Memory, groups: Sequence[Sequence[int]]) -> Any:
    """Returns the memory with one dimension for each group of loops."""
    dims = [[memory.loops.index(loop) for loop in group] for group in groups]
    shape = [prod(memory.shape[dim] for dim in group) for group in dims]
    type_ = value.type
    layout = None
    if not isinstance(type_.layout, ir.AffineMapAttr):
        _, offset = type_.get_strides_and_offset()
        layout = ir.StridedLayoutAttr.get(offset, [memory.strides[group[-1]] for group in dims])
    made = ir.MemRefType.get(shape, type_.element_type, layout, type_.memory_space)
    return _memref.CollapseShapeOp(made, value, dims).result
