# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that one device computes: under a condition on the device's number, with the results summed over all devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import attribute_columns, distinct_attributes, operations_with
from mlir_shard.ir.values import defining_op, is_token
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.resharding.operator.common_axes import is_on_one_device, mesh_of
from mlir_shard.sharding import AxisRef, AxisRefList, Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.limits import is_by_replica
from mlir_shard.transforms.reshard.single_device import program_mesh
from mlir_shard.transforms.shardings import listed_meshes


def is_this_device(device: int, *, by_replica: bool) -> Any:
    """Builds a tensor<i1> that is true on the device of this number, at the current insertion point and location."""
    number = stablehlo.device_number(by_replica=by_replica)
    return stablehlo.compare("EQ", number, stablehlo.scalar(device))


def guarded(op: Any, condition: Any) -> Any:
    """Builds a `stablehlo.if` that runs a copy of `op` if the condition is true, and else returns zeros and tokens.

    It is at the current insertion point and location. Raises PassFailure if the type of a result has no zero.
    """
    types = [result.type for result in op.results]
    guard = ir.Operation.create("stablehlo.if", types, [condition], regions=2)
    taken, other = (region.blocks.append() for region in guard.regions)
    with ir.InsertionPoint(taken):
        _return(list(op.clone().operation.results))
    with ir.InsertionPoint(other):
        _return([_nothing(type_, op) for type_ in types])
    return guard


def _nothing(type_: Any, op: Any) -> Any:
    if is_token(type_):
        return stablehlo.build("create_token", type_)
    if not (
        isinstance(type_, ir.RankedTensorType)
        and type_.has_static_shape
        and (stablehlo.has_zero(type_.element_type) or isinstance(type_.element_type, ir.IndexType))
    ):
        raise PassFailure(
            f"'{op.name}' op cannot run on a single device: the other devices need a zero of type {type_}, which "
            "requires a static shape and integer or floating-point elements",
            op,
        )
    return stablehlo.splat(type_, 0)


def _return(values: list[Any]) -> None:
    ir.Operation.create("stablehlo.return", [], values)


RESHARD = "sdy.reshard"


@register
class ResolveSingleDeviceSharding(Pass):
    """Wraps each operation with results on one device in a `stablehlo.if`, with an `sdy.all_reduce` of its results.

    Reshards to the device and from it, which `sdy-insert-explicit-reshards` inserts around the operation, are removed.
    A module without a mesh that has axes is not changed. Either the number of replicas or that of partitions has to be
    1.
    """

    name = "sdy-resolve-single-device-sharding"
    anchor = "func.func"
    summary = "Wraps operations on a single device in a conditional on the device"

    replica_count: int = option(1, "the number of replicas; if greater than 1, replica_id identifies a device")
    partition_count: int = option(1, "the number of partitions")

    def run(self, op: Any) -> bool:
        meshes = listed_meshes(op)
        name = program_mesh(meshes)
        if name is None:
            return False
        # Inner ops first, because outer ops are copied with the ops inside them.
        ops = list(reversed(_ops_on_one_device(op, meshes)))
        by_replica = bool(ops) and is_by_replica(op, self.replica_count, self.partition_count)
        for one in ops:
            device = _device(one, meshes)
            if device is not None:
                _resolve(one, device, name, meshes, by_replica=by_replica)
        return bool(ops)


def _ops_on_one_device(function: Any, meshes: Mapping[str, Mesh]) -> list[Any]:
    """Returns the operations with a sharding on a maximal mesh for one of their results, in pre-order."""
    distinct = distinct_attributes(function, sdy.SHARDING, ())
    wanted = {one for one in distinct if any(is_on_one_device(sharding, meshes) for sharding in _shardings(one))}
    if not wanted:
        return []
    ops = operations_with(function, sdy.SHARDING)
    (attributes,) = attribute_columns(ops, sdy.SHARDING)
    found = [op for op, attribute in zip(ops, attributes, strict=True) if attribute in wanted]
    return [op for op in found if not op.name.startswith("sdy.")]


def _shardings(attribute: Any) -> tuple[TensorSharding, ...]:
    value = attribute.value
    return value.shardings if isinstance(value, TensorShardingPerValue) else ()


def _device(op: Any, meshes: Mapping[str, Mesh]) -> int | None:
    """Returns the device of the results of an operation; None if no tensor result is on a single device."""
    found: int | None = None
    spread: TensorSharding | None = None
    # An op without results may have a sharding that assigns it to a device.
    for result, sharding in zip(op.results, _shardings(op.attributes[sdy.SHARDING]), strict=False):
        if not isinstance(result.type, ir.RankedTensorType):
            continue
        mesh = mesh_of(sharding, meshes)
        device = None if mesh is None else mesh.maximal_device_id
        if device is None:
            spread = spread if sharding.is_fully_replicated else sharding
        elif found is not None and device != found:
            raise PassFailure(
                f"'{op.name}' op has results on the devices {found} and {device}: all results must be on one device", op
            )
        else:
            found = device
    if found is not None and spread is not None:
        raise PassFailure(
            f"'{op.name}' op has a result on device {found} and another one sharded as {spread}: all results must "
            "be on this device, or replicated",
            op,
        )
    return found


def _resolve(op: Any, device: int, mesh_name: str, meshes: Mapping[str, Mesh], *, by_replica: bool) -> None:
    arrivals = [_arrival(operand, meshes) for operand in op.operands]
    distinct = [one for index, one in enumerate(arrivals) if one is not None and one not in arrivals[:index]]
    with ir.InsertionPoint(op), op.location:
        condition = is_this_device(device, by_replica=by_replica)
        guard = guarded(op, condition)
    clone = guard.regions[0].blocks[0].operations[0].operation
    del clone.attributes[sdy.SHARDING]
    for index, arrival in enumerate(arrivals):
        if arrival is not None:
            clone.operands[index] = arrival.operands[0]
    axes = AxisRefList(tuple(map(AxisRef, meshes[mesh_name].axis_names)))
    with ir.InsertionPoint(op):
        for result, chosen in zip(op.results, guard.results, strict=True):
            _replace(result, _summed(chosen, axes, mesh_name), mesh_name)
    op.erase()
    for arrival in distinct:
        if not list(arrival.results[0].uses):
            arrival.erase()


def _arrival(value: Any, meshes: Mapping[str, Mesh]) -> Any | None:
    """Returns the reshard that moves a value to one device; None if the value has another definition."""
    reshard = defining_op(value, RESHARD)
    is_arrival = reshard is not None and is_on_one_device(reshard.attributes["sharding"].value, meshes)
    return reshard if is_arrival else None


def _summed(value: Any, axes: AxisRefList, mesh_name: str) -> Any:
    """Returns the sum of a tensor over all devices; other values are returned unchanged."""
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    attributes = {
        "reduction_axes": sdy.attribute(axes),
        "out_sharding": sdy.attribute(TensorSharding.fully_closed(value.type.rank, mesh_name)),
    }
    location = value.owner.operation.location
    return ir.Operation.create("sdy.all_reduce", [value.type], [value], attributes, loc=location).results[0]


def _replace(result: Any, value: Any, mesh_name: str) -> None:
    """Replaces a result by a value, and also its reshards to the sharding that the value has already."""
    departures = [use.owner.operation for use in result.uses if use.owner.operation.name == RESHARD]
    for reshard in departures:
        sharding = reshard.attributes["sharding"].value
        if sharding == TensorSharding.fully_closed(sharding.rank, mesh_name):
            reshard.results[0].replace_all_uses_with(value)
            reshard.erase()
    result.replace_all_uses_with(value)
