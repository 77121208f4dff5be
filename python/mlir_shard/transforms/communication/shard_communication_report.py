# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of the communication of a local program, which shows the cost of a sharding."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Literal, TextIO

from rich.console import Console

from mlir_shard.dialects.data_flow import ancestors
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes import diagnostic
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import ModulePass, PassFailure, register
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.transforms.communication.communication_reading import COLLECTIVES, CommunicationReader
from mlir_shard.transforms.communication.communication_report import CommunicationReport, ReportedCollective, served_op
from mlir_shard.transforms.shardings import is_sharded

_LOOPS = frozenset({"affine.for", "affine.parallel", "scf.for", "scf.forall", "scf.parallel", "scf.while"}) | {
    "stablehlo.while"
}


@register
class CommunicationReportPass(ModulePass):
    """Reports, for each collective of a local module in `shard` or StableHLO: its kind, the mesh axes of its device
    groups, the bytes received by the busiest device and by all devices, a predicted time, and the op that it serves
    with its location; and the totals. docs/communication.md describes the counts and predictions.

    The report is written to standard error, in colours on a terminal, or to a file.
    """

    name = "shard-communication-report"
    summary = "Reports the collectives of a local module with their bytes and predicted times"

    format: Literal["table", "json"] = option("table", "the format of the report")
    output: str = option("", "the output file; standard error if empty")
    costs: str = option("", "a TOML or JSON file with the latency and bandwidth of mesh axes")

    def run(self, op: Any) -> bool:
        report = communication_report(op, self._cost_model(op))
        if not self.output:
            write(report, sys.stderr, self.format)
            return False
        # A report that is written only in part is an error.
        try:
            with open(self.output, "w", encoding="utf-8") as file:
                write(report, file, self.format)
        except OSError as error:
            raise PassFailure(f"cannot write '{os.fspath(self.output)}': {error.strerror}") from error
        return False

    def _cost_model(self, op: Any) -> CostModel:
        try:
            return CostModel.of_file(self.costs) if self.costs else CostModel()
        except ValueError as error:
            raise PassFailure(f"costs: {error}", op) from error


def write(report: CommunicationReport, file: TextIO, form: Literal["table", "json"]) -> None:
    """Writes a report to an open file; a table on a terminal has colours and the width of the terminal."""
    if form == "json":
        print(json.dumps(report.as_data(), indent=2), file=file, flush=True)
        return
    console = Console(file=file, force_jupyter=False)
    if console.is_terminal:
        console.print(report.as_table())
    else:
        print(report, file=file, flush=True)


def communication_report(module: Any, cost_model: CostModel | None = None) -> CommunicationReport:
    """Returns the report of a local module; raises PassFailure if it is not local, or sizes or groups are unknown."""
    _check_is_local(module)
    model, reader = cost_model or CostModel(), CommunicationReader(module)
    found = []
    for op in operations_named(module, *sorted(COLLECTIVES)):
        communication = reader.read(op)
        served = served_op(op)
        function, loops = _around(op)
        found.append(
            ReportedCollective(
                communication, communication.time(model.link), served.name, _place(served.location), function, loops
            )
        )
    return CommunicationReport(tuple(found))


def _check_is_local(module: Any) -> None:
    """Raises PassFailure at the first op that has to be partitioned: one of sdy, or one with a sharding along axes."""
    how = "the report requires a local program: run shard-spmdize or spmd-pipeline first"
    for op in ModuleArrays(module).representatives():
        if op.name.startswith("sdy.") and op.name != "sdy.mesh":
            raise PassFailure(f"the module is not local: it contains '{op.name}'; {how}", op)
        if is_sharded(op) and not op.name.startswith("shard."):
            rest = ", and sdy-drop-sharding-and-mesh if shardings remain after it"
            raise PassFailure(f"the module is not local: '{op.name}' has sdy shardings; {how}{rest}", op)


def _around(op: Any) -> tuple[str, int]:
    """Returns the name of the function around an op, and the number of loops around the op."""
    loops = 0
    for around in ancestors(op):
        if "sym_name" in around.attributes:
            return around.attributes["sym_name"].value, loops
        loops += around.name in _LOOPS
    return "", loops


def _place(location: Any) -> str:
    found = diagnostic.at("remark", "", location)
    position = found.position
    return f"{position.file}:{position.line}:{position.column}" if position else found.place
