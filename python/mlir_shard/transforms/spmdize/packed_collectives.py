# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of `shard`, which have one tensor each, as one of a tensor that has all of theirs.

Tensors lie in it flat, one behind the other. Copying them there and back takes time too, so only small ones gain.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.resharding.communication import Communication
from mlir_shard.resharding.cost_model import CostModel
from mlir_shard.resharding.device_rates import DeviceRates
from mlir_shard.transforms.spmdize.collective_forms import dim_of, num_bytes

ALL_GATHER, ALL_REDUCE = "shard.all_gather", "shard.all_reduce"
PACKED = frozenset((ALL_GATHER, ALL_REDUCE))
"""The collectives that `pack` makes one of several."""

_DIM = "gather_axis"


def gains(collective: Any, communication: Communication) -> bool:
    """Whether it takes less time together with others that gain than alone.

    That is where its tensors are copied in at most half the latency: each is read and written on the way in, and on the
    way out. However many are packed, they save the latency of all but one, which is at least half that of all.
    """
    types = [value.type for value in (*collective.operands, *collective.results)]
    if any(not num_bytes(type_) or type_.encoding is not None for type_ in types):
        return False
    if collective.name == ALL_GATHER and not _is_of_rows(collective):
        return False
    copied = 2 * sum(num_bytes(type_) or 0 for type_ in types)
    return DeviceRates().seconds(0, copied) <= communication.latency(CostModel().link) / 2


def pack(collectives: list[Any]) -> list[Any]:
    """Makes at the insertion point one collective of several that are alike but for shapes; gives their results."""
    first, operands = collectives[0], [collective.operands[0] for collective in collectives]
    sizes = [prod(operand.type.shape) for operand in operands]
    total = sum(sizes)
    packed = shard.empty([total], operands[0].type.element_type)
    starts = [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)]
    for operand, size, start in zip(operands, sizes, starts, strict=True):
        packed = shard.insert_slice(shard.reshape(operand, [size]), packed, [start])
    attributes, type_ = dict(first.attributes.items()), packed.type
    rows: list[int] = []
    if first.name == ALL_GATHER:
        # A row for each device: what it has of all tensors.
        rows = [prod(first.results[0].type.shape) // sizes[0]]
        packed, type_ = shard.reshape(packed, [1, total]), shard.resized(type_, [*rows, total])
        attributes[_DIM] = ir.IntegerAttr.get(ir.IndexType.get(), 0)
    together = ir.Operation.create(first.name, [type_], [packed], attributes).results[0]
    return [
        shard.reshape(
            shard.extract_slice(together, [*(0 for _ in rows), start], [*rows, size]), collective.results[0].type.shape
        )
        for collective, size, start in zip(collectives, sizes, starts, strict=True)
    ]


def _is_of_rows(gather: Any) -> bool:
    """Whether what devices have comes in the result one behind the other in memory."""
    dim = dim_of(gather)
    return dim is not None and prod(gather.operands[0].type.shape[:dim]) == 1
