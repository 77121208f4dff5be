# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation on a parsed module: this project beside the C++ Shardy in jaxlib, in one run.

    python benchmarks/propagation.py [--layers 12 48] [--pass sdy-basic-propagate] [--repeat 5]

Each side parses the gradient of a transformer anew for every measurement, in a process of its own, and times the pass
alone. Prints the median seconds, their ratio, and how many results have the same shardings afterwards.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from transformer import lowered_gradient

OURS = """
import json, sys, time
import mlir_shard
text, name, repeat = open(sys.argv[1]).read(), sys.argv[2], int(sys.argv[3])
context, times = mlir_shard.create_context(), []
for _ in range(repeat):
    module = mlir_shard.parse(text, context)
    start = time.perf_counter()
    mlir_shard.run(module, f"builtin.module({name})", verify_each=False)
    times.append(time.perf_counter() - start)
print(json.dumps([times, mlir_shard.print_module(module)]))
"""

SHARDY = """
import json, sys, time
import jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _sdy, _stablehlo
text, name, repeat = open(sys.argv[1]).read(), sys.argv[2], int(sys.argv[3])
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context, times = ir.Context(), []
context.enable_multithreading(False)
context.append_dialect_registry(registry)
context.load_all_available_dialects()
_sdy.register_dialect(context)
_stablehlo.register_dialect(context)
with context:
    for _ in range(repeat):
        module = ir.Module.parse(text)
        manager = passmanager.PassManager.parse(f"builtin.module({name})")
        manager.enable_verifier(False)
        start = time.perf_counter()
        manager.run(module.operation)
        times.append(time.perf_counter() - start)
    print(json.dumps([times, str(module)]))
"""


def measure(script: str, file: Path, name: str, repeat: int) -> tuple[float, str]:
    """The median seconds of the pass, and the module after it."""
    command = [sys.executable, "-c", script, str(file), name, str(repeat)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    times, module = json.loads(done.stdout)
    return statistics.median(times), module


def shardings(module: str) -> list[str]:
    """The shardings in a module's text, in its order."""
    return re.findall(r"sdy\.sharding = #sdy\.sharding(?:_per_value)?(<.*?>)[,}]", module)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 48])
    parser.add_argument("--pass", dest="name", default="sdy-basic-propagate")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    for layers in arguments.layers:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "gradient.mlir")
            text = lowered_gradient(layers)
            file.write_text(text)
            ours, our_module = measure(OURS, file, arguments.name, arguments.repeat)
            shardy, their_module = measure(SHARDY, file, arguments.name, arguments.repeat)
        mine, theirs = shardings(our_module), shardings(their_module)
        same = sum(a == b for a, b in zip(mine, theirs, strict=False))
        print(
            f"{layers} layers, {text.count(' = ')} operations: here {ours:.3f} s, Shardy {shardy:.3f} s, "
            f"{shardy / ours:.2f} times as fast; {same} of {len(theirs)} shardings the same"
        )


if __name__ == "__main__":
    main()
