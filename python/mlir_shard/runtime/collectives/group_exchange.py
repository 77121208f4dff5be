# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives among the devices of a group as MPI has them: on blocks along a first dimension.

Each value is built at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.runtime.collectives import buffers
from mlir_shard.runtime.collectives.groups import of_own_rank
from mlir_shard.runtime.collectives.library import STATUS_IGNORE, WORLD, Communicators, Group, Library
from mlir_shard.runtime.launch import mpi_library

_arith = host.dialect("arith")
# Shifts and halos have those before.
_PERMUTATION_TAG = 3


class GroupExchange:
    """The collectives of one module."""

    def __init__(self, communicators: Communicators, calls: Library) -> None:
        self._communicators = communicators
        self._calls = calls

    def all_gather(self, value: Any, group: Group) -> Any:
        """The tensors of the group, stacked, on each of its devices; behind those of a short group may be anything."""
        type_ = shard.resized(value.type, [group.size, *value.type.shape])
        memory = buffers.room(type_)
        self._call("MPI_Allgather", buffers.read(value), memory, value.type, group)
        return buffers.tensor(memory, type_)

    def all_to_all(self, stacked: Any, group: Group) -> Any:
        """Of each device's blocks the one with this device's number, stacked: each block moves once."""
        block = shard.resized(stacked.type, list(stacked.type.shape)[1:])
        memory = buffers.room(stacked.type)
        self._call("MPI_Alltoall", buffers.read(stacked), memory, block, group)
        return buffers.tensor(memory, stacked.type)

    def gather(self, value: Any, group: Group, root: Any) -> Any:
        """The tensors of the group, stacked, on its device number `root`; anything on the others."""
        type_ = shard.resized(value.type, [group.size, *value.type.shape])
        memory = buffers.room(type_)
        self._call("MPI_Gather", buffers.read(value), memory, value.type, group, root)
        return buffers.tensor(memory, type_)

    def scatter(self, stacked: Any, group: Group, root: Any) -> Any:
        """The block with this device's number of those that device number `root` has stacked."""
        block = shard.resized(stacked.type, list(stacked.type.shape)[1:])
        memory = buffers.room(block)
        self._call("MPI_Scatter", buffers.read(stacked), memory, block, group, root)
        return buffers.tensor(memory, block)

    def broadcast(self, value: Any, group: Group, root: Any) -> Any:
        """The tensor of device number `root`."""
        memory = buffers.copy(value)
        count, datatype = buffers.count_and_datatype(value.type)
        self._calls.call("MPI_Bcast", [buffers.pointer(memory), count, datatype, root, self._communicators.of(group)])
        return buffers.tensor(memory, value.type)

    def all_reduce(self, value: Any, group: Group, reduction: str) -> Any:
        """The reduction over the group, on each of its devices."""
        return self._reduce("MPI_Allreduce", value, value.type, group, reduction)

    def reduce_scatter(self, stacked: Any, group: Group, reduction: str) -> Any:
        """The reduction over the group of the blocks with this device's number."""
        block = shard.resized(stacked.type, list(stacked.type.shape)[1:])
        return self._reduce("MPI_Reduce_scatter_block", stacked, block, group, reduction)

    def reduce(self, value: Any, group: Group, reduction: str, root: Any) -> Any:
        """The reduction over the group on its device number `root`; anything on the others."""
        return self._reduce("MPI_Reduce", value, value.type, group, reduction, root)

    def permute(self, value: Any, targets: Sequence[int | None], sources: Sequence[int | None]) -> Any:
        """The tensor of the source of this rank, zeros where that is nobody.

        targets, sources: for each rank the one it sends to and the one it receives from, None for nobody.
        """
        memory = buffers.copy(_zeros(value.type)) if None in sources else buffers.room(value.type)
        sent, received = (buffers.pointer(one) for one in (buffers.read(value), memory))
        target, source = map(self._rank_of_own, (targets, sources))
        block = buffers.count_and_datatype(value.type)
        ends = [sent, *block, target, _PERMUTATION_TAG, received, *block, source, _PERMUTATION_TAG]
        self._calls.call("MPI_Sendrecv", [*ends, WORLD, STATUS_IGNORE])
        return buffers.tensor(memory, value.type)

    def _rank_of_own(self, ranks: Sequence[int | None]) -> Any:
        nobody = self._calls.abi.proc_null
        return of_own_rank([nobody if rank is None else rank for rank in ranks])

    def _reduce(self, name: str, value: Any, type_: Any, group: Group, reduction: str, *root: Any) -> Any:
        memory = buffers.room(type_)
        pointers = [buffers.pointer(one) for one in (buffers.read(value), memory)]
        count, datatype = prod(type_.shape), mpi_library.DATATYPES[str(type_.element_type)]
        arguments = [*pointers, count, datatype, mpi_library.REDUCTIONS[reduction], *root]
        self._calls.call(name, [*arguments, self._communicators.of(group)])
        return buffers.tensor(memory, type_)

    def _call(self, name: str, sent: Any, received: Any, block: Any, group: Group, *root: Any) -> None:
        count, datatype = buffers.count_and_datatype(block)
        pointers = map(buffers.pointer, (sent, received))
        arguments = [argument for pointer in pointers for argument in (pointer, count, datatype)]
        self._calls.call(name, [*arguments, *root, self._communicators.of(group)])


def _zeros(type_: Any) -> Any:
    """A tensor whose elements have no bit set."""
    element = type_.element_type
    if isinstance(element, ir.ComplexType):
        zeros = ir.Attribute.parse(f"dense<(0.0, 0.0)> : {type_}")
    else:
        zero = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
        zeros = ir.DenseElementsAttr.get_splat(type_, zero)
    return _arith.ConstantOp(type_, zeros).result
