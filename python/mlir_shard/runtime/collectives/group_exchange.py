# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives among the devices of a group in the form of MPI: on blocks along the first dimension.

All operations are built at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.runtime.collectives import buffers
from mlir_shard.runtime.collectives.groups import Group, of_own_rank
from mlir_shard.runtime.collectives.library import STATUS_IGNORE, WORLD, Communicators, Library
from mlir_shard.runtime.launch import mpi_library

_arith = host.dialect("arith")
# Shifts and halo updates use the tags before.
_PERMUTATION_TAG = 3


class GroupExchange:
    """The collectives of one module."""

    def __init__(self, communicators: Communicators, calls: Library) -> None:
        self._communicators = communicators
        self._calls = calls

    def all_gather(self, value: Any, group: Group) -> Any:
        """Returns the stacked tensors of the group; entries beyond the size of a smaller group are undefined."""
        return self._move("MPI_Allgather", value, value.type, _stacked(value.type, group), group)

    def all_to_all(self, stacked: Any, group: Group) -> Any:
        """Returns the stacked blocks with this device's number, one of each device: each block moves once."""
        return self._move("MPI_Alltoall", stacked, _block(stacked.type), stacked.type, group)

    def gather(self, value: Any, group: Group, root: Any) -> Any:
        """Returns the stacked tensors of the group on its device number `root`; undefined on the others."""
        return self._move("MPI_Gather", value, value.type, _stacked(value.type, group), group, root)

    def scatter(self, stacked: Any, group: Group, root: Any) -> Any:
        """Returns the block with this device's number among the stacked blocks of device number `root`."""
        block = _block(stacked.type)
        return self._move("MPI_Scatter", stacked, block, block, group, root)

    def broadcast(self, value: Any, group: Group, root: Any) -> Any:
        """Returns the tensor of device number `root`."""
        memory = buffers.copy(value)
        count, datatype = buffers.count_and_datatype(value.type)
        self._calls.call("MPI_Bcast", [buffers.pointer(memory), count, datatype, root, self._communicators.of(group)])
        return buffers.tensor(memory, value.type)

    def all_reduce(self, value: Any, group: Group, reduction: str) -> Any:
        """Returns the reduction over the group, on each of its devices."""
        return self._reduce("MPI_Allreduce", value, value.type, group, reduction)

    def reduce_scatter(self, stacked: Any, group: Group, reduction: str) -> Any:
        """Returns the reduction over the group of the blocks with this device's number."""
        return self._reduce("MPI_Reduce_scatter_block", stacked, _block(stacked.type), group, reduction)

    def reduce(self, value: Any, group: Group, reduction: str, root: Any) -> Any:
        """Returns the reduction over the group on its device number `root`; undefined on the others."""
        return self._reduce("MPI_Reduce", value, value.type, group, reduction, root)

    def permute(self, value: Any, targets: Sequence[int | None], sources: Sequence[int | None]) -> Any:
        """Returns the tensor of the source of this rank; zeros if it has no source.

        targets, sources: for each rank the rank that it sends to and the rank that it receives from, or None.
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

    def _move(self, name: str, value: Any, block: Any, type_: Any, group: Group, *root: Any) -> Any:
        """Returns the tensor of `type_` that a call receives for `value`; its counts are those of the type `block`."""
        memory, counted = buffers.room(type_), buffers.count_and_datatype(block)
        sent, received = (buffers.pointer(one) for one in (buffers.read(value), memory))
        self._calls.call(name, [sent, *counted, received, *counted, *root, self._communicators.of(group)])
        return buffers.tensor(memory, type_)


def _stacked(type_: Any, group: Group) -> Any:
    return shard.resized(type_, [group.size, *type_.shape])


def _block(stacked_type: Any) -> Any:
    return shard.resized(stacked_type, list(stacked_type.shape)[1:])


def _zeros(type_: Any) -> Any:
    """Returns a tensor of zeros."""
    element = type_.element_type
    if isinstance(element, ir.ComplexType):
        zeros = ir.Attribute.parse(f"dense<(0.0, 0.0)> : {type_}")
    else:
        zero = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
        zeros = ir.DenseElementsAttr.get_splat(type_, zero)
    return _arith.ConstantOp(type_, zeros).result
