# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits of what a local program may cost, and by how much it exceeds them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlir_shard.explain.quantities import (
    BYTES,
    COLLECTIVES,
    QUANTITIES,
    TIME,
    Limit,
    amount_text,
    amounts_of,
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
    """Reads `bytes=10MiB,time=2ms,collectives=20`; ValueError where it is no budget."""
    return read_limits(text, tuple(QUANTITIES))


def exceeded(module: Any, budget: Budget) -> tuple[Diagnostic, ...]:
    """Returns an error for each quantity of a local module that exceeds its budget, with the most costly collectives;
    or one if the module is not local, or what it communicates is not known."""
    try:
        report = communication_report(module)
    except PassFailure as failure:
        return (at("error", f"a budget is of local programs: {failure.message}", location_of(failure.where)),)
    amounts = amounts_of(report)
    return tuple(
        _error(name, amounts[name], limit, report) for name, limit in budget.items() if amounts[name] > limit.amount
    )


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


def _error(name: str, amount: float, limit: Limit, report: CommunicationReport) -> Diagnostic:
    groups = sorted(_groups(report), key=lambda one: one.cost(name), reverse=True)
    notes = [_note(name, one) for one in groups[:_MOST_SHOWN]]
    position, place = (notes[0].position, notes[0].place) if notes else (None, "")
    if len(groups) > _MOST_SHOWN:
        rest = amount_text(name, sum(one.cost(name) for one in groups[_MOST_SHOWN:]))
        notes.append(Diagnostic("note", f"{rest}: {len(groups) - _MOST_SHOWN} other kinds", position, place))
    over = amount_text(name, amount - limit.amount)
    share = f" ({(amount - limit.amount) / limit.amount:.1%})" if limit.amount else ""
    message = (
        f"the program exceeds its budget of {name} by {over}{share}: "
        f"{QUANTITIES[name]} {amount_text(name, amount)}, and the budget is {limit.text}"
    )
    return Diagnostic("error", message, position, place, tuple(notes))


def _note(name: str, group: _Group) -> Diagnostic:
    count = f"{len(group.collectives):,} " if name != COLLECTIVES and len(group.collectives) > 1 else ""
    place = group.collectives[0].place
    parts = _PLACE.fullmatch(place)
    position = Position(parts["file"], int(parts["line"]), int(parts["column"])) if parts else None
    message = f"{amount_text(name, group.cost(name))}: {count}{group.title}"
    return Diagnostic("note", message, position, "" if position else place)
