# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The channel numbers of a module's StableHLO collectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import attribute_columns, operations_named
from mlir_shard.ir.op_names import op_names

_COMMUNICATING = op_names(
    "stablehlo",
    "all_gather all_reduce all_to_all collective_broadcast collective_permute recv reduce_scatter send",
)


@dataclass(slots=True)
class Channels:
    """The unused channel numbers, from `next_free` on."""

    next_free: int

    @staticmethod
    def of(module: Any) -> Channels:
        """Returns the channel numbers that no collective of a module has."""
        return Channels(1 + max((number for _, number in _numbered(module)), default=0))

    def take(self) -> int:
        """Returns an unused number."""
        self.next_free += 1
        return self.next_free - 1

    def renumber(self, module: Any, first: int) -> None:
        """Renumbers the collectives of a module from channel `first` on, in its order, if one number is used twice."""
        ops = [(op, number) for op, number in _numbered(module) if number >= first]
        if len({number for _, number in ops}) < len(ops):
            for number, (op, _) in enumerate(ops, first):
                op.attributes["channel_handle"] = stablehlo.channel(number)
            self.next_free = max(self.next_free, first + len(ops))


def _numbered(module: Any) -> list[tuple[Any, int]]:
    """Returns the ops that have a channel, each with its number."""
    ops = operations_named(module, *_COMMUNICATING)
    (handles,) = attribute_columns(ops, "channel_handle")
    numbers = {one: stablehlo.channel_numbers(one)[0] for one in set(handles) if one is not None}
    return [(op, numbers[one]) for op, one in zip(ops, handles, strict=True) if one is not None]
