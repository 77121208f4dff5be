# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation on a parsed module: this project beside the C++ Shardy in jaxlib, in one run.

    python benchmarks/propagation.py [--layers 12 48 400] [--different 12 48] [--linalg 10000] [--pass NAME]
                                     [--fresh | --free] [--alone]

Each side runs in a separate process, parses the gradient of a transformer again for every measurement, and times only
the pass; both verify the module after each pass, as by default, unless --no-verify is given. A process measures several
runs after a first one that is not timed. A module is freed after the next one is parsed, as by an assignment in a loop,
so that the modules of later runs are scattered in memory; with --free it is freed before. With --fresh the first run of
each process is timed, as in a command. Prints the median seconds, their ratio, the peak memory of parsing and the pass
together without that of loading their code (as reported by Linux), and the number of equal shardings in the resulting
modules. The layers are isomorphic, or with --different each has other shapes. Shardy has no rules for linalg, so linalg
modules are measured only here, and with --alone all others too.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from linalg_layers import linalg_layers
from transformer import lowered_gradient

MEASURE = """
def peak():
    # Unlike the peak that getrusage gives, this one begins anew with the program.
    return int(re.search(r"VmHWM:\\s*([0-9]+) kB", open("/proc/self/status").read())[1])

def measure(parse, run, show):
    run(parse("func.func @main() { return }"))
    before = peak()
    times, module = [], None
    for number in range(1 + repeat):
        if "--free" in sys.argv:
            module = None
        module = parse(text)
        start = time.perf_counter()
        run(module)
        times.append(time.perf_counter() - start)
        if number == 0:
            memory = peak() - before
    print(json.dumps([times[1:] or times, memory, show(module)]))
"""

OURS = f"""
import json, re, sys, time
import mlir_shard
text, name, repeat, verify = open(sys.argv[1]).read(), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "True"
{MEASURE}
context = mlir_shard.create_context()
measure(
    lambda text: mlir_shard.parse(text, context),
    lambda module: mlir_shard.run(module, f"builtin.module({{name}})", verify_each=verify),
    mlir_shard.print_module,
)
"""

SHARDY = f"""
import json, re, sys, time
import jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo
text, name, repeat, verify = open(sys.argv[1]).read(), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "True"
{MEASURE}
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context = ir.Context()
context.enable_multithreading(False)
context.append_dialect_registry(registry)
context.load_all_available_dialects()
_sdy.register_dialect(context)
_chlo.register_dialect(context)
_stablehlo.register_dialect(context)

def run(module):
    manager = passmanager.PassManager.parse(f"builtin.module({{name}})")
    manager.enable_verifier(verify)
    manager.run(module.operation)

with context:
    measure(ir.Module.parse, run, str)
"""


@dataclass(frozen=True)
class Measurement:
    """The median seconds of the pass, the bytes at its peak with the parsed module, and the module's text after it."""

    seconds: float
    memory: int
    module: str


@dataclass(frozen=True)
class Setting:
    """A pass and how to time it.

    Args:
        name: the pass.
        repeat: the number of timed runs in a process after the first; with 0 the first run is timed.
        verify: verify the module after each pass.
        folder: the folder for the file of the module.
        fresh: time `repeat` processes, and in each the first run.
        frees: free the module of each run before the next is parsed.
    """

    name: str
    repeat: int
    verify: bool
    folder: Path
    fresh: bool = False
    frees: bool = False


def measure(script: str, text: str, setting: Setting) -> Measurement:
    """Measures one side in a separate process, or in several processes."""
    if setting.fresh:
        once = replace(setting, repeat=0, fresh=False)
        several = [measure(script, text, once) for _ in range(setting.repeat)]
        return replace(several[-1], seconds=statistics.median(one.seconds for one in several))
    file = setting.folder / "module.mlir"
    file.write_text(text)
    command = [sys.executable, "-c", script, str(file), setting.name, str(setting.repeat), str(setting.verify)]
    command += ["--free"] if setting.frees else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    times, kilobytes, module = json.loads(done.stdout)
    return Measurement(statistics.median(times), kilobytes * 1024, module)


def shardings(module: str) -> list[str]:
    """Returns the shardings in a module's text, in order."""
    return re.findall(r"#sdy\.sharding(?:_per_value)?<.*?>(?=[,}>\s])", module)


def operations_in(text: str) -> int:
    """Returns the number of operations with results in a module's text."""
    return len(re.findall(r"^ *%[^=]* = ", text, re.MULTILINE))


def same_shardings(ours: list[str], theirs: list[str]) -> int:
    """Returns the number of shardings that the two modules have in common, in order."""
    if len(ours) == len(theirs):
        return sum(a == b for a, b in zip(ours, theirs, strict=True))
    matcher = difflib.SequenceMatcher(a=ours, b=theirs, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks())


def compare(text: str, title: str, setting: Setting) -> None:
    """Prints one line on a module, measured on both sides."""
    ours, shardy = (measure(script, text, setting) for script in (OURS, SHARDY))
    mine, theirs = shardings(ours.module), shardings(shardy.module)
    operations = operations_in(text)
    print(
        f"{title}, {operations} operations: here {ours.seconds:.3f} s ({ours.seconds / operations * 1e6:.1f} us an "
        f"operation, {ours.memory / 2**20:.0f} MiB), Shardy {shardy.seconds:.3f} s "
        f"({shardy.seconds / operations * 1e6:.1f} us, {shardy.memory / 2**20:.0f} MiB): "
        f"{shardy.seconds / ours.seconds:.2f} times as fast; "
        f"{same_shardings(mine, theirs)} of {len(theirs)} shardings the same",
        flush=True,
    )


def alone(text: str, title: str, setting: Setting) -> None:
    """Prints one line on a module, measured only here."""
    ours, operations = measure(OURS, text, setting), operations_in(text)
    print(
        f"{title}, {operations} operations: here {ours.seconds:.3f} s ({ours.seconds / operations * 1e6:.1f} us an "
        f"operation, {ours.memory / 2**20:.0f} MiB)",
        flush=True,
    )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="*", default=[12, 48, 400])
    parser.add_argument("--different", type=int, nargs="*", default=[12, 48], help="numbers of layers that all differ")
    parser.add_argument("--linalg", type=int, nargs="*", default=[1000, 10000, 100000])
    parser.add_argument("--pass", dest="name", default="sdy-propagation-pipeline")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-verify", dest="verify", action="store_false", help="do not verify between passes")
    runs = parser.add_mutually_exclusive_group()
    runs.add_argument("--fresh", action="store_true", help="time the first run of each process")
    runs.add_argument("--free", action="store_true", help="free each module before the next is parsed")
    parser.add_argument("--alone", action="store_true", help="do not measure Shardy")
    arguments = parser.parse_args()
    of_gradient = alone if arguments.alone else compare
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(
            arguments.name, arguments.repeat, arguments.verify, Path(folder), arguments.fresh, arguments.free
        )
        for layers in arguments.layers:
            of_gradient(lowered_gradient(layers), f"gradient of {layers} layers", setting)
        for layers in arguments.different:
            of_gradient(lowered_gradient(layers, growing=True), f"gradient of {layers} layers that differ", setting)
        for operations in arguments.linalg:
            alone(linalg_layers(operations), "linalg module", setting)


if __name__ == "__main__":
    main()
