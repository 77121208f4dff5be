# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The devices of a mesh, and integers that each of them has."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry, Terms
from mlir_shard.deferred import numpy as np


class Mesh:
    """The positions of devices, which indices have as the variables -1, -2 and so on.

    Attributes:
        axes: the sizes of the mesh axes, major to minor; sizes: with those of tables, which are variables too.
        devices: how many there are.
    """

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes, self.sizes, self.devices = tuple(axes), list(axes), prod(axes)
        self._tables: list[Any] = []
        self._numbers: dict[bytes, int] = {}

    def table(self, entries: Any) -> int:
        """The variable that is a number, from 0 on, of each device."""
        key = entries.tobytes()
        if key not in self._numbers:
            self._numbers[key] = -1 - len(self.sizes)
            self.sizes.append(int(entries.max()) + 1)
            self._tables.append(entries)
        return self._numbers[key]

    def places(self) -> Any:
        """The position along each mesh axis of each device, as rows."""
        return np.indices(self.axes).reshape(len(self.axes), -1)

    def along(self, axes: Sequence[int], unit: int) -> Terms:
        """The position along mesh axes, major to minor, as terms of which the minor one has the stride `unit`."""
        found = list[tuple[int, int]]()
        for axis in reversed(axes):
            found.append((unit, -1 - axis))
            unit *= self.axes[axis]
        return tuple(found[::-1])

    def by_device(self, entry: Entry) -> Any:
        """What the mesh axes and tables add to an index, for each device."""
        places, total = self.places(), np.full(self.devices, entry[0], np.int64)
        for stride, variable in entry[1]:
            axis = -1 - variable
            if axis >= 0:
                known = len(places)
                total = total + stride * (places[axis] if axis < known else self._tables[axis - known])
        return total
