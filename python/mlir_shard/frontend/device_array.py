# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A result of a compiled program that stays on the devices until it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.execution import assemble
from mlir_shard.runtime.program import Devices, Held, Port


class DeviceArray(NDArrayOperatorsMixin):
    """A global tensor whose shards are on the devices of a compiled program.

    It is converted to a NumPy array when one is needed; the conversion reads all shards, once. As an argument of the
    program that returned it, it stays on the devices if the argument has the same sharding.
    """

    def __init__(self, port: Port, devices: Devices, held: Held) -> None:
        self._port, self._devices = port, devices
        self._held: Held | None = held
        self._array: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The global shape."""
        return self._port.spec.shape

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the global tensor."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return arrays.numpy_dtype(self._port.spec.element_type)

    @property
    def sharding(self) -> str:
        """The sharding as text; empty for a replicated tensor."""
        return self._port.sharding

    @property
    def is_deleted(self) -> bool:
        """Whether the tensor has been donated to a call or deleted before it was read."""
        return self._held is None and self._array is None

    def delete(self) -> None:
        """Frees the shards on the devices."""
        self._held = None

    def held_on(self, devices: Devices | None, port: Port) -> Held | None:
        """Returns the tensor on the devices if these are `devices` and its sharding is that of `port`, else None."""
        mine = self._port
        is_there = devices is self._devices and (mine.spec, mine.local, mine.boxes) == (
            port.spec,
            port.local,
            port.boxes,
        )
        return self._held if is_there else None

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Returns the global array, which is read-only unless it is copied.

        Raises:
            RunError: the tensor was donated, the devices have ended, or they hold different copies of a shard.
        """
        if self._array is None:
            if self._held is None:
                raise RunError(
                    f"{self._port.name} of the program was donated to a later call and is no longer available"
                )
            (blocks,) = self._devices.fetch([self._held])
            result = assemble(self._port, blocks)
            if result.disagreement:
                raise RunError(result.disagreement)
            self._array = result.array
            self._array.flags.writeable = False
        changed = self._array.astype(dtype) if dtype is not None and dtype != self._array.dtype else self._array
        return changed.copy() if copy and changed is self._array else changed

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(one, DeviceArray) for one in kwargs.get("out", ())):
            return NotImplemented
        given = (np.asarray(one) if isinstance(one, DeviceArray) else one for one in inputs)
        return getattr(ufunc, method)(*given, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Returns a method or attribute of the global array."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(np.asarray(self), name)

    def __getitem__(self, index: Any) -> Any:
        return np.asarray(self)[index]

    def __len__(self) -> int:
        return len(np.asarray(self))

    def __iter__(self) -> Any:
        return iter(np.asarray(self))

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __index__(self) -> int:
        return np.asarray(self).__index__()

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __format__(self, spec: str) -> str:
        return format(np.asarray(self)[()], spec) if spec else str(self)

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __repr__(self) -> str:
        where = f"sharded as {self.sharding}" if self.sharding else "replicated"
        return f"<DeviceArray {self._port.spec} {where}>"
