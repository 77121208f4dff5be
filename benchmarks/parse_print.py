# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parsing and printing a large module: shard-opt beside the host alone, in one run.

    python benchmarks/parse_print.py [--program gradient] [--layers 48] [--repeat 7]

The host alone parses and prints the same module in generic form, with unregistered sdy operations, in a process that
imports only the bindings; shard-opt does all of its work, including verification. Prints the
median processor seconds of both and their ratio, first for whole processes, then for parsing and printing only. The
program is a transformer's gradient, also with all its shardings or with its reshards, one of manual computations, or
one of named computations.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import program_forms
from transformer import lowered_gradient

import mlir_shard
from mlir_shard import host

HOST_ALONE = f"""
import sys
from {host.PREFIX} import ir
from {host.PREFIX}._mlir_libs import _stablehlo
context = ir.Context()
_stablehlo.register_dialect(context, load=True)
context.allow_unregistered_dialects = True
print(ir.Module.parseFile(sys.argv[1], context).operation.get_asm(print_generic_op_form=True))
"""


def seconds(command: list[str]) -> float:
    """Returns the processor time, user and system, of one run of a command, whose output is discarded."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def report(name: str, ours: list[float], host: list[float], limit: float | None = None) -> None:
    """Prints medians and their ratio."""
    mine, others = statistics.median(ours), statistics.median(host)
    bound = f", at most {limit}" if limit else ""
    print(f"{name:<22} shard-opt {mine:.3f} s  host {others:.3f} s  ratio {mine / others:.2f}{bound}")


def in_process(custom: str, generic: str, repeat: int) -> None:
    """Measures parsing and printing only."""
    from mlir_shard import asm
    from mlir_shard.dialects.contexts import create_context

    context = create_context()
    bare = host.ir.Context()
    host.module("_mlir_libs._stablehlo").register_dialect(bare, load=True)
    bare.allow_unregistered_dialects = True
    ours, alone = [], []
    for _ in range(repeat):
        start = time.process_time()
        module = mlir_shard.parse(custom, context)
        asm.print_operation(module, assume_verified=True)
        ours.append(time.process_time() - start)
        start = time.process_time()
        host.ir.Module.parse(generic, bare).operation.get_asm(print_generic_op_form=True)
        alone.append(time.process_time() - start)
    report("parse and print only", ours, alone, limit=1.1)


PASSES = {
    "gradient": "",
    "propagated": "shard-propagate",
    "resharded": "shard-propagate,shard-reshard",
    "manual": "",
    "named": "sdy-import-func-calls",
}


def program(name: str, layers: int) -> str:
    """Returns the text of a program."""
    if name in ("manual", "named"):
        lowering = program_forms.Lowering()
        text = program_forms.manual(lowering) if name == "manual" else program_forms.calls(lowering)
    else:
        text = lowered_gradient(layers)
    if not PASSES[name]:
        return text
    module = mlir_shard.parse(text, mlir_shard.create_context())
    mlir_shard.run(module, f"builtin.module({PASSES[name]})")
    return mlir_shard.print_module(module)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", choices=list(PASSES), default="gradient")
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    from mlir_shard import asm
    from mlir_shard.dialects.contexts import create_context

    custom = program(arguments.program, arguments.layers)
    module = asm.parse_module(custom, create_context())
    generic = asm.print_operation(module, generic=True)
    operations = generic.count("\n")
    print(f"{arguments.program}, {operations} lines in generic form, {len(custom) / 1e6:.1f} MB of text")
    with tempfile.TemporaryDirectory() as folder:
        custom_file, generic_file = Path(folder, "custom.mlir"), Path(folder, "generic.mlir")
        custom_file.write_text(custom)
        generic_file.write_text(generic)
        ours, alone = [], []
        for _ in range(arguments.repeat):
            ours.append(seconds([sys.executable, "-m", "mlir_shard.tools.shard_opt", str(custom_file)]))
            alone.append(seconds([sys.executable, "-c", HOST_ALONE, str(generic_file)]))
    report("whole processes", ours, alone, limit=1.1)
    in_process(custom, generic, arguments.repeat)


if __name__ == "__main__":
    main()
