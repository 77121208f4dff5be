# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Independent collectives over the same devices, merged to one.

Collectives of `shard` have one tensor each: the merged one has a tensor that holds all of theirs.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.editing import operations_named, ops_in
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
from mlir_shard.transforms.communication.device_uniformity import can_wait

ALL_GATHER = "shard.all_gather"
ALL_REDUCE = "shard.all_reduce"
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
    """Builds one collective for several that are equal but for shapes; returns their results."""
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


_VARIADIC = "stablehlo.all_reduce"
_MERGED = PACKED | {_VARIADIC}


@dataclass(slots=True)
class _Waiting:
    """Collectives of one kind, and the bytes of their tensors."""

    collectives: list[Any] = field(default_factory=list)
    num_bytes: int = 0


@register
class MergeCollectives(ModulePass):
    """Merges collectives with the same groups, reductions and element types: each saves the latency of one, and devices
    receive as many bytes as before.

    All-reduces of StableHLO become one of several tensors. All-reduces and all-gathers of `shard` become one of a
    tensor into which all are copied, if that takes less than half the latency; all-gathers only if shards are
    contiguous in their results.

    A collective, and the ops that use its result, are delayed until a collective of the same kind or an op that cannot
    be delayed needs them, or until there are `most-bytes`. That depends on the program alone, so the order is the same
    on every device.
    """

    name = "shard-merge-collectives"
    summary = "Merges collectives that do not need each other"

    most_bytes: int = option(1 << 25, "the bytes that tensors of one collective have at most, as a device holds them")

    def run(self, op: Any) -> bool:
        reader = CommunicationReader(op)
        found: dict[Any, dict[Any, Communication]] = {}
        for collective in operations_named(op, *_MERGED):
            if not is_of_values(collective) or any(not value.type.has_static_shape for value in collective.operands):
                continue
            communication = reader.read(collective)
            if collective.name == _VARIADIC or gains(collective, communication):
                found.setdefault(collective.block, {})[collective] = communication
        # What an op hashes to changes with its operands, so all are looked up before any change.
        blocks = [_Block(block, collectives, self.most_bytes) for block, collectives in found.items()]
        changed = [block.merge() for block in blocks]
        return any(changed)


class _Block:
    """One block, whose ops are visited in order; `_needs` are the kinds of collectives that values wait for.

    Kinds are bits of an integer, in the order in which they first come.
    """

    def __init__(self, block: Any, collectives: dict[Any, Communication], most_bytes: int) -> None:
        self._ops = [(one.operation, collectives.get(one.operation)) for one in block.operations]
        self._most_bytes = most_bytes
        self._waiting: dict[int, _Waiting] = {}
        self._needs: dict[Any, int] = {}
        self._deferred: list[tuple[Any, int]] = []
        self._is_changed = False

    def merge(self) -> bool:
        """Merges what can be; says whether there was any."""
        bits: dict[Hashable, int] = {}
        kinds = [bits.setdefault(_kind(op), 1 << len(bits)) for op, communication in self._ops if communication]
        if len(bits) == len(kinds):
            return False
        kinds_left = iter(kinds)
        for op, communication in self._ops:
            needed = self._needed(op)
            if communication is not None:
                self._flush(needed, op)
                self._wait(op, next(kinds_left), communication.operand_bytes)
            elif needed and can_wait(op):
                self._defer(op, needed)
            elif needed:
                self._flush(needed, op)
        return self._is_changed

    def _needed(self, op: Any) -> int:
        if not self._needs:
            return 0
        needed = 0
        for inner in ops_in(op) if len(op.regions) else (op,):
            for value in inner.operands:
                needed |= self._needs.get(value, 0)
        return needed

    def _wait(self, collective: Any, kind: int, size: int) -> None:
        if kind in self._waiting and self._waiting[kind].num_bytes + size > self._most_bytes:
            self._flush(kind, collective)
        group = self._waiting.setdefault(kind, _Waiting())
        group.collectives.append(collective)
        group.num_bytes += size
        self._needs |= dict.fromkeys(collective.results, kind)

    def _defer(self, op: Any, needed: int) -> None:
        self._deferred.append((op, needed))
        self._needs |= dict.fromkeys(op.results, needed)

    def _flush(self, kinds: int, before: Any) -> None:
        """Carries out what waits before an op, and then what has waited for that."""
        if not kinds:
            return
        for kind in [one for one in self._waiting if one & kinds]:
            collectives = self._waiting.pop(kind).collectives
            for collective in collectives:
                for result in collective.results:
                    del self._needs[result]
            if len(collectives) > 1:
                _merge(collectives, before)
                self._is_changed = True
        still: list[tuple[Any, int]] = []
        for op, needed in self._deferred:
            left = needed & ~kinds
            if left:
                if left != needed:
                    self._needs |= dict.fromkeys(op.results, left)
                still.append((op, left))
            else:
                for result in op.results:
                    del self._needs[result]
                op.move_before(before)
        self._deferred = still


def _merge(collectives: list[Any], before: Any) -> None:
    location = ir.Location.fused([one.location for one in collectives], context=before.context)
    with ir.InsertionPoint(before), location:
        is_packed = collectives[0].name in PACKED
        merged = pack(collectives) if is_packed else _all_reduce_of_all(collectives)
    results = iter(merged)
    for one in collectives:
        for result in one.results:
            result.replace_all_uses_with(next(results))
        one.erase()


def _all_reduce_of_all(reduces: list[Any]) -> list[Any]:
    merged = ir.Operation.create(
        _VARIADIC,
        [result.type for one in reduces for result in one.results],
        [operand for one in reduces for operand in one.operands],
        dict(reduces[0].attributes.items()),
        regions=1,
    )
    reduces[0].regions[0].blocks[0].append_to(merged.regions[0])
    return list(merged.results)


def _kind(collective: Any) -> Hashable:
    """What collectives have in common that can be one."""
    if collective.name == ALL_GATHER:
        return among(collective), collective.operands[0].type.element_type
    attributes = tuple((name, value) for name, value in collective.attributes.items() if name != CHANNEL)
    elements = frozenset(operand.type.element_type for operand in collective.operands)
    return collective.name, reduction(collective), attributes, CHANNEL in collective.attributes, elements
