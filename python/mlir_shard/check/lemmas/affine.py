# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meaning of tensors of any size, by all lemmas, and the integers that devices compute from their positions.

An integer that is affine in the position on the mesh is an index. Any other one is a table with an entry for each
device: a digit besides the mesh axes. Collectives that move such a value along an axis are not certified.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mlir_shard.check.kernel.indices import Entry
from mlir_shard.check.kernel.kinds import width
from mlir_shard.check.lemmas import index_arithmetic, tiles
from mlir_shard.check.lemmas.lemmas import Lemmas
from mlir_shard.check.lemmas.values import Value
from mlir_shard.deferred import numpy as np

_BY_DEVICE = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "floor_divide",
    "remainder": "mod",
    "maximum": "maximum",
    "minimum": "minimum",
}
_HOLDS: dict[str, Any] = {
    "is NE 0": lambda one: one != 0,
    "is EQ 0": lambda one: one == 0,
    "is positive": lambda one: one > 0,
}


class Affine(Lemmas):
    """All lemmas, over the nodes of one check."""

    def at(self, op: Any) -> None:
        self.nodes.place = op

    def computed(self, op: tuple[Any, ...], name: str, values: Sequence[Value], element: str) -> Value:
        found = index_arithmetic.computed(self, name, values, element)
        if found is None and not values[0].dims:
            entries = self._by_device(index_arithmetic.NAMES.get(name, name), values)
            found = None if entries is None else self.index(element, self.entry_of_devices(entries), ())
        return found or self.pointwise(op, values)

    def _by_device(self, name: str, values: Sequence[Value]) -> Any:
        """Returns the result of an integer op on each device; None if the op or an operand is not known there."""
        entries = [self.entry(value) for value in values] if name in _BY_DEVICE else [None]
        if None in entries:
            return None
        left, right = (self.mesh.by_device(entry) for entry in entries if entry is not None)
        if name in ("divide", "remainder") and ((left < 0).any() or (right <= 0).any()):
            return None
        return getattr(np, _BY_DEVICE[name])(left, right)

    def compared(self, op: tuple[Any, ...], left: Value, right: Value) -> Value:
        if "UNSIGNED" not in op or all(map(self.is_natural, (left, right))):
            found = index_arithmetic.compared(self, op[1], left, right)
            if found is not None:
                return found
        return self.pointwise(op, (left, right))

    def selected(self, condition: Value, then: Value, otherwise: Value) -> Value:
        return index_arithmetic.selected(self, condition, then, otherwise)

    def received(self, value: Value, senders: Any) -> Value:
        found = tiles.received(self, value, senders)
        return self.nodes.value(found.node, found.index, found.dims) if (senders >= 0).all() else found

    def merged(self, chosen: Any, first: Value, second: Value) -> Value:
        return tiles.merged(self, chosen, first, second)

    def assembled(self, base: Value, tile: Value, places: Any) -> Value:
        return tiles.assembled(self, base, tile, places)

    def box(self, value: Value, starts: Sequence[int], sizes: Sequence[int]) -> Value | None:
        return tiles.covered(self, value, starts, sizes)

    def whole(self, value: Value) -> Value:
        if not isinstance(value, Value) or value.node.op[0] != "assembly":
            return value
        return tiles.covered(self, value, [0] * value.rank, value.shape) or value

    def is_tiles(self, *values: Value) -> bool:
        return any(value.node.op[0] == "assembly" for value in values)

    def entry(self, value: Value) -> Entry | None:
        if value.node.op[0] != "index" or any(value.dims) or _is_along_positions(value):
            return None
        return value.index[0]

    def in_loops(self, value: Value) -> Entry | None:
        if value.node.op[0] != "index" or any(len(of) > 1 for of in value.dims):
            return None
        loops = [loop for loop, of in enumerate(value.dims) for _ in of]
        offset, terms = value.index[0]
        return offset, tuple((stride, loops[one] if one >= 0 else one) for stride, one in terms)

    def looked_up(self, value: Value) -> Value:
        """Returns an entry of a table of integers at an index of the device as an index; other values are unchanged."""
        if value.node.op[0] != "table" or any(value.dims) or _is_along_positions(value):
            return value
        element = str(value.node.op[1].type.element_type)
        if not width(element):
            return value
        found = np.array(value.node.op[1])[tuple(self.mesh.by_device(entry) for entry in value.index)]
        number = self.index(element, self.entry_of_devices(found.astype(np.int64)), ())
        return Value(number.node, number.index, value.dims)

    def truth(self, value: Value) -> Any:
        if value.node.op[0] == "constant" and value.node.op[2] in ("True", "False"):
            return np.full(self.mesh.devices, value.node.op[2] == "True")
        if value.node.op[0] not in _HOLDS or _is_along_positions(value):
            return None
        return _HOLDS[value.node.op[0]](self.mesh.by_device(value.index[0]))

    def differs(self, value: Value, axes: Collection[int] | None = None) -> bool:
        devices = {-1 - one for _, terms in value.index for _, one in terms if one < 0}
        return bool(devices if axes is None else devices & set(axes))


def _is_along_positions(value: Value) -> bool:
    """Returns whether a value may depend on the position in the tensor."""
    return any(variable >= 0 for _, terms in value.index for _, variable in terms)
