# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What values of the checker mean, element by element: the definition that its lemmas are tested against."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from mlir_shard.check.nodes import Nodes
from mlir_shard.check.values import Index, Node, Value

UNKNOWN = float("nan")
COMBINED = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
POINTWISE = {
    "compare GE": np.greater_equal,
    "compare LE": np.less_equal,
    "stablehlo.and": np.logical_and,
    "stablehlo.subtract": np.subtract,
    "stablehlo.add": np.add,
    "stablehlo.multiply": np.multiply,
    "stablehlo.negate": np.negative,
}


class Evaluation:
    """Evaluates values; `leaves` has the arrays of arguments by the names of their nodes."""

    def __init__(self, nodes: Nodes, leaves: Mapping[Any, npt.NDArray[np.float64]]) -> None:
        self._nodes, self._leaves = nodes, leaves
        self._known: dict[Any, float] = {}

    def shards(self, value: Value) -> list[npt.NDArray[np.float64]]:
        """Returns the tensor of each device, with `UNKNOWN` where nothing is known."""
        mesh = self._nodes.real_mesh
        sizes = [size for dim in value.dims for size in dim]
        found = []
        for device, place in enumerate(itertools.product(*map(range, mesh))):
            digits = dict(enumerate(place)) | {len(mesh) + at: of[device] for at, of in enumerate(self._nodes.tables)}
            flat = []
            for position in itertools.product(*map(range, sizes)):
                variables = dict(enumerate(position)) | {-1 - axis: at for axis, at in digits.items()}
                flat.append(self.at(value.node, _indices(value.index, variables)))
            found.append(np.array(flat).reshape(value.shape))
        return found

    def at(self, node: Node, index: tuple[int, ...]) -> float:
        """Returns an element of a node."""
        key = node.number, index
        if key not in self._known:
            self._known[key] = self._at(node, index)
        return self._known[key]

    def _at(self, node: Node, index: tuple[int, ...]) -> float:
        name = node.op[0]
        if name != "extended" and any(
            (low is not None and at < low) or (high is not None and at >= high)
            for at, (low, high) in zip(index, node.bounds, strict=True)
        ):
            return UNKNOWN
        if name == "argument":
            return float(self._leaves[node.op][index])
        if name == "constant":
            return float(node.op[2])
        if name in ("index", "position"):
            return float(index[0])
        if name == "is positive":
            return float(index[0] > 0)
        if name == "extended":
            return self._extended(node, index)
        if name == "assembly":
            return self._assembled(node, index)
        if name in ("lookup", "update"):
            return self._looked_up(node, index)
        if isinstance(node.op[-1], tuple) and node.op[-1][:1] == ("reduce",):
            return self._reduced(node, index)
        if name in ("concatenate", "copy", "reshape"):
            return self._moved(node, index)
        read = [self.at(inner, _indices(entries, dict(enumerate(index)))) for inner, entries in node.reads]
        if name == "clamped":
            return UNKNOWN if np.isnan(read[0]) else min(max(read[0], float(node.op[2])), float(node.op[3]))
        if name == "stablehlo.select":
            return UNKNOWN if np.isnan(read[0]) else read[1] if read[0] else read[2]
        return float(POINTWISE[f"compare {node.op[1]}" if name == "compare" else name](*read))

    def _extended(self, node: Node, index: tuple[int, ...]) -> float:
        inner = node.reads[0][0]
        outside = False
        for at, (low, high), (first, last) in zip(index, node.op[2], inner.bounds, strict=True):
            if (first is not None and at < first and not low) or (last is not None and at >= last and not high):
                return UNKNOWN
            outside |= (first is not None and at < first) or (last is not None and at >= last)
        return float(node.op[1]) if outside else self.at(inner, index)

    def _reduced(self, node: Node, index: tuple[int, ...]) -> float:
        _, kind, times = node.op[-1]
        found = []
        for bound in itertools.product(*(range(size) for _, size in node.sizes)):
            variables = dict(enumerate((*index, *bound)))
            read = [self.at(inner, _indices(entries, variables)) for inner, entries in node.reads]
            found.append(reduce(np.multiply, read))
        return float(reduce(COMBINED[kind], found * times))

    def _looked_up(self, node: Node, index: tuple[int, ...]) -> float:
        """The sum of what is where positions are the numbers that are read; of an update, what was there if none is."""
        is_update = node.op[0] == "update"
        first = 1 + is_update
        count = (len(node.reads) - first) // 2
        found, total = False, 0.0
        for bound in itertools.product(*(range(size) for _, size in node.sizes)):
            variables = dict(enumerate((*index, *bound)))
            numbers = [self.at(inner, _indices(entries, variables)) for inner, entries in node.reads[first:]]
            if any(np.isnan(numbers)):
                return UNKNOWN
            if numbers[:count] == numbers[count:]:
                inner, entries = node.reads[first - 1]
                total, found = total + self.at(inner, _indices(entries, variables)), True
        if is_update and not found:
            inner, entries = node.reads[0]
            return self.at(inner, _indices(entries, dict(enumerate(index))))
        return total

    def _moved(self, node: Node, index: tuple[int, ...]) -> float:
        """An element of an op along dimensions: the bound variables are found by the positions that they stand for."""
        values = [read for read in node.reads if read[0].op[0] != "position"]
        positions = [read for read in node.reads if read[0].op[0] == "position"]
        rank, number = len(node.bounds), 0
        wanted: dict[int, int] = {}
        if node.op[0] == "copy":
            wanted[0] = index[-1]
        elif node.op[0] == "concatenate":
            at = index[-1]
            while at >= node.op[1 + number]:
                at -= node.op[1 + number]
                number += 1
            wanted[number] = at
        else:
            before, after = node.op[1], node.op[2]
            flat = int(np.ravel_multi_index(index[rank - len(after) :], after)) if after else 0
            wanted = dict(enumerate(map(int, np.unravel_index(flat, before)))) if before else {}
        for bound in itertools.product(*(range(size) for _, size in node.sizes)):
            variables = dict(enumerate((*index, *bound)))
            if all(_indices(positions[at][1], variables)[0] == one for at, one in wanted.items()):
                inner, entries = values[number]
                return self.at(inner, _indices(entries, variables))
        raise AssertionError("no position")

    def _assembled(self, node: Node, index: tuple[int, ...]) -> float:
        device, *position = index
        for tile, places in reversed(node.op[1]):
            # A scalar has one place too.
            where, shape = (position, tile.shape) if position else ([0], (1,))
            start = places[device * len(where) : (device + 1) * len(where)]
            inside = [at - one for at, one in zip(where, start, strict=True)]
            if all(0 <= at < size for at, size in zip(inside, shape, strict=True)):
                return float(self.shards(tile)[device].reshape(shape)[tuple(inside)])
        return UNKNOWN


def _indices(index: Index, variables: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(offset + sum(stride * variables[variable] for stride, variable in terms) for offset, terms in index)
