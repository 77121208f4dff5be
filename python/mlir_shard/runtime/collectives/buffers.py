# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors as contiguous memory for messages, and as contiguous blocks along a dimension.

All operations are built at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.runtime.launch import mpi_library

_arith, _bufferization, _llvm, _memref = map(host.dialect, ("arith", "bufferization", "llvm", "memref"))
_READ: Final = "bufferization.to_buffer"
_CAST: Final = "builtin.unrealized_conversion_cast"
_BITS = {"index": 64, "i1": 8}


def read(tensor: Any) -> Any:
    """Returns the memory of a tensor, read-only."""
    type_ = ir.MemRefType.get(tensor.type.shape, tensor.type.element_type)
    return _bufferization.ToBufferOp(type_, tensor, read_only=True).result


@contextmanager
def kept(module: Any) -> Iterator[None]:
    """Prevents passes in the context from folding reads of tensors: bufferization needs them in place.

    A folded read would be of the tensor's original memory, even if bufferization puts the tensor in other memory.
    """
    for op in operations_named(module, _READ):
        with ir.InsertionPoint(op), op.location:
            types, operands = [op.results[0].type], list(op.operands)
            replace_with(op, list(ir.Operation.create(_CAST, results=types, operands=operands).results))
    yield
    for op in operations_named(module, _CAST):
        if isinstance(op.operands[0].type, ir.RankedTensorType) and isinstance(op.results[0].type, ir.MemRefType):
            with ir.InsertionPoint(op), op.location:
                replace_with(op, [read(op.operands[0])])


def room(tensor_type: Any) -> Any:
    """Allocates memory for a tensor; the deallocation pipeline frees it."""
    return _memref.AllocOp(ir.MemRefType.get(tensor_type.shape, tensor_type.element_type), [], []).result


def copy(tensor: Any) -> Any:
    """Returns a copy of a tensor in new memory."""
    target = room(tensor.type)
    _memref.CopyOp(read(tensor), target)
    return target


def tensor(memory: Any, tensor_type: Any) -> Any:
    """Returns the tensor in new memory, which is later written to only through this tensor."""
    return _bufferization.ToTensorOp(tensor_type, memory, restrict=True, writable=True).result


def pointer(memory: Any) -> Any:
    """Returns the address of memory as an LLVM pointer."""
    return pointer_at(_memref.ExtractAlignedPointerAsIndexOp(memory).result)


def pointer_at(address: Any) -> Any:
    """Returns an LLVM pointer to an address, which is an index."""
    as_integer = _arith.IndexCastOp(ir.IntegerType.get_signless(64), address).result
    return _llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr"), as_integer).result


def strides(type_: Any) -> tuple[int, ...] | None:
    """Returns the strides of a memref type in elements; None if a stride is dynamic."""
    found, _ = type_.get_strides_and_offset()
    return None if any(map(type_.is_dynamic_stride_or_offset, found)) else tuple(found)


def is_movable(element_type: Any) -> bool:
    """Returns whether elements are signless and have 1, 2, 4 or 8 bytes in memory, or are pairs of such elements."""
    if isinstance(element_type, ir.ComplexType):
        return is_movable(element_type.element_type)
    if isinstance(element_type, ir.IntegerType) and not element_type.is_signless:
        return False
    return isinstance(element_type, (ir.FloatType, ir.IntegerType, ir.IndexType)) and _bits(element_type) in (
        8,
        16,
        32,
        64,
    )


def count_and_datatype(tensor_type: Any) -> tuple[int, str]:
    """Returns the count and the name of the MPI datatype that cover the bits of a tensor of movable elements."""
    element_type, count = tensor_type.element_type, prod(tensor_type.shape)
    if isinstance(element_type, ir.ComplexType):
        element_type, count = element_type.element_type, 2 * count
    return count, mpi_library.DATATYPES[f"i{_bits(element_type)}"]


def _bits(element_type: Any) -> int:
    return _BITS.get(str(element_type)) or element_type.width


def split(value: Any, dim: int, blocks: int) -> Any:
    """Splits a tensor into equal `blocks` along `dim` and returns these stacked along a new first dimension."""
    shape = list(value.type.shape)
    block = [*shape[:dim], shape[dim] // blocks, *shape[dim + 1 :]]
    if prod(shape[:dim]) == 1:
        return shard.reshape(value, [blocks, *block])
    cut = shard.reshape(value, [*shape[:dim], blocks, *block[dim:]])
    return shard.transpose(cut, [dim, *range(dim), *range(dim + 1, len(shape) + 1)])


def join(stacked: Any, dim: int) -> Any:
    """Returns the concatenation along `dim` of blocks that are stacked along the first dimension."""
    blocks, *block = stacked.type.shape
    if prod(block[:dim]) != 1:
        stacked = shard.transpose(stacked, [*range(1, dim + 1), 0, *range(dim + 1, len(block) + 1)])
    return shard.reshape(stacked, [*block[:dim], blocks * block[dim], *block[dim + 1 :]])
