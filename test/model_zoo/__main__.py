# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partitions small models from JAX and PyTorch for both targets, and prints the results as a table.

    python -m model_zoo [NAME ...] [--only-bytes | --memory | --times]

The table has, for each model, the bytes that a device receives, with each collective counted once, in the local program
of both targets and in XLA's compiled program; and the errors of the `shard` program on MPI and of the StableHLO program
on PJRT, whose results are compared with those without sharding. Models of PyTorch are lowered to StableHLO, and to
linalg and tosa for the `shard` target.
Exits with 1 if a model fails, or if a target receives more than XLA's program for an unknown reason.
With --memory: the predicted bytes of a device on PJRT and on MPI, compared with the bytes that XLA states for the
compiled program and that the program of MPI allocates, without constants. Exits with 1 if a prediction is not close for
an unknown reason.
With --times: the milliseconds to propagate and to partition the models of JAX with new plans, and those of Shardy's
propagation and of XLA's passes; a `-` stands for a crash.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterable
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from model_zoo import jax_programs, torch_programs
from model_zoo.program import DEVICES, MODELS, TARGETS, Model

if TYPE_CHECKING:
    from mlir_shard.explain.memory import Engine


def load_models() -> None:
    """Imports all families of models, which adds them to `MODELS`."""
    for package in (jax_programs, torch_programs):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


def memory_table(names: Iterable[str]) -> int:
    """Prints predicted memory and needed memory."""
    sys.path.append(str(Path(__file__).parents[1] / "unit"))
    from model_zoo.memory import Compared, compare, summary

    engines: tuple[Engine, ...] = ("pjrt", "mpi")
    table = Table(
        "model", "pjrt", "XLA states", "off", "mpi", "allocated", "off", "why", title="bytes that a device needs"
    )
    every: list[Compared] = []
    for name in names:
        model = MODELS[name]()
        found = [compare(name, model, engine) for engine in engines]
        every += filter(None, found)
        cells = [
            (f"{one.predicted:,}", f"{one.needed:,}", f"{one.off:+.1%}" + (" *" if not one.is_close else ""))
            if one
            else ("-",) * 3
            for one in found
        ]
        reasons = "; ".join(dict.fromkeys(one.reason for one in found if one and one.reason))
        table.add_row(name, *(cell for of_engine in cells for cell in of_engine), reasons)
        print(name, *cells, file=sys.stderr, flush=True)
    Console(width=200).print(table)
    for engine in engines:
        print(summary(every, engine))
    return int(any(not one.is_close and not one.reason for one in every))


def times_table(names: Iterable[str]) -> None:
    """Prints the times of the models of JAX."""
    from model_zoo.times import summary, times

    columns = "model", "operations", "propagation", "Shardy", "ratio", "partitioning", "XLA", "ratio"
    table, every = Table(*columns, title="milliseconds"), []
    for name in names:
        model = MODELS[name]()
        if not isinstance(model, Model):
            continue
        every.append(found := times(model))
        took = found.propagation, found.shardy_propagation, found.partition, found.xla_partition
        cells = ["-" if isnan(one) else f"{one * 1e3:.1f}" for one in took]
        ratios = ["-" if isnan(one) else f"{one:.2f}" for one in (found.of_shardy, found.of_xla)]
        row = name, str(found.operations), *cells[:2], ratios[0], *cells[2:], ratios[1]
        table.add_row(*row)
        print(*row, file=sys.stderr, flush=True)
    Console(width=200).print(table)
    print(summary(every))


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m model_zoo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="these models alone")
    parser.add_argument("--only-bytes", action="store_true", help="partition, and run nothing")
    parser.add_argument("--memory", action="store_true", help="compare predicted memory, and run nothing")
    parser.add_argument("--times", action="store_true", help="compare times, and run nothing")
    arguments = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
    from model_zoo.measurement import measure

    load_models()
    if unknown := [name for name in arguments.names if name not in MODELS]:
        parser.error(f"no model is called {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if arguments.memory:
        return memory_table(arguments.names or MODELS)
    if arguments.times:
        times_table(arguments.names or MODELS)
        return 0
    table = Table("model", *TARGETS, "xla", "notes", title="bytes that a device receives")
    fails = False
    for name in arguments.names or MODELS:
        found = measure(MODELS[name](), runs=not arguments.only_bytes)
        is_bad = bool(found.errors) or found.is_more_than_xla
        fails = fails or is_bad
        sizes = [f"{found.bytes[of]:,}" if of in found.bytes else "-" for of in (*TARGETS, "xla")]
        table.add_row(name, *sizes, found.notes, style="bold red" if is_bad else "")
        print(name, *sizes, *found.errors, file=sys.stderr, flush=True)
    Console(width=200).print(table)
    return int(fails)


if __name__ == "__main__":
    sys.exit(main())
