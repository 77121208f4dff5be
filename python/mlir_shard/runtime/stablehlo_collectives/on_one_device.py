# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a collective gives to each of several devices, all of whose operands are at hand: on one device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.runtime.collective_checks import error
from mlir_shard.runtime.stablehlo_collectives import process_groups
from mlir_shard.runtime.stablehlo_collectives.process_groups import Groups
from mlir_shard.runtime.stablehlo_collectives.processes import Processes
from mlir_shard.runtime.stablehlo_collectives.reductions import Reduction

# Of an operation and the values that a group of devices has for an operand, in its order, what each has then.
_InGroup = Callable[[Any, Sequence[Any]], Sequence[Any]]
Values = Sequence[Sequence[Any]]


def results(op: Any, devices: Sequence[int], operands: Values, processes: Processes) -> list[list[Any]]:
    """The results of a collective on each of `devices` for its operands there, at the current insertion point.

    RunError where a group has others of the devices, too.
    """
    if op.name in _NUMBERS:
        numbers = [_NUMBERS[op.name](processes, device) for device in devices]
        element_type = op.results[0].type.element_type
        return [[stablehlo.reshape(stablehlo.numbers([number], element_type), [])] for number in numbers]
    by_operand = [[of_device[index] for of_device in operands] for index in range(len(op.operands))]
    if op.name == "stablehlo.collective_permute":
        found = [_permuted(op, devices, values, processes) for values in by_operand]
    else:
        groups = _groups_among(op, process_groups.groups_of(op, processes), devices)
        found = [_in_groups(op, devices, values, groups) for values in by_operand]
    return [list(of_device) for of_device in zip(*found, strict=True)]


def _groups_among(op: Any, groups: Groups, devices: Sequence[int]) -> Groups:
    among = []
    for group in groups:
        members = [device for device in group if device in devices]
        if members and len(members) != len(group):
            raise error(f"'{op.name}' is among devices along axes that are not manual: {list(group)}", op)
        if members:
            among.append(group)
    return tuple(among)


def _in_groups(op: Any, devices: Sequence[int], values: Sequence[Any], groups: Groups) -> list[Any]:
    by_device: dict[int, Any] = {}
    for group in groups:
        of_group = [values[devices.index(device)] for device in group]
        by_device.update(zip(group, _IN_GROUPS[op.name](op, of_group), strict=True))
    # Devices in no group get zeros.
    return [
        by_device[device] if device in by_device else stablehlo.splat(value.type, 0)
        for device, value in zip(devices, values, strict=True)
    ]


def _permuted(op: Any, devices: Sequence[int], values: Sequence[Any], processes: Processes) -> list[Any]:
    pairs = process_groups.pairs_of(op, processes)
    for pair in pairs:
        if (pair[0] in devices) != (pair[1] in devices):
            raise error(f"'{op.name}' is among devices along axes that are not manual: {list(pair)}", op)
    senders = {receiver: sender for sender, receiver in pairs}
    return [
        values[devices.index(senders[device])] if device in senders else stablehlo.splat(value.type, 0)
        for device, value in zip(devices, values, strict=True)
    ]


def _all_gather(op: Any, values: Sequence[Any]) -> list[Any]:
    return [stablehlo.concatenate(values, op.attributes["all_gather_dim"].value)] * len(values)


def _all_to_all(op: Any, values: Sequence[Any]) -> list[Any]:
    split, concat = (op.attributes[f"{name}_dimension"].value for name in ("split", "concat"))
    blocks = [_blocks(value, split, len(values)) for value in values]
    return [stablehlo.concatenate([of_sender[place] for of_sender in blocks], concat) for place in range(len(values))]


def _all_reduce(op: Any, values: Sequence[Any]) -> list[Any]:
    return [_reduced(op, values)] * len(values)


def _reduce_scatter(op: Any, values: Sequence[Any]) -> list[Any]:
    return _blocks(_reduced(op, values), op.attributes["scatter_dimension"].value, len(values))


def _broadcast(op: Any, values: Sequence[Any]) -> list[Any]:
    return [values[0]] * len(values)


def _reduced(op: Any, values: Sequence[Any]) -> Any:
    reduction = Reduction(op)
    first, *rest = [
        value
        if value.type.element_type == reduction.element_type(value)
        else stablehlo.convert(value, reduction.element_type(value))
        for value in values
    ]
    for value in rest:
        first = reduction.combined(first, value)
    return first


def _blocks(value: Any, dim: int, count: int) -> list[Any]:
    shape = list(value.type.shape)
    size = shape[dim] // count
    found = []
    for place in range(count):
        starts = [place * size if one == dim else 0 for one in range(len(shape))]
        limits = [(place + 1) * size if one == dim else extent for one, extent in enumerate(shape)]
        found.append(stablehlo.slice_(value, starts, limits))
    return found


_IN_GROUPS: dict[str, _InGroup] = {
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _broadcast,
    "stablehlo.cross-replica-sum": _all_reduce,
    "stablehlo.reduce_scatter": _reduce_scatter,
}
_NUMBERS: dict[str, Callable[[Processes, int], int]] = {
    "stablehlo.partition_id": Processes.partition_of,
    "stablehlo.replica_id": Processes.replica_of,
}
COLLECTIVES = frozenset((*_IN_GROUPS, *_NUMBERS, "stablehlo.collective_permute"))
"""The operations that `results` computes."""
