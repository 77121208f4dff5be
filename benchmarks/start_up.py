# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Start-up: the processor time, user and system, of shard-opt as a process, beside the host's own, in one run.

    python benchmarks/start_up.py [--repeat 15]

`host` is a Python process that imports the bindings, makes a context with all dialects and parses an empty module. The
small program is the example of the README. Prints medians.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from mlir_shard import host

HOST_EMPTY = f"""
from {host.PREFIX} import ir
context = ir.Context()
print(ir.Module.parse("module {{}}", context))
"""
SMALL = """
sdy.mesh @mesh = <["data"=2, "model"=2]>

func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.dot %x, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def processor_seconds(command: list[str], repeat: int, status: int = 0) -> float:
    """The median processor time of a command, which has to exit with `status`."""
    times = []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, input=b"module {}", capture_output=True, check=False)
        if done.returncode != status:
            sys.exit(f"{' '.join(command)} has exited with {done.returncode}: {done.stderr.decode()}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return statistics.median(times)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    shard_opt = [sys.executable, "-m", "mlir_shard.tools.shard_opt"]
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.mlir")
        small.write_text(SMALL)
        rows = {
            "python -c pass": processor_seconds([sys.executable, "-c", "pass"], repeat),
            "host, empty module": processor_seconds([sys.executable, "-c", HOST_EMPTY], repeat),
            "shard-opt --version": processor_seconds([*shard_opt, "--version"], repeat),
            "shard-opt --help": processor_seconds([*shard_opt, "--help"], repeat),
            "a misspelt flag": processor_seconds([*shard_opt, str(small), "--spmd-pipelin"], repeat, status=1),
            "shard-opt, empty module": processor_seconds([*shard_opt, "-"], repeat),
            "a small program": processor_seconds([*shard_opt, str(small)], repeat),
            "its shard-propagate": processor_seconds([*shard_opt, str(small), "--shard-propagate"], repeat),
            "its spmd-pipeline": processor_seconds([*shard_opt, str(small), "--spmd-pipeline"], repeat),
            "the same in StableHLO": processor_seconds(
                [*shard_opt, str(small), "--spmd-pipeline=collectives=stablehlo"], repeat
            ),
        }
    for name, seconds in rows.items():
        print(f"{name:<28} {seconds * 1000:6.0f} ms  {seconds / rows['host, empty module']:.2f} of the host's")


if __name__ == "__main__":
    main()
