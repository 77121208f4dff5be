# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The times and memory of each rank, as a table for the terminal or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlir_shard.tools.run.report import aligned

if TYPE_CHECKING:
    from mlir_shard.explain.memory import PeakMemory
    from mlir_shard.runtime.program import RankTimes
    from mlir_shard.transforms.communication.communication_report import CommunicationReport

_MIB = 2**20


def table(ranks: Sequence[RankTimes], peak_bytes: int | None) -> str:
    """Returns a table with a line for each rank, or for the only process, without empty columns.

    `peak_bytes` is the predicted peak memory of a rank.
    """
    columns: list[tuple[str, list[str]]] = [
        ("rank", [str(rank) for rank in range(len(ranks))] if len(ranks) > 1 else ["all"]),
        ("load", [_seconds(one.load) for one in ranks]),
        ("compile", [_seconds(one.compile) for one in ranks]),
        ("first run" if any(len(one.runs) > 1 for one in ranks) else "run", [_seconds(one.first_run) for one in ranks]),
        ("later runs", [_seconds(one.later_runs) for one in ranks]),
        ("in messages", [_seconds(one.messages.waited if one.messages else None) for one in ranks]),
        ("overlapped", [_seconds(one.messages.overlapped if one.messages else None) for one in ranks]),
        ("peak memory", [_mib(one.peak_bytes) for one in ranks]),
        ("predicted", [_mib(peak_bytes if one.peak_bytes is not None else None) for one in ranks]),
    ]
    kept = [(heading, cells) for heading, cells in columns if any(cells)]
    return aligned(list(zip(*([heading, *cells] for heading, cells in kept), strict=True)))


def as_json(
    ranks: Sequence[RankTimes],
    communication: CommunicationReport | None,
    peak_bytes: int | None,
    memory: PeakMemory | None = None,
) -> str:
    """Returns the times in seconds and the memory in bytes, and the predictions for collectives and memory, as JSON."""
    written: dict[str, Any] = {"ranks": [_of_rank(one) for one in ranks]}
    if peak_bytes is not None:
        written["predicted_peak_bytes"] = peak_bytes
    if memory is not None:
        written["predicted_memory"] = memory.as_data()
    if communication is not None:
        written["predicted_communication"] = communication.as_data()["totals"]
    return json.dumps(written, indent=2)


def _of_rank(one: RankTimes) -> dict[str, Any]:
    return {
        "load": one.load,
        "compile": one.compile,
        "first_run": one.first_run,
        "later_runs": one.later_runs,
        "runs": list(one.runs),
        "in_messages": one.messages and one.messages.waited,
        "overlapped": one.messages and one.messages.overlapped,
        "message_calls": one.messages and one.messages.calls,
        "peak_bytes": one.peak_bytes,
    }


def _mib(size: int | None) -> str:
    return "" if size is None else f"{size / _MIB:.1f} MiB"


def _seconds(part: float | None) -> str:
    from mlir_shard.transforms.communication.communication_report import duration

    return "" if part is None else duration(part)
