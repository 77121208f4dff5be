# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates the terms by which the checker defines values to numbers, for comparisons with NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from math import nan, prod
from typing import Any

import numpy as np
import numpy.typing as npt
from check.elements import Elements

from mlir_shard.check.kernel.symbols import Symbols
from mlir_shard.check.kernel.terms import UNKNOWN, number

COMBINED: dict[str, Any] = {"add": sum, "multiply": prod, "maximum": max, "minimum": min, "and": all, "or": any}


class Evaluation:
    """Evaluates values. `leaves` maps the names of the nodes of arguments to arrays."""

    def __init__(self, tensors: Any, leaves: Mapping[Any, npt.NDArray[np.float64]]) -> None:
        self._tensors, self._leaves = tensors, leaves
        self._elements = None if isinstance(tensors, Symbols) else Elements(tensors.nodes)
        self._terms = tensors.terms if self._elements is None else self._elements.terms
        self._known: dict[int, float] = {UNKNOWN: nan}

    def shards(self, value: Any) -> list[npt.NDArray[np.float64]]:
        """Returns the tensor of each device, with NaN at unknown elements."""
        terms = self._tensors.of_each(value) if self._elements is None else self._elements.shards(value)
        return list(np.array([self.number(one) for one in terms.ravel().tolist()]).reshape(terms.shape))

    def number(self, term: int) -> float:
        """Returns the number that a term denotes."""
        if term not in self._known:
            self._known[term] = float(self._number(*self._terms.keys[term]))
        return self._known[term]

    def _number(self, name: str, *parts: Any) -> float:
        if name == "number":
            return float(number(parts[0]))
        if name == "leaf":
            of, at = parts[0], parts[-1]
            return float(self._leaves[getattr(of, "op", of)].flat[at])
        if name in COMBINED:
            return float(COMBINED[name]([self.number(one) for one, times in parts[0] for _ in range(times)]))
        if name == "negative":
            return -self.number(parts[0])
        if name == "case":
            return self.number(parts[0]) if self._holds(parts[1]) else 0.0
        if name == "update":
            base, certain, cases = parts
            found = [self.number(one) for one in certain]
            found += [self.number(one) for one, pairs in cases if self._holds(pairs)]
            return found[0] if found else self.number(base)
        op, *operands = parts
        read = [self.number(one) for one in operands]
        if op[0] == "clamped":
            return min(max(read[0], float(op[2])), float(op[3]))
        if op[0] == "stablehlo.select":
            return read[1] if read[0] else read[2]
        ends = {"GE": read[0] >= read[1], "LE": read[0] <= read[1]} if op[0] == "compare" else {}
        return ends[op[1]] if ends else reduce(lambda one, other: one - other, read)

    def _holds(self, pairs: Any) -> bool:
        return all(self.number(one) == self.number(other) for one, other in pairs)
