# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The devices of a mesh, and integers for each device."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry, Terms
from mlir_shard.deferred import numpy as np


class Mesh:
    """The positions of devices, which are the variables -1, -2 and so on of indices.

    Attributes:
        axes: the sizes of the mesh axes, major to minor; sizes: these, then those of tables, which are variables too.
        devices: the number of devices.
    """

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes, self.sizes, self.devices = tuple(axes), list(axes), prod(axes)
        self._tables: list[Any] = []
        self._numbers: dict[bytes, int] = {}

    def table(self, entries: Any) -> int:
        """Returns the variable of a table with a number, from 0 on, for each device."""
        key = entries.tobytes()
        if key not in self._numbers:
            self._numbers[key] = -1 - len(self.sizes)
            self.sizes.append(int(entries.max()) + 1)
            self._tables.append(entries)
        return self._numbers[key]

    def places(self) -> Any:
        """Returns the position along each mesh axis of each device, as rows."""
        return np.indices(self.axes).reshape(len(self.axes), -1)

    def along(self, axes: Sequence[int], unit: int) -> Terms:
        """Returns the position along mesh axes, major to minor, as terms; `unit` is the stride of the minor one."""
        found = list[tuple[int, int]]()
        for axis in reversed(axes):
            found.append((unit, -1 - axis))
            unit *= self.axes[axis]
        return tuple(found[::-1])

    def by_device(self, entry: Entry) -> Any:
        """Returns the offset of an index plus its terms of mesh axes and tables, for each device."""
        places, total = self.places(), np.full(self.devices, entry[0], np.int64)
        for stride, variable in entry[1]:
            axis = -1 - variable
            if axis >= 0:
                known = len(places)
                total = total + stride * (places[axis] if axis < known else self._tables[axis - known])
        return total
