# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the museum of wrong results. From the folder `test`,

    python -m museum [THREAD ...] [--format markdown] [--ours]

prints for each report the mistake in it, the verdicts on this project's local programs on each target and engine, and,
without --ours, the verdict on those of jaxlib's current partitioner. Exits with 1 if one of this project's programs is
not right.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from importlib.metadata import version

from rich.console import Console
from rich.table import Table

from museum import exhibits
from museum.exhibit import EXHIBITS, Exhibit


def load_exhibits(*, optimized: bool = True) -> None:
    """Imports all families of exhibits, which adds them to `EXHIBITS`, with as many virtual devices as they need.

    Results of this project's local programs do not depend on XLA's optimizations; XLA's partitioner runs with its
    defaults.
    """
    from model_zoo.program import DEVICES

    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["XLA_FLAGS"] = flags if optimized else f"{flags} --xla_backend_optimization_level=0"
    os.environ["JAX_PLATFORMS"] = "cpu"
    for module in pkgutil.iter_modules(exhibits.__path__):
        importlib.import_module(f"{exhibits.__name__}.{module.name}")


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m museum", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("threads", nargs="*", metavar="THREAD", help="these alone, as in openxla/xla#49122")
    parser.add_argument("--format", choices=("text", "markdown"), default="text")
    parser.add_argument("--ours", action="store_true", help="leave jaxlib's partitioner out")
    arguments = parser.parse_args()
    load_exhibits(optimized=not arguments.ours)
    if unknown := [name for name in arguments.threads if name not in EXHIBITS]:
        parser.error(f"no exhibit is of {', '.join(unknown)}; there are {', '.join(EXHIBITS)}")
    from museum.visit import JAXLIB, RIGHT, Visit

    visit = Visit(with_jaxlib=not arguments.ours)
    rows: list[tuple[Exhibit, list[str]]] = []
    for name in arguments.threads or EXHIBITS:
        verdicts = visit.verdicts(EXHIBITS[name])
        rows.append((EXHIBITS[name], verdicts))
        print(name, *verdicts, sep=" | ", file=sys.stderr, flush=True)
    columns = [f"jaxlib {version('jaxlib')}" if one == JAXLIB else one for one in visit.columns]
    if arguments.format == "markdown":
        print("\n".join(markdown(columns, rows)))
    else:
        Console(width=200).print(_table(columns, rows))
    for number, column in enumerate(columns):
        right = sum(verdicts[number] == RIGHT for _, verdicts in rows)
        print(f"{column}: {right} of {len(rows)} right", file=sys.stderr if arguments.format == "markdown" else None)
    ours = [name for name in visit.columns if name != JAXLIB]
    return int(any(verdict != RIGHT for _, verdicts in rows for verdict in verdicts[: len(ours)]))


def _table(columns: list[str], rows: list[tuple[Exhibit, list[str]]]) -> Table:
    table = Table("report", "what is wrong", *columns)
    for exhibit, verdicts in rows:
        table.add_row(exhibit.name, exhibit.wrong, *verdicts)
    return table


def markdown(columns: list[str], rows: list[tuple[Exhibit, list[str]]]) -> list[str]:
    """Returns the lines of the table in the format of the documentation."""
    head = ["report", "what is wrong", *columns]
    lines = [head, ["---"] * len(head)]
    lines += [[f"[{one.name}]({one.url})", one.wrong, *verdicts] for one, verdicts in rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


if __name__ == "__main__":
    sys.exit(main())
