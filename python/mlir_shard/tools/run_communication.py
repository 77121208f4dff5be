# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-run's report of what the program of one device communicates."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlir_shard.tools import output
from mlir_shard.tools.command_line import UsageError

if TYPE_CHECKING:
    from mlir_shard.transforms.spmdize.communication_report import CommunicationReport

STANDARD_OUTPUT, JSON = "-", ".json"


def check(path: str) -> None:
    """UsageError where a report could not be written there, before anything is run."""
    if path == STANDARD_OUTPUT:
        return
    try:
        output.check(path)
    except output.OutputError as error:
        raise UsageError(str(error)) from None


def of_module(module: Any) -> CommunicationReport:
    """The report of a local module; RunError where it says too little of its collectives."""
    from mlir_shard.passes.registry import PassFailure
    from mlir_shard.runtime.error import RunError
    from mlir_shard.transforms.spmdize.shard_communication_report import communication_report

    try:
        return communication_report(module.operation)
    except PassFailure as failure:
        raise RunError("what the program communicates is not known", failure.diagnostics) from failure


def write(path: str, report: CommunicationReport) -> None:
    """As JSON to a file named so, else as a table; UsageError where the file cannot be written."""
    from mlir_shard.transforms.spmdize.shard_communication_report import write as write_to

    if path == STANDARD_OUTPUT:
        print(flush=True)
        write_to(report, sys.stdout, "table")
        return
    try:
        with Path(path).open("w", encoding="utf-8") as file:
            write_to(report, file, "json" if path.endswith(JSON) else "table")
    except OSError as error:
        raise UsageError(f"cannot open output file '{path}': {error.strerror}") from None
