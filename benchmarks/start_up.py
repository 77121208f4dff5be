# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Start-up: shard-opt beside the host's own, in one run.

    python benchmarks/start_up.py [--repeat 15]

`host` is a Python process that imports the bindings, makes a context with all dialects and parses an empty module.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from mlir_shard import host

HOST_EMPTY = f"""
from {host.PREFIX} import ir
context = ir.Context()
print(ir.Module.parse("module {{}}", context))
"""


def median_seconds(command: list[str], repeat: int, text: str = "module {}") -> float:
    """The median wall time of a command that reads `text`."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(command, input=text.encode(), check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    shard_opt = [sys.executable, "-m", "mlir_shard.tools.shard_opt"]
    baseline = median_seconds([sys.executable, "-c", HOST_EMPTY], repeat)
    rows = {
        "python -c pass": median_seconds([sys.executable, "-c", "pass"], repeat),
        "host, empty module": baseline,
        "shard-opt --version": median_seconds([*shard_opt, "--version"], repeat),
        "shard-opt, empty module": median_seconds([*shard_opt, "-"], repeat),
    }
    for name, seconds in rows.items():
        print(f"{name:<28} {seconds * 1000:6.0f} ms  {seconds / baseline:.2f} of the host's")


if __name__ == "__main__":
    main()
