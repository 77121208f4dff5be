# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of a partitioned program as numbers with units, which are read from options and printed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.explain.memory import Engine, PeakMemory, peak_memory
from mlir_shard.ir.editing import functions, is_private
from mlir_shard.passes.options import did_you_mean
from mlir_shard.passes.registry import PassFailure
from mlir_shard.transforms.communication.communication_report import CommunicationReport, duration

BYTES, COLLECTIVES, MEMORY, TIME = "bytes", "collectives", "memory", "time"
QUANTITIES: Mapping[str, str] = {
    BYTES: "a device receives",
    MEMORY: "a device needs",
    TIME: "the collectives are predicted to take",
    COLLECTIVES: "the collectives are",
}
"""The quantities of a local program, each with the phrase that precedes its amount in a message."""

_SIZES = {"": 1, "B": 1} | {
    f"{prefix}{suffix}": base**power
    for suffix, base in (("iB", 1024), ("B", 1000))
    for power, prefix in enumerate("KMGT", start=1)
}
_TIMES = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_AMOUNT = re.compile(r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>[A-Za-zµ%]*)")
_UNITS: Mapping[str, Mapping[str, float]] = {BYTES: _SIZES, MEMORY: _SIZES, TIME: _TIMES}
_EXAMPLES = {BYTES: "10MiB or 1.5GB", MEMORY: "10MiB or 1.5GB", TIME: "20ms or 1.5s"}


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a quantity; `text` is its spelling; `is_relative`: whether it is a share of the amount before."""

    text: str
    amount: float
    is_relative: bool = False

    def of(self, before: float) -> float:
        """Returns the limit, given the amount before."""
        return self.amount * before if self.is_relative else self.amount


def read_limits(text: str, names: Sequence[str], *, may_be_relative: bool = False) -> dict[str, Limit]:
    """Reads `bytes=10MiB,time=2ms`, or `bytes=5%` if limits may be relative.

    Raises:
        ValueError: a name is not in `names` or given twice, an amount is invalid, or no limit is given.
    """
    found: dict[str, Limit] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        name, equals, amount = map(str.strip, item.partition("="))
        if name not in names:
            hint = did_you_mean(name, names) or f": expected one of {', '.join(names)}"
            raise ValueError(f"'{name}' is not a quantity{hint}")
        if not equals:
            raise ValueError(f"'{item}' has no amount: expected {name}={_example(name, may_be_relative)}")
        if name in found:
            raise ValueError(f"'{name}' is given twice")
        found[name] = _read_limit(name, amount, may_be_relative)
    if not found:
        raise ValueError(f"it is empty: expected {names[0]}={_example(names[0], may_be_relative)}")
    return found


def _example(name: str, may_be_relative: bool) -> str:
    return _EXAMPLES.get(name, "20") + (" or 5%" if may_be_relative else "")


def _read_limit(name: str, text: str, may_be_relative: bool) -> Limit:
    parts = _AMOUNT.fullmatch(text)
    units = _UNITS.get(name, {"": 1})
    if parts is not None:
        number, unit = float(parts["number"]), parts["unit"]
        if unit == "%" and may_be_relative:
            return Limit(text, number / 100, is_relative=True)
        # The case of units is ignored, because bits and thousandths of bytes are not units.
        scale = {known.lower(): scale for known, scale in units.items()}.get(unit.lower())
        if scale is not None and math.isfinite(number):
            return Limit(text, number * scale)
    raise ValueError(f"'{text}' is not an amount of {name}: expected {_example(name, may_be_relative)}")


def amounts_of(report: CommunicationReport, memory: PeakMemory | None) -> dict[str, float]:
    """Returns the quantities of a local program, without its memory if that is unknown."""
    return {
        BYTES: report.bytes_received,
        **({} if memory is None else {MEMORY: memory.peak}),
        TIME: report.time,
        COLLECTIVES: len(report.collectives),
    }


def memory_of(module: Any, engine: Engine | None = None) -> PeakMemory:
    """Returns the memory that a device needs for the public function of a local program that needs the most.

    Raises:
        PassFailure: the memory cannot be predicted, or no such function exists.
    """
    entries = entries_of(module)
    if not entries:
        raise PassFailure("the program has no function to run", module)
    return max((peak_memory(module, name, engine=engine) for name in entries), key=lambda one: one.peak)


def entries_of(module: Any) -> list[str]:
    """Returns the names of the functions of a module that can be run: the public ones with a body."""
    return [name for name, op in functions(module).items() if op.regions[0].blocks and not is_private(op)]


def amount_text(name: str, amount: float) -> str:
    """Returns an amount with its unit, with three digits."""
    if name == TIME:
        return ("-" if amount < 0 else "") + duration(abs(amount))
    if name in (BYTES, MEMORY):
        return size_text(amount)
    return f"{round(amount):,}"


def size_text(size: float) -> str:
    """Returns a number of bytes with three digits."""
    unit, scale = "B", 1
    for power, prefix in enumerate("KMGT", start=1):
        if abs(size) >= 1024**power:
            unit, scale = f"{prefix}iB", 1024**power
    shown = size / scale
    digits = 0 if unit == "B" else max(0, 2 - int(math.log10(max(1.0, abs(shown)))))
    return f"{shown:.{digits}f} {unit}"
