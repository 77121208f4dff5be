# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of upstream's shard collectives to MPI: those that move data. Indices and slices are left to upstream.

Limitations of `convert-shard-to-mpi`, as observed by running it and in its source:
- all_to_all, broadcast, gather, recv, reduce, scatter, send and shift are not lowered.
- Elements of f16, bf16, i1 and index have no MPI datatype there: the ranks abort.
- If a collective has all axes of a grid, their order is lost, and blocks are in the order of the ranks.
- A gather of blocks of size 1 is lowered to the identity, which is invalid IR.
- Without axes all ranks take part instead of the rank alone; tensors without elements are rejected.
- A slice of a tensor without elements is rejected.
- Halos and neighbours are along one axis per dimension, and halos are sent from rank to rank sequentially.
- Dynamic sizes of halos give invalid IR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir import shard
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.runtime.collectives import buffers, groups, library, point_to_point
from mlir_shard.runtime.collectives.group_exchange import GroupExchange
from mlir_shard.runtime.collectives.groups import DeviceGroup
from mlir_shard.runtime.collectives.library import Communicators, Library
from mlir_shard.runtime.collectives.point_to_point import NAMES, Messages
from mlir_shard.runtime.collectives.stablehlo_calls import StandIns
from mlir_shard.runtime.launch.mpi_library import MpiAbi

_arith = host.dialect("arith")
_tensor = host.dialect("tensor")
_EQUAL = 0
_ALL_SLICE = "shard.all_slice"
_NEIGHBOURS = "shard.neighbors_linear_indices"
_INDICES = frozenset({"shard.process_linear_index", "shard.process_multi_index"})


def lower(module: Any, entry: Any, stand_ins: StandIns, abi: MpiAbi) -> Library:
    """Lowers the legalized collectives of a module whose entry function is `entry`.

    It also replaces the calls of `stand_ins`. Calls use the interface `abi`; returns the library, for further calls.
    """
    grids, calls = shard.grids(module), Library(module, abi)
    communicators = Communicators(module, calls)
    exchange, messages = GroupExchange(communicators, calls), Messages(calls)
    lowerings: dict[str, Callable[[Any, DeviceGroup], Any]] = {
        **{name: _within_group(lowering, exchange) for name, lowering in _IN_GROUPS.items()},
        _ALL_SLICE: lambda op, _: _tensor.empty(op.result.type.shape, op.result.type.element_type),
        "shard.recv": messages.receive,
        "shard.send": messages.send,
        "shard.shift": lambda op, group: point_to_point.shift(op, group, calls),
        point_to_point.UPDATE_HALO: lambda op, group: point_to_point.update_halo(op, group, calls),
    }
    found = operations_named(module, *_ON_GRIDS)
    _demand_ranks(found, entry, grids)
    for op in found:
        if op.name in _INDICES or (op.name == _ALL_SLICE and 0 not in op.result.type.shape):
            continue
        group = point_to_point.group_of(op, grids)
        with ir.InsertionPoint(op), op.location:
            values = (
                point_to_point.neighbours(op, group.shape)
                if op.name == _NEIGHBOURS
                else [lowerings[op.name](op, group)]
            )
        replace_with(op, values)
    stand_ins.lower(exchange)
    communicators.make(entry)
    return calls


def _demand_ranks(found: Sequence[Any], entry: Any, grids: point_to_point.Grids) -> None:
    """Makes the program abort at its start if the number of ranks is not the number of devices of its grids."""
    sizes = {prod(point_to_point.group_of(op, grids).shape): op for op in reversed(found)}
    if len(sizes) > 1:
        counts = " and ".join(map(str, sorted(sizes)))
        raise point_to_point.error(f"the grids of the program have different numbers of devices: {counts}", found[0])
    for devices, op in sizes.items():
        with ir.InsertionPoint.at_block_begin(entry.regions[0].blocks[0]), op.location:
            is_right = _arith.CmpIOp(_EQUAL, library.size(), library.integer(devices)).result
            groups.demand(is_right, op, f"the program is for {devices} ranks, the devices of its grid")


_InGroup = Callable[[Any, DeviceGroup, GroupExchange], Any]


def _within_group(lowering: _InGroup, exchange: GroupExchange) -> Callable[[Any, DeviceGroup], Any]:
    def lower_op(op: Any, group: DeviceGroup) -> Any:
        type_ = op.result.type
        if 0 in type_.shape:
            return _tensor.empty(type_.shape, type_.element_type)
        return lowering(op, group, exchange) if group.axes else op.operands[0]

    return lower_op


def _all_to_all(op: Any, group: DeviceGroup, exchange: GroupExchange) -> Any:
    stacked = buffers.split(op.operands[0], op.attributes["split_axis"].value, group.size)
    return buffers.join(exchange.all_to_all(stacked, group), op.attributes["concat_axis"].value)


def _gathered(op: Any, stacked: Any) -> Any:
    return buffers.join(stacked, op.attributes["gather_axis"].value)


def _in_blocks(op: Any, group: DeviceGroup) -> Any:
    return buffers.split(op.operands[0], op.attributes["scatter_dim"].value, group.size)


def _root(op: Any, group: DeviceGroup) -> Any:
    return index.to_integer(index.linear(groups.coordinates(op, "root", group.shape), group.sizes), 32)


_IN_GROUPS: dict[str, _InGroup] = {
    "shard.all_gather": lambda op, group, exchange: _gathered(op, exchange.all_gather(op.operands[0], group)),
    "shard.all_reduce": lambda op, group, exchange: exchange.all_reduce(op.operands[0], group, shard.reduction_of(op)),
    "shard.all_to_all": _all_to_all,
    "shard.broadcast": lambda op, group, exchange: exchange.broadcast(op.operands[0], group, _root(op, group)),
    "shard.gather": lambda op, group, exchange: _gathered(op, exchange.gather(op.operands[0], group, _root(op, group))),
    "shard.reduce": lambda op, group, exchange: exchange.reduce(
        op.operands[0], group, shard.reduction_of(op), _root(op, group)
    ),
    "shard.reduce_scatter": lambda op, group, exchange: exchange.reduce_scatter(
        _in_blocks(op, group), group, shard.reduction_of(op)
    ),
    "shard.scatter": lambda op, group, exchange: exchange.scatter(_in_blocks(op, group), group, _root(op, group)),
}
_ON_GRIDS = frozenset(
    {*_IN_GROUPS, *_INDICES, *NAMES, _ALL_SLICE, _NEIGHBOURS, point_to_point.UPDATE_HALO, "shard.shift"}
)
