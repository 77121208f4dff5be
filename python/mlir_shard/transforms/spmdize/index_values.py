# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What index arithmetic of a local program comes to on each device: whom a device sends to, or receives from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mlir_shard.host import ir

Numbers = npt.NDArray[np.int64]

_ARITHMETIC: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "arith.addi": np.add,
    "arith.divsi": np.floor_divide,
    "arith.divui": np.floor_divide,
    "arith.muli": np.multiply,
    "arith.remsi": np.remainder,
    "arith.remui": np.remainder,
    "arith.subi": np.subtract,
}
_CASTS = frozenset({"arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci"})


class IndexValues:
    """Evaluates index values on every device of one grid of `shape`, devices in row-major order."""

    def __init__(self, shape: Sequence[int]) -> None:
        self._shape = tuple(shape)
        self._places = np.indices(self._shape, np.int64).reshape(len(self._shape), -1)
        self._known: dict[Any, Numbers | None] = {}

    def of(self, value: Any) -> Numbers | None:
        """The value on each device; None where it depends on more than the position of the device."""
        if value not in self._known:
            self._known[value] = self._evaluate(value)
        return self._known[value]

    def _evaluate(self, value: Any) -> Numbers | None:
        if isinstance(value.owner, ir.Block):
            return None
        op = value.owner.operation
        if op.name == "shard.process_multi_index":
            axes = list(op.attributes["axes"]) or range(len(self._shape))
            number = next(number for number, result in enumerate(op.results) if result == value)
            return self._places[axes[number]]
        if op.name == "shard.process_linear_index":
            return np.arange(self._places.shape[1], dtype=np.int64)
        if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
            return np.full(self._places.shape[1], op.attributes["value"].value, np.int64)
        if op.name == "tensor.extract":
            return self._entry(op)
        operands = [self.of(operand) for operand in op.operands] if self._is_arithmetic(op) else [None]
        if any(operand is None for operand in operands):
            return None
        numbers = [operand for operand in operands if operand is not None]
        return numbers[0] if op.name in _CASTS else _ARITHMETIC[op.name](numbers[0], numbers[1])

    def _is_arithmetic(self, op: Any) -> bool:
        return op.name in _CASTS or op.name in _ARITHMETIC

    def _entry(self, op: Any) -> Numbers | None:
        """An element of a constant table, of which a slice may have been taken."""
        table, *positions = op.operands
        place = self.of(positions[0]) if len(positions) == 1 else None
        source = _defining(table)
        if source is not None and source.name == "tensor.extract_slice" and len(source.operands) == 2:
            offset = self.of(source.operands[1])
            place = None if place is None or offset is None else place + offset
            source = _defining(source.operands[0])
        if place is None or source is None or source.name != "arith.constant":
            return None
        entries: Numbers = np.array(source.attributes["value"]).astype(np.int64)
        return entries[place]


def _defining(value: Any) -> Any | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation
