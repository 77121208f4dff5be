# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of the results."""

from __future__ import annotations

from collections.abc import Sequence

from resharding_peers.compare import Comparison, Row
from resharding_peers.pairs import Case
from resharding_peers.planning_time import PlanningTime


def comparison_table(one: Comparison) -> str:
    """Returns a table with a row for each planner; below it, the pairs that a peer wins."""
    lines = [
        f"{one.case.title}: {one.pairs} pairs",
        f"  {'planner':<30}{'planned':>8}{'bytes/bound':>13}{'at bound':>10}{'collectives':>13}{'us':>10}{'of ours':>9}"
        "  simulated",
    ]
    lines += map(_row, (*one.ours, *one.peers))
    lines += [f"  {name:<30}{'not installed':>15}" for name in one.missing]
    lines += [f"  a peer is better: {loss}" for loss in one.losses]
    return "\n".join(lines)


def _row(row: Row) -> str:
    of_ours = row.time / row.our_time if row.our_time else 1.0
    reasons = ", ".join(f"{reason}: {count}" for reason, count in row.reasons.items())
    simulated = f"{row.simulated - row.undelivered} of {row.simulated} right"
    return (
        f"  {row.planner:<30}{row.planned:>8}{row.bytes_over_bound:>13.4f}{row.at_bound:>10.1%}"
        f"{row.collectives:>13.3f}{row.time * 1e6:>10.2f}{of_ours:>9.3f}  {simulated}"
        + (f"; {reasons}" if reasons else "")
    )


def planning_time_table(case: Case, times: Sequence[PlanningTime]) -> str:
    """Returns a table with a row for each planner of a case, in milliseconds."""
    head = f"{case.title}, {times[0].pairs} pairs"
    columns = "".join(f"{name:>10}" for name in ("median", "90 %", "99 %", "longest", "optimal")) + f"{'gap':>14}"
    return "\n".join((head, f"  {'ms to plan':<40}{columns}", *map(_planning_time, times)))


def _planning_time(one: PlanningTime) -> str:
    quantiles = (one.median, one.ninetieth, one.ninety_ninth, one.longest)
    numbers = "".join(f"{seconds * 1e3:>10.3f}" for seconds in quantiles)
    return f"  {one.planner:<40}{numbers}{one.optimal:>10}{one.gap:>14.1%}"
