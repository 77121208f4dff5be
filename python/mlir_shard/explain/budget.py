# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits on the costs of a local program, and the amounts by which it exceeds them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.explain.memory import PeakMemory
from mlir_shard.explain.quantities import (
    BYTES,
    COLLECTIVES,
    MEMORY,
    QUANTITIES,
    TIME,
    Limit,
    amount_text,
    amounts_of,
    memory_of,
    read_limits,
)
from mlir_shard.passes.diagnostic import Diagnostic, Position, at, location_of
from mlir_shard.passes.registry import PassFailure
from mlir_shard.transforms.communication.communication_report import (
    CommunicationReport,
    ReportedCollective,
    axes_text,
)
from mlir_shard.transforms.communication.shard_communication_report import communication_report

Budget = Mapping[str, Limit]
_MOST_SHOWN = 5
_PLACE = re.compile(r"(?P<file>.*):(?P<line>\d+):(?P<column>\d+)")


def read_budget(text: str) -> Budget:
    """Reads `bytes=10MiB,memory=2GiB,time=2ms,collectives=20`. Raises ValueError if the text is not a budget."""
    return read_limits(text, tuple(QUANTITIES))


def exceeded(module: Any, budget: Budget) -> tuple[Diagnostic, ...]:
    """Returns an error for each quantity of a local module that exceeds its budget, with the largest costs; or
    one error if the module is not local, or its communication or memory is not known."""
    try:
        report = communication_report(module)
        memory = memory_of(module) if MEMORY in budget else None
    except PassFailure as failure:
        return (at("error", f"a budget requires a local program: {failure.message}", location_of(failure.where)),)
    amounts = amounts_of(report, memory)
    return tuple(
        _error(name, amounts[name], limit, _values(memory) if memory and name == MEMORY else _collectives(name, report))
        for name, limit in budget.items()
        if amounts[name] > limit.amount
    )


def _values(memory: PeakMemory) -> list[Diagnostic]:
    """Returns notes on the largest values at the peak of the memory of a device."""
    notes = []
    for one in memory.live[:_MOST_SHOWN]:
        named = f"argument {one.name}" if one.kind == "argument" else f"'{one.name}', a {one.kind}"
        notes.append(_note(f"{amount_text(MEMORY, one.bytes)}: {named}", one.place))
    return notes


@dataclass(frozen=True, slots=True)
class _Group:
    """Collectives of one kind along the same axes, for operations of one name."""

    title: str
    collectives: tuple[ReportedCollective, ...]

    def cost(self, name: str) -> float:
        if name == BYTES:
            return sum(one.communication.bytes_received for one in self.collectives)
        return sum(one.time for one in self.collectives) if name == TIME else len(self.collectives)


def _groups(report: CommunicationReport) -> list[_Group]:
    found: dict[str, list[ReportedCollective]] = defaultdict(list)
    for one in report.collectives:
        axes = axes_text(one.communication.axes)
        along = f" along {axes}" if axes else ""
        found[f"{one.communication.kind.value}{along} for '{one.op}'"].append(one)
    return [_Group(title, tuple(members)) for title, members in found.items()]


def _collectives(name: str, report: CommunicationReport) -> list[Diagnostic]:
    """Returns notes on the collectives with the largest shares of a quantity."""
    groups = sorted(_groups(report), key=lambda one: one.cost(name), reverse=True)
    notes = []
    for group in groups[:_MOST_SHOWN]:
        count = f"{len(group.collectives):,} " if name != COLLECTIVES and len(group.collectives) > 1 else ""
        text = f"{amount_text(name, group.cost(name))}: {count}{group.title}"
        notes.append(_note(text, group.collectives[0].place))
    if len(groups) > _MOST_SHOWN:
        rest = amount_text(name, sum(one.cost(name) for one in groups[_MOST_SHOWN:]))
        text = f"{rest}: {len(groups) - _MOST_SHOWN} other kinds"
        notes.append(Diagnostic("note", text, notes[0].position, notes[0].place))
    return notes


def _error(name: str, amount: float, limit: Limit, notes: Sequence[Diagnostic]) -> Diagnostic:
    position, place = (notes[0].position, notes[0].place) if notes else (None, "")
    over = amount_text(name, amount - limit.amount)
    share = f" ({(amount - limit.amount) / limit.amount:.1%})" if limit.amount else ""
    message = (
        f"the program exceeds its budget of {name} by {over}{share}: "
        f"{QUANTITIES[name]} {amount_text(name, amount)}, and the budget is {limit.text}"
    )
    return Diagnostic("error", message, position, place, tuple(notes))


def _note(message: str, place: str) -> Diagnostic:
    parts = _PLACE.fullmatch(place)
    position = Position(parts["file"], int(parts["line"]), int(parts["column"])) if parts else None
    return Diagnostic("note", message, position, "" if position else place)
