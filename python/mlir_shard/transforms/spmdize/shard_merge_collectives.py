# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All-reduces that do not need each other, carried out as one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.operations import operations_named
from mlir_shard.transforms.spmdize.collective_forms import CHANNEL, reduction
from mlir_shard.transforms.spmdize.communication_reading import CommunicationReader
from mlir_shard.transforms.walk import ops_in

_REDUCE = "stablehlo.all_reduce"
# These do something besides what their results say, or may have collectives inside.
_IN_ORDER = frozenset(
    f"stablehlo.{name}"
    for name in ("case", "custom_call", "if", "infeed", "outfeed", "recv", "rng", "rng_bit_generator", "send", "while")
)


@dataclass(slots=True)
class _Waiting:
    """All-reduces of one kind, and the bytes of their tensors."""

    reduces: list[Any] = field(default_factory=list)
    num_bytes: int = 0


@register
class MergeCollectives(Pass):
    """Makes all-reduces of StableHLO one, of several tensors, where their groups, reductions and element types are the
    same: each saves the latency of one, and devices receive what they did.

    One that is merged waits for those that come after it, and what needs its result waits with it, until one of the
    same kind needs it, or what cannot wait does, or tensors of `most-bytes` are together. That depends on the program
    alone, so the order is the same on every device.
    """

    name = "shard-merge-collectives"
    anchor = "builtin.module"
    summary = "Merges collectives that do not need each other"

    most_bytes: int = option(1 << 25, "the bytes that tensors of one collective have at most, as a device holds them")

    def run(self, op: Any) -> bool:
        reader = CommunicationReader(op)
        blocks: list[Any] = []
        for reduce in operations_named(op, _REDUCE):
            if reduce.block not in blocks:
                blocks.append(reduce.block)
        is_changed = False
        for block in blocks:
            is_changed |= _Block(block, reader, self.most_bytes).merge()
        return is_changed


class _Block:
    """One block, whose ops are visited in order; `_needs` are the kinds of all-reduces that values wait for.

    Kinds are bits of an integer, in the order in which they first come.
    """

    def __init__(self, block: Any, reader: CommunicationReader, most_bytes: int) -> None:
        self._ops = [one.operation for one in block.operations]
        self._reader = reader
        self._most_bytes = most_bytes
        self._waiting: dict[int, _Waiting] = {}
        self._needs: dict[Any, int] = {}
        self._deferred: list[tuple[Any, int]] = []
        self._is_changed = False

    def merge(self) -> bool:
        """Merges what can be; says whether there was any."""
        bits: dict[Hashable, int] = {}
        kinds = [bits.setdefault(_kind(op), 1 << len(bits)) for op in self._ops if op.name == _REDUCE]
        if len(bits) == len(kinds):
            return False
        kinds_left = iter(kinds)
        for op in self._ops:
            name, needed = op.name, self._needed(op)
            if name == _REDUCE:
                self._flush(needed, op)
                self._wait(op, next(kinds_left))
            elif needed and len(op.results) and name.startswith("stablehlo.") and name not in _IN_ORDER:
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

    def _wait(self, reduce: Any, kind: int) -> None:
        size = self._reader.read(reduce).operand_bytes
        if kind in self._waiting and self._waiting[kind].num_bytes + size > self._most_bytes:
            self._flush(kind, reduce)
        group = self._waiting.setdefault(kind, _Waiting())
        group.reduces.append(reduce)
        group.num_bytes += size
        self._needs |= dict.fromkeys(reduce.results, kind)

    def _defer(self, op: Any, needed: int) -> None:
        self._deferred.append((op, needed))
        self._needs |= dict.fromkeys(op.results, needed)

    def _flush(self, kinds: int, before: Any) -> None:
        """Carries out what waits before an op, and then what has waited for that."""
        if not kinds:
            return
        for kind in [one for one in self._waiting if one & kinds]:
            reduces = self._waiting.pop(kind).reduces
            for reduce in reduces:
                for result in reduce.results:
                    del self._needs[result]
            if len(reduces) > 1:
                _merge(reduces, before)
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


def _merge(reduces: list[Any], before: Any) -> None:
    first = reduces[0]
    merged = ir.Operation.create(
        _REDUCE,
        [result.type for one in reduces for result in one.results],
        [operand for one in reduces for operand in one.operands],
        dict(first.attributes.items()),
        regions=1,
        loc=ir.Location.fused([one.location for one in reduces], context=first.context),
        ip=ir.InsertionPoint(before),
    )
    first.regions[0].blocks[0].append_to(merged.regions[0])
    results = iter(merged.results)
    for one in reduces:
        for result in one.results:
            result.replace_all_uses_with(next(results))
        one.erase()


def _kind(reduce: Any) -> Hashable:
    """What all-reduces have in common that can be one."""
    attributes = tuple((name, value) for name, value in reduce.attributes.items() if name != CHANNEL)
    elements = frozenset(operand.type.element_type for operand in reduce.operands)
    return reduction(reduce), attributes, CHANNEL in reduce.attributes, elements
