# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The devices a local module is for, and how StableHLO numbers them: by replica and by partition in each replica."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard.dialects import shard
from mlir_shard.host import ir
from mlir_shard.runtime.collective_checks import error

_DEVICES = "mlir_shard.devices"
# Where frontends and XLA say so.
_REPLICAS, _PARTITIONS = "mhlo.num_replicas", "mhlo.num_partitions"


def set_devices(module: Any, devices: int) -> None:
    """Has a local module say for how many devices it is."""
    number = ir.IntegerType.get_signless(64, module.context)
    module.operation.attributes[_DEVICES] = ir.IntegerAttr.get(number, devices)


@dataclass(frozen=True, slots=True)
class Processes:
    """How many there are of each; device r · partitions + p is partition p of replica r.

    A module that does not say, or whose numbers do not make its devices, may call a device by either name: its replica
    and its partition have the number of the device, as with the engine `pjrt`. Then both numbers here are None.
    """

    devices: int
    replicas: int | None = None
    partitions: int | None = None

    def replica_of(self, device: int) -> int:
        """The number of the replica that a device is of."""
        return device // (self.partitions or 1)

    def partition_of(self, device: int) -> int:
        """The number of a device in its replica."""
        return device % (self.partitions or self.devices)

    @staticmethod
    def of(module: Any, op: Any) -> Processes:
        """Those of a module; RunError at `op`, which asks, where it is not known how many devices there are."""
        said = _said(module)
        devices = _number(module, _DEVICES) or _size_of_grids(module) or (said.devices if said else None)
        if devices is None:
            right = f"give the module '{_REPLICAS}' and '{_PARTITIONS}'"
            raise error(f"'{op.name}': it is not known for how many devices the program is; {right}", op)
        return Processes.among(devices, module)

    @staticmethod
    def among(devices: int, module: Any) -> Processes:
        """Those of a module that is for so many devices."""
        said = _said(module)
        return said if said is not None and said.devices == devices else Processes(devices)


def _said(module: Any) -> Processes | None:
    replicas, partitions = (_number(module, name) for name in (_REPLICAS, _PARTITIONS))
    return Processes(replicas * partitions, replicas, partitions) if replicas and partitions else None


def _number(module: Any, name: str) -> int | None:
    attributes = module.operation.attributes
    if name not in attributes or not isinstance(attributes[name], ir.IntegerAttr):
        return None
    number: int = attributes[name].value
    return number


def _size_of_grids(module: Any) -> int | None:
    sizes = {prod(shard.grid_shape(op)) for op in module.body.operations if op.operation.name == "shard.grid"}
    return sizes.pop() if len(sizes) == 1 else None
