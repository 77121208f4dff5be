# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The devices of a local module, their numbers in StableHLO, and the groups of devices in a collective.

Devices are numbered by replica, and by partition in each replica.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import shard, stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.replica_groups import REPLICA_GROUPS, axes_of, lists_of, mesh_or_ref_of
from mlir_shard.runtime.collectives.point_to_point import error
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.layout import device_groups

_DEVICES = "mlir_shard.devices"
# The attributes of frontends and XLA for these numbers.
_REPLICAS = "mhlo.num_replicas"
_PARTITIONS = "mhlo.num_partitions"


def set_devices(module: Any, devices: int) -> None:
    """Records in a local module the number of its devices."""
    number = ir.IntegerType.get_signless(64, module.context)
    module.operation.attributes[_DEVICES] = ir.IntegerAttr.get(number, devices)


@dataclass(frozen=True, slots=True)
class Processes:
    """The numbers of devices, replicas and partitions; device r · partitions + p is partition p of replica r.

    If a module lacks the numbers of replicas and partitions, or their product is not its number of devices, both are
    None. Both ids of a device, of its replica and of its partition, are then its number, as with the engine `pjrt`.
    """

    devices: int
    replicas: int | None = None
    partitions: int | None = None

    def replica_of(self, device: int) -> int:
        """Returns the number of the replica of a device."""
        return device // (self.partitions or 1)

    def partition_of(self, device: int) -> int:
        """Returns the number of a device in its replica."""
        return device % (self.partitions or self.devices)

    @staticmethod
    def of(module: Any, op: Any) -> Processes:
        """Returns the processes of a module; raises RunError at `op` if the number of devices is unknown."""
        said = _said(module)
        devices = _number(module, _DEVICES) or _size_of_grids(module) or (said.devices if said else None)
        if devices is None:
            right = f"set '{_REPLICAS}' and '{_PARTITIONS}' on the module"
            raise error(f"'{op.name}': the number of devices of the program is unknown; {right}", op)
        return Processes.among(devices, module)

    @staticmethod
    def among(devices: int, module: Any) -> Processes:
        """Returns the processes of a module for this number of devices."""
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


Groups = tuple[tuple[int, ...], ...]
PAIRS = "source_target_pairs"
_CHANNEL = "channel_handle"
_GLOBAL_IDS = "use_global_device_ids"
# A frontend may leave the type of a channel unset (0).
_BETWEEN_DEVICES = (0, 1)
_OF_ONE_KIND = frozenset({"stablehlo.all_to_all", "stablehlo.collective_broadcast", "stablehlo.collective_permute"})


class Strategy(Enum):
    """The meaning of the numbers in replica groups."""

    CROSS_REPLICA = auto()
    CROSS_PARTITION = auto()
    CROSS_REPLICA_AND_PARTITION = auto()
    FLATTENED_IDS = auto()


def groups_of(op: Any, processes: Processes) -> Groups:
    """Returns the groups of devices of a collective; raises RunError if they are not groups of the program's devices.

    Only a `collective_broadcast` may leave devices out of all groups.
    """
    ref = mesh_or_ref_of(op)
    if ref is not None:
        return _along_axes(op, ref, processes)
    groups = _of_devices(op, lists_of(op), processes)
    left = processes.devices - sum(map(len, groups))
    if left and op.name != "stablehlo.collective_broadcast":
        listed = {device for group in groups for device in group}
        missing = [device for device in range(processes.devices) if device not in listed]
        raise error(f"'{op.name}': device {missing[0]} of {processes.devices} is not in any replica group", op)
    return groups


def pairs_of(op: Any, processes: Processes) -> Groups:
    """Returns the pairs (sender, receiver) of a `collective_permute`; raises RunError as `groups_of` does."""
    numbers = elements(op.attributes[PAIRS])
    senders, receivers = numbers[::2], numbers[1::2]
    ids = _ids(op, numbers, processes)
    for ends, does in ((senders, "sends"), (receivers, "receives")):
        _check_numbers(op, ends, ids.count, f"{does} more than once in its {PAIRS}")
    pairs = zip(senders, receivers, strict=True)
    return tuple((ids.device(a, other), ids.device(b, other)) for a, b in pairs for other in range(ids.others))


