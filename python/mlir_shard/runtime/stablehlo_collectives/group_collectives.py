# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives on tensors of any type, each as calls that stand for what MPI does, at the current insertion point."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.runtime import block_layout, carriers, library, mpi_abi
from mlir_shard.runtime.collective_checks import error
from mlir_shard.runtime.group_exchange import GroupExchange
from mlir_shard.runtime.listed_groups import ListedGroups
from mlir_shard.runtime.stablehlo_collectives.stand_ins import Lowering, StandIns

_tensor = host.dialect("tensor")


class GroupCollectives:
    """The collectives of one operation. RunError at the operation where MPI cannot carry its elements."""

    def __init__(self, op: Any, stand_ins: StandIns) -> None:
        self._op = op
        self._stand_ins = stand_ins

    def device(self) -> Any:
        """The number of this device, a scalar of i32."""

        type_ = stablehlo.tensor(ir.IntegerType.get_signless(32))

        def rank(_: Sequence[Any], __: GroupExchange) -> Any:
            return _tensor.FromElementsOp(type_, [library.rank()]).result

        return self._stand_ins.call(type_, [], rank)

    def of_device(self, numbers: Sequence[int]) -> Any:
        """Of numbers, one for each device, that of this one: a scalar of i32."""
        number = ir.IntegerType.get_signless(32)
        entry = stablehlo.dynamic_slice(stablehlo.numbers(numbers, number), [self.device()], [1])
        return stablehlo.reshape(entry, [])

    def all_gather(self, value: Any, groups: ListedGroups, dim: int) -> Any:
        """The tensors of the group, one behind the other along `dim`; what is missing in a short group is anything."""
        shape = list(value.type.shape)
        shape[dim] *= groups.size
        return self._moved(
            value, shape, lambda values, exchange: block_layout.join(exchange.all_gather(values[0], groups), dim)
        )

    def all_to_all(self, value: Any, groups: ListedGroups, split_dim: int, concat_dim: int) -> Any:
        """This device's block along `split_dim` of each device of the group, joined along `concat_dim`."""
        shape = list(value.type.shape)
        shape[split_dim] //= groups.size
        shape[concat_dim] *= groups.size

        def exchanged(values: Sequence[Any], exchange: GroupExchange) -> Any:
            stacked = block_layout.split(values[0], split_dim, groups.size)
            return block_layout.join(exchange.all_to_all(stacked, groups), concat_dim)

        return self._moved(value, shape, exchanged)

    def permute(self, value: Any, pairs: Sequence[tuple[int, ...]], devices: int) -> Any:
        """The tensor of the device that is paired with this one as its sender, zeros where none is."""
        targets: list[int | None] = [None] * devices
        sources: list[int | None] = [None] * devices
        for sender, receiver in pairs:
            targets[sender], sources[receiver] = receiver, sender
        shape = list(value.type.shape)
        return self._moved(value, shape, lambda values, exchange: exchange.permute(values[0], targets, sources))

    def broadcast(self, value: Any, groups: ListedGroups) -> Any:
        """The tensor of the first device of the group."""
        shape, root = list(value.type.shape), 0
        return self._moved(
            value, shape, lambda values, exchange: exchange.broadcast(values[0], groups, library.integer(root))
        )

    def all_reduce(self, value: Any, groups: ListedGroups, reduction: str) -> Any | None:
        """The reduction over the group, as `shard` names it; None where MPI has none for the elements."""
        carrier = carriers.for_reducing(value.type.element_type, reduction)
        if carrier is None:
            return None
        carried = carrier.enter(value)
        reduced = self._call(
            carried.type,
            carried,
            lambda values, exchange: exchange.all_reduce(values[0], groups, carrier.reduction),
        )
        return carrier.leave(reduced)

    def reduce_scatter(self, value: Any, groups: ListedGroups, dim: int, reduction: str) -> Any | None:
        """This device's block along `dim` of the reduction over the group; None as in `all_reduce`."""
        carrier = carriers.for_reducing(value.type.element_type, reduction)
        if carrier is None:
            return None
        carried = carrier.enter(value)
        shape = list(carried.type.shape)
        shape[dim] //= groups.size

        def reduced(values: Sequence[Any], exchange: GroupExchange) -> Any:
            stacked = block_layout.split(values[0], dim, groups.size)
            return exchange.reduce_scatter(stacked, groups, carrier.reduction)

        return carrier.leave(self._call(stablehlo.with_shape(carried.type, shape), carried, reduced))

    def _moved(self, value: Any, shape: Sequence[int], lowering: Lowering) -> Any:
        carrier = carriers.for_moving(value.type.element_type)
        if carrier is None:
            raise error(f"'{self._op.name}' of {value.type}: its elements cannot be sent", self._op)
        carried = carrier.enter(value)
        return carrier.leave(self._call(stablehlo.with_shape(carried.type, shape), carried, lowering))

    def _call(self, type_: Any, carried: Any, lowering: Lowering) -> Any:
        for one in (carried.type, type_):
            if prod(one.shape) > mpi_abi.MOST_ELEMENTS:
                most = f"MPI counts no more than {mpi_abi.MOST_ELEMENTS} elements"
                raise error(f"'{self._op.name}' of {one}: {most}", self._op)
        if 0 in type_.shape:
            return _tensor.empty(type_.shape, type_.element_type)
        return self._stand_ins.call(type_, [carried], lowering)
