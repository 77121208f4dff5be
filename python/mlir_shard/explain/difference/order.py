# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts the operations of one module into the order of the matching operations of another.

Propagation resolves conflicts, and communication is merged, in the order of the text. Differences in the order of
independent operations are not differences between programs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from mlir_shard.explain.difference.graph import Graph
from mlir_shard.explain.difference.matching import Matching
from mlir_shard.explain.difference.signatures import ANNOTATIONS
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays


def reorder(graph: Graph, matching: Matching) -> bool:
    """Puts the operations of the module of the second graph of a matching into the order of those of the first.

    Operations without a pair stay behind their predecessors; operations with effects keep their order. Returns whether
    any operation is moved; the graph is then no longer in the order of the module.
    """
    places: dict[int, int] = {}
    for one, other in (*matching.pairs, *matching.by_use):
        places.setdefault(other.op, one.op)
    return _Reordering(graph.arrays, places).run()


class _Reordering:
    def __init__(self, arrays: ModuleArrays, places: dict[int, int]) -> None:
        self._arrays = arrays
        self._children: dict[int, list[int]] = {}
        for op, parent in enumerate(arrays.parents):
            self._children.setdefault(parent, []).append(op)
        self._blocks = [block for parent, ops in self._children.items() for block in self._split(parent, ops)]
        self._places = self._filled(places)
        self._has_effects = list(map(_has_effects, arrays.representatives()))

    def _filled(self, places: dict[int, int]) -> list[int]:
        """Returns the place of each operation; an operation without a place has that of the operation before it."""
        filled = [-1] * len(self._arrays)
        for ops in self._blocks:
            before = -1
            for op in ops:
                before = filled[op] = places.get(op, before)
        return filled

    def _split(self, parent: int, ops: list[int]) -> Iterator[list[int]]:
        """Yields the operations in an operation by block."""
        blocks = [] if parent < 0 else [one for region in self._arrays.operation(parent).regions for one in region]
        if len(blocks) < 2:
            yield ops
            return
        start = 0
        for block in blocks:
            end = start + sum(1 for _ in block)
            yield ops[start:end]
            start = end

    def run(self) -> bool:
        """Reorders all blocks; returns whether the order of one changed."""
        changed = [self._reorder(ops) for ops in self._blocks if not self._is_ordered(ops)]
        return any(changed)

    def _is_ordered(self, ops: list[int]) -> bool:
        return all(self._places[one] <= self._places[other] for one, other in pairwise(ops))

    def _reorder(self, ops: list[int]) -> bool:
        order = self._sorted(ops)
        if order == ops:
            return False
        before = self._arrays.operation(order[0])
        if order[0] != ops[0]:
            before.move_before(self._arrays.operation(ops[0]))
        for op in order[1:]:
            moved = self._arrays.operation(op)
            moved.move_after(before)
            before = moved
        return True

    def _sorted(self, ops: Sequence[int]) -> list[int]:
        """Returns the operations of a block in topological order, by place among those that are ready."""
        users: dict[int, list[int]] = {op: [] for op in ops}
        missing = dict.fromkeys(ops, 0)
        for op, others in self._dependences(ops).items():
            missing[op] = len(others)
            for other in others:
                users[other].append(op)
        ready = [(self._places[op], op) for op in ops if not missing[op]]
        heapq.heapify(ready)
        order = []
        while ready:
            _, op = heapq.heappop(ready)
            order.append(op)
            for user in users[op]:
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, (self._places[user], user))
        return order

    def _dependences(self, ops: Sequence[int]) -> dict[int, set[int]]:
        """Returns, for each operation of a block, the operations of the block that must precede it."""
        arrays, top = self._arrays, dict[int, int]()
        found: dict[int, set[int]] = {}
        last_effect: int | None = None
        for op in ops:
            inside = self._inside(op)
            top.update(dict.fromkeys(inside, op))
            definers = (arrays.definers[value] for one in inside for value in arrays.operands(one))
            found[op] = {top[one] for one in definers if one in top and top[one] != op}
            if any(self._has_effects[arrays.signatures[one]] for one in inside):
                if last_effect is not None:
                    found[op].add(last_effect)
                last_effect = op
        if _is_terminator(arrays.operation(ops[-1])):
            found[ops[-1]].update(ops[:-1])
        return found

    def _inside(self, op: int) -> list[int]:
        found, left = [], [op]
        while left:
            one = left.pop()
            found.append(one)
            left += self._children.get(one, ())
        return found


def _is_terminator(op: Any) -> bool:
    return bool(op.has_trait(ir.IsTerminatorTrait))


def _has_effects(op: Any) -> bool:
    """Returns whether operations of a signature may have effects besides their results."""
    if op.name in ("func.func", *ANNOTATIONS) or _is_terminator(op) or "sym_name" in op.attributes:
        return False
    if "has_side_effect" in op.attributes and bool(op.attributes["has_side_effect"]):
        return True
    values = (*op.operands, *op.results)
    return not op.results or any(isinstance(value.type, ir.MemRefType) for value in values)
