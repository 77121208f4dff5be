# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Independent collectives over the same devices, merged to one.

Collectives of `shard` have one tensor each: the merged one has a tensor that contains all of theirs.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import accumulate
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.editing import replace_with
from mlir_shard.ir.op_kinds import OWN_GROUP, OpKinds
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.resharding.cost.communication import Communication
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.cost.links import DeviceRates
from mlir_shard.transforms.communication.collective_forms import (
    CHANNEL,
    among,
    dim_of,
    is_of_values,
    num_bytes,
    reduction,
)
from mlir_shard.transforms.communication.communication_reading import CommunicationReader
from mlir_shard.transforms.communication.device_uniformity import may_wait

ALL_GATHER = "shard.all_gather"
ALL_REDUCE = "shard.all_reduce"
PACKED = frozenset((ALL_GATHER, ALL_REDUCE))
"""The collectives that `pack` can merge."""
_DIM = "gather_axis"


def gains(collective: Any, communication: Communication) -> bool:
    """Returns whether a collective takes less time together with others that gain than alone.

    This holds if its tensors are copied in at most half the latency: each is read and written once to be packed, and
    once to be unpacked. Collectives that are packed save the latency of all but one, which is at least half of their
    latency.
    """
    types = [value.type for value in (*collective.operands, *collective.results)]
    if any(not num_bytes(type_) or type_.encoding is not None for type_ in types):
        return False
    if collective.name == ALL_GATHER and not _is_of_rows(collective):
        return False
    copied = 2 * sum(num_bytes(type_) or 0 for type_ in types)
    return DeviceRates().seconds(0, copied) <= communication.latency(CostModel().link) / 2


def pack(collectives: list[Any]) -> list[Any]:
    """Builds one collective for several that are equal except for shapes; returns their results."""
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
        # A row for each device, with its shards of all tensors.
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
    """Returns whether the shards of devices are contiguous in the result, one after the other."""
    dim = dim_of(gather)
    return dim is not None and prod(gather.operands[0].type.shape[:dim]) == 1


_VARIADIC = "stablehlo.all_reduce"
_MERGED = PACKED | {_VARIADIC}


@register
class MergeCollectives(ModulePass):
    """Merges collectives with the same groups, reductions and element types. Each merge saves the latency of one
    collective, and devices receive as many bytes as before.

    StableHLO all-reduces are merged into one with several operands. All-reduces and all-gathers of `shard` are merged
    into one of a tensor to which all operands are copied, if the copies take less than half the latency; all-gathers
    only if shards are contiguous in their results.

    A collective, and the ops that use its result, are delayed until a collective of the same kind or an op that cannot
    be delayed needs them, or until the operands reach `most-bytes`. This depends only on the program, so the order is
    the same on every device.
    """

    name = "shard-merge-collectives"
    summary = "Merges independent collectives"
    needs = _MERGED

    most_bytes: int = option(1 << 25, "the maximum size of the local tensors of a merged collective, in bytes")

    def run(self, op: Any) -> bool:
        kinds = OpKinds(op, *sorted(_MERGED), ignored=(CHANNEL,))
        if not len(kinds):
            return False
        reader, numbers = CommunicationReader(op), dict[Hashable, int]()
        groups = [_group(one, reader, numbers) for one in kinds.representatives]
        return kinds.merge(groups, self.most_bytes, may_wait, _pack)


def _group(collective: Any, reader: CommunicationReader, numbers: dict[Hashable, int]) -> tuple[int, int] | None:
    """Returns the group of collectives to merge a collective with, and the bytes of its operands, or None."""
    if not is_of_values(collective) or any(not value.type.has_static_shape for value in collective.operands):
        return None
    communication = reader.read(collective)
    if collective.name != _VARIADIC and not gains(collective, communication):
        return None
    kind = _kind(collective)
    group = OWN_GROUP if kind is None else numbers.setdefault(kind, len(numbers))
    return group, communication.operand_bytes


def _pack(collectives: list[Any], placeholder: Any) -> None:
    with ir.InsertionPoint(placeholder), placeholder.location:
        replace_with(placeholder, pack(collectives))


def _kind(collective: Any) -> Hashable | None:
    """Returns a key that collectives share if they can be merged; None for a reduction by an unknown op."""
    if collective.name == ALL_GATHER:
        return among(collective), collective.operands[0].type.element_type
    combiner = reduction(collective)
    if combiner is collective:
        return None
    attributes = tuple((name, value) for name, value in collective.attributes.items() if name != CHANNEL)
    elements = frozenset(operand.type.element_type for operand in collective.operands)
    return collective.name, combiner, attributes, CHANNEL in collective.attributes, elements
