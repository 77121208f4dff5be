# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models from JAX and PyTorch through both targets, as a table.

    python -m model_zoo [NAME ...] [--only-bytes]

For each: the bytes that a device receives, each collective counted once, in the local program of both targets and in
what XLA compiles; whether the `shard` program on MPI and the StableHLO program on PJRT give the results without
sharding. Models of PyTorch are there in StableHLO, and in linalg and tosa for the `shard` target.
Exits with 1 where something fails that is not known to, or a target receives more than XLA's program.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from model_zoo import jax_programs, torch_programs
from model_zoo.program import DEVICES, MODELS, TARGETS


def load_models() -> None:
    """Imports all families of models, which adds them to `MODELS`."""
    for package in (jax_programs, torch_programs):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m model_zoo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="these models alone")
    parser.add_argument("--only-bytes", action="store_true", help="partition, and run nothing")
    arguments = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
    from model_zoo.measurement import measure

    load_models()
    if unknown := [name for name in arguments.names if name not in MODELS]:
        parser.error(f"no model is called {', '.join(unknown)}; there are {', '.join(MODELS)}")
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
