# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Legalization of StableHLO's collectives and device ids to placeholder calls, which are lowered to MPI later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.runtime.collectives import stablehlo_devices
from mlir_shard.runtime.collectives.groups import ListedGroups
from mlir_shard.runtime.collectives.point_to_point import check_type, error
from mlir_shard.runtime.collectives.stablehlo_calls import GroupCollectives, Reduction, StandIns
from mlir_shard.runtime.collectives.stablehlo_devices import Processes


def legalize(module: Any) -> StandIns:
    """Rewrites the collectives of a local module; raises RunError at one that cannot be lowered to MPI."""
    stand_ins = StandIns(module)
    for op in operations_named(module, *_LEGALIZATIONS):
        for value in (*op.operands, *op.results):
            check_type(op, value.type)
        processes = Processes.of(module, op)
        with ir.InsertionPoint(op), op.location:
            values = _LEGALIZATIONS[op.name](op, processes, GroupCollectives(op, stand_ins))
        replace_with(op, values)
    return stand_ins


def _all_gather(op: Any, processes: Processes, devices: GroupCollectives) -> list[Any]:
    groups, dim = _even_groups(op, processes), op.attributes["all_gather_dim"].value
    for value, result in zip(op.operands, op.results, strict=True):
        _check_size(op, value.type.shape[dim] * groups.size, result.type.shape[dim], groups, result)
    return [value if groups.size == 1 else devices.all_gather(value, groups, dim) for value in op.operands]


def _all_to_all(op: Any, processes: Processes, devices: GroupCollectives) -> list[Any]:
    groups, count = _even_groups(op, processes), op.attributes["split_count"].value
    split_dim, concat_dim = (op.attributes[f"{name}_dimension"].value for name in ("split", "concat"))
    if count != groups.size:
        raise error(f"'{op.name}' has a split count of {count}, but groups of {groups.size} devices", op)
    return [
        value if groups.size == 1 else devices.all_to_all(value, groups, split_dim, concat_dim) for value in op.operands
    ]


def _all_reduce(op: Any, processes: Processes, devices: GroupCollectives) -> list[Any]:
    groups, reduction = _groups(op, processes), Reduction(op)
    values = [reduction.promoted(value) for value in op.operands]
    return [value if groups.size == 1 else reduction.over_groups(value, groups, devices) for value in values]


def _reduce_scatter(op: Any, processes: Processes, devices: GroupCollectives) -> list[Any]:
    groups, reduction = _even_groups(op, processes), Reduction(op)
    (operand,), (result,) = op.operands, op.results
    dim = op.attributes["scatter_dimension"].value
    _check_size(op, operand.type.shape[dim], result.type.shape[dim] * groups.size, groups, result)
    value = reduction.promoted(operand)
    return [value if groups.size == 1 else reduction.scattered(value, groups, dim, devices)]


def _permute(op: Any, processes: Processes, devices: GroupCollectives) -> list[Any]:
    pairs = stablehlo_devices.pairs_of(op, processes)
    return [devices.permute(value, pairs, processes.devices) for value in op.operands]


def _broadcast(op: Any, processes: Processes, devices: GroupCollectives) -> list[Any]:
    groups = _groups(op, processes)
    values = [value if groups.size == 1 else devices.broadcast(value, groups) for value in op.operands]
    members = {device for group in groups.groups for device in group}
    if len(members) == processes.devices:
        return values
    # Devices in no group receive zeros.
    number = devices.of_device([int(device in members) for device in range(processes.devices)])
    is_member = stablehlo.convert(number, stablehlo.boolean())
    return [stablehlo.select(is_member, value, stablehlo.splat(value.type, 0)) for value in values]


def _number(op: Any, processes: Processes, devices: GroupCollectives) -> list[Any]:
    number_of = processes.replica_of if op.name == "stablehlo.replica_id" else processes.partition_of
    numbers = list(map(number_of, range(processes.devices)))
    return [stablehlo.convert(devices.of_device(numbers), op.results[0].type.element_type)]


def _groups(op: Any, processes: Processes) -> ListedGroups:
    return ListedGroups(stablehlo_devices.groups_of(op, processes), processes.devices)


def _even_groups(op: Any, processes: Processes) -> ListedGroups:
    groups = _groups(op, processes)
    if not groups.is_even:
        sizes = " and ".join(map(str, sorted(set(groups.sizes()))))
        raise error(f"'{op.name}' has groups of {sizes} devices: its result type requires groups of equal size", op)
    return groups


def _check_size(op: Any, size: int, right: int, groups: ListedGroups, result: Any) -> None:
    if size != right:
        wrong = f"has result type {result.type} for {op.operands[0].type}"
        raise error(f"'{op.name}' {wrong}, which does not match groups of {groups.size} devices", op)


_LEGALIZATIONS: dict[str, Callable[[Any, Processes, GroupCollectives], list[Any]]] = {
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _broadcast,
    "stablehlo.collective_permute": _permute,
    "stablehlo.cross-replica-sum": _all_reduce,
    "stablehlo.partition_id": _number,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.replica_id": _number,
}
