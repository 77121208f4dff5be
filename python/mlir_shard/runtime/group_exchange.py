# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives among the devices of a group as MPI has them: on blocks along a first dimension.

They go through upstream's mpi dialect where that has the operation for the elements, and else call the library. Each
value is built at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import shard
from mlir_shard.host import ir
from mlir_shard.runtime import buffers, library, mpich
from mlir_shard.runtime.communicators import Communicators
from mlir_shard.runtime.group import Group
from mlir_shard.runtime.library import Library
from mlir_shard.runtime.listed_groups import of_own_rank

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
        # Upstream's counts on groups that are as large as the memory for them.
        if str(type_.element_type) in mpich.DATATYPES and group.is_even:
            operands = [buffers.read(value), memory, self._communicators.of(group)]
            ir.Operation.create("mpi.allgather", operands=operands)
        else:
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
        self._calls.call("MPI_Bcast", [buffers.pointer(memory), count, datatype, root, self._handle(group)])
        return buffers.tensor(memory, value.type)

    def all_reduce(self, value: Any, group: Group, reduction: str) -> Any:
        """The reduction over the group, on each of its devices."""
        return self._reduce("mpi.allreduce", value, value.type, group, reduction)

    def reduce_scatter(self, stacked: Any, group: Group, reduction: str) -> Any:
        """The reduction over the group of the blocks with this device's number."""
        block = shard.resized(stacked.type, list(stacked.type.shape)[1:])
        return self._reduce("mpi.reduce_scatter_block", stacked, block, group, reduction)

    def reduce(self, value: Any, group: Group, reduction: str, root: Any) -> Any:
        """The reduction over the group on its device number `root`; anything on the others."""
        memory = buffers.room(value.type)
        pointers = [buffers.pointer(buffers.read(value)), buffers.pointer(memory)]
        count, _ = buffers.count_and_datatype(value.type)
        datatype = mpich.DATATYPES[str(value.type.element_type)]
        operation = mpich.OPERATION | mpich.REDUCTIONS[reduction]
        self._calls.call("MPI_Reduce", [*pointers, count, datatype, operation, root, self._handle(group)])
        return buffers.tensor(memory, value.type)

    def permute(self, value: Any, targets: Sequence[int], sources: Sequence[int]) -> Any:
        """The tensor of the source of this rank, zeros where that is nobody.

        targets, sources: for each rank the one it sends to and the one it receives from, MPI_PROC_NULL for nobody.
        """
        memory = buffers.copy(_zeros(value.type)) if mpich.PROC_NULL in sources else buffers.room(value.type)
        sent, received = (buffers.pointer(one) for one in (buffers.read(value), memory))
        target, source = map(of_own_rank, (targets, sources))
        block = buffers.count_and_datatype(value.type)
        ends = [sent, *block, target, _PERMUTATION_TAG, received, *block, source, _PERMUTATION_TAG]
        self._calls.call("MPI_Sendrecv", [*ends, library.handle(library.world()), library.status_ignore()])
        return buffers.tensor(memory, value.type)

    def _reduce(self, name: str, value: Any, type_: Any, group: Group, reduction: str) -> Any:
        memory = buffers.room(type_)
        operation = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), mpich.REDUCTIONS[reduction])
        operands = [buffers.read(value), memory, self._communicators.of(group)]
        ir.Operation.create(name, operands=operands, attributes={"op": operation})
        return buffers.tensor(memory, type_)

    def _call(self, name: str, sent: Any, received: Any, block: Any, group: Group, *root: Any) -> None:
        count, datatype = buffers.count_and_datatype(block)
        pointers = map(buffers.pointer, (sent, received))
        arguments = [argument for pointer in pointers for argument in (pointer, count, datatype)]
        self._calls.call(name, [*arguments, *root, self._handle(group)])

    def _handle(self, group: Group) -> Any:
        return library.handle(self._communicators.of(group))


def _zeros(type_: Any) -> Any:
    """A tensor whose elements have no bit set."""
    element = type_.element_type
    if isinstance(element, ir.ComplexType):
        zeros = ir.Attribute.parse(f"dense<(0.0, 0.0)> : {type_}")
    else:
        zero = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
        zeros = ir.DenseElementsAttr.get_splat(type_, zero)
    return _arith.ConstantOp(type_, zeros).result