def strategy_of(op: Any) -> Strategy:
    """Returns the strategy that a collective's channel implies; raises RunError if it is to or from a host."""
    channel = _channel(op)
    if op.name in _OF_ONE_KIND:
        return Strategy.CROSS_PARTITION if channel > 0 else Strategy.CROSS_REPLICA
    if _GLOBAL_IDS in op.attributes:
        return Strategy.FLATTENED_IDS
    return Strategy.CROSS_REPLICA_AND_PARTITION if channel > 0 else Strategy.CROSS_REPLICA


def _channel(op: Any) -> int:
    """Returns the number of the channel, or 0 without a channel; raises RunError if it is not between devices."""
    if _CHANNEL not in op.attributes:
        return 0
    number, type_ = stablehlo.channel_numbers(op.attributes[_CHANNEL])
    if type_ not in _BETWEEN_DEVICES:
        wrong = f"its {_CHANNEL} is {op.attributes[_CHANNEL]}"
        raise error(f"'{op.name}': {wrong}, but channels between devices have type 1", op)
    return number


@dataclass(frozen=True, slots=True)
class _Ids:
    """The meaning of the numbers in a collective: each is one of `count` and stands for `others` devices."""

    count: int
    others: int
    device: Callable[[int, int], int]


def _ids(op: Any, numbers: Sequence[int], processes: Processes) -> _Ids:
    strategy, replicas, partitions = strategy_of(op), processes.replicas, processes.partitions
    of_devices = _Ids(processes.devices, 1, lambda number, _: number)
    if strategy is Strategy.FLATTENED_IDS or replicas is None or partitions is None:
        return of_devices
    if strategy is Strategy.CROSS_PARTITION:
        ids = _Ids(partitions, replicas, lambda number, replica: replica * partitions + number)
    else:
        ids = _Ids(replicas, partitions, lambda number, partition: number * partitions + partition)
    return ids if max(numbers, default=0) < ids.count else of_devices


def _of_devices(op: Any, lists: Groups, processes: Processes) -> Groups:
    numbers = [number for numbers in lists for number in numbers]
    ids = _ids(op, numbers, processes)
    _check_numbers(op, numbers, ids.count, "is in its replica groups more than once")
    # Empty replica groups mean one group of all.
    lists = lists if numbers else (tuple(range(ids.count)),)
    if strategy_of(op) is Strategy.CROSS_REPLICA_AND_PARTITION:
        # Partition 0 of each replica of the group is first.
        return tuple(
            tuple(ids.device(number, other) for other in range(ids.others) for number in group) for group in lists
        )
    return tuple(tuple(ids.device(number, other) for number in group) for group in lists for other in range(ids.others))


def _check_numbers(op: Any, numbers: Sequence[int], count: int, repeated: str) -> None:
    for number, times in Counter(numbers).items():
        if not 0 <= number < count:
            raise error(
                f"'{op.name}' refers to device {number}, but the devices of the program are 0 to {count - 1}", op
            )
        if times > 1:
            raise error(f"'{op.name}': device {number} {repeated}", op)


def _along_axes(op: Any, ref: str | Mesh, processes: Processes) -> Groups:
    _channel(op)
    mesh = ref if isinstance(ref, Mesh) else _mesh(op, ref)
    axes = axes_of(op)
    for axis in axes:
        if axis.name not in mesh.axis_names:
            known = ", ".join(f'"{name}"' for name in mesh.axis_names)
            raise error(f"'{op.name}' is along the axis {axis}, but the mesh has the axes {known}", op)
    if mesh.total_size != processes.devices:
        wrong = f"is on a mesh of {mesh.total_size} devices, but the program is for {processes.devices}"
        raise error(f"'{op.name}' {wrong}: {mesh}", op)
    return device_groups(axes, mesh)


def _mesh(op: Any, name: str) -> Mesh:
    """Returns the mesh with a name, or the mesh of the grid made from it; raises RunError if neither exists."""
    module = sdy.enclosing_module(op)
    meshes = sdy.meshes(module)
    for one in module.regions[0].blocks[0].operations:
        if one.operation.name == "shard.grid" and shard.AXIS_NAMES in one.operation.attributes:
            names = [axis.value for axis in one.operation.attributes[shard.AXIS_NAMES]]
            meshes[one.operation.attributes["sym_name"].value] = Mesh(zip(names, shard.grid_shape(one), strict=True))
    if name not in meshes:
        raise error(f"'{op.name}' has {REPLICA_GROUPS} along axes of @{name}, an undefined mesh", op)
    return meshes[name]
