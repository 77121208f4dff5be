# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collective matmuls on MPI ranks with the message times of a slow link, with and without overlap.

    python benchmarks/overlap.py [--ranks 2 4] [--size 2048] [--share 0.5]

A matrix is gathered for a matrix product, or a product is reduced and scattered. The MPI of the ranks is MPICH behind
`slow_link`, which is compiled by cc: messages take `--share` of the time of the product. Prints the median milliseconds
of a call with and without overlap, those of the messages, and the share of these that is hidden: the difference of both
calls divided by the time of the messages. All results are compared with those of one device.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mlir_shard.runtime.launch.mpi import MpiInstallation

SOURCE = Path(__file__).parent / "slow_link" / "slow_link.c"
PIPELINE = "shard-propagate;shard-spmdize{{overlap={overlap}}}"
MATMUL = """
sdy.mesh @mesh = <["x"={ranks}]>
func.func @main(%a: tensor<{size}x{size}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{a}]>}},
                %b: tensor<{size}x{size}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{b}]>}})
    -> (tensor<{size}x{size}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{c}]>}}) {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<{size}x{size}xf32>, tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32>
  return %0 : tensor<{size}x{size}xf32>
}}
"""
ROWS, COLUMNS = '{"x"}, {}', '{}, {"x"}'
CASES = {
    "all-gather, then matmul": {"a": ROWS, "b": COLUMNS, "c": COLUMNS},
    "matmul, then reduce-scatter": {"a": COLUMNS, "b": ROWS, "c": ROWS},
}


def slow_mpi(folder: Path) -> Path:
    """Makes an installation of MPI in `folder`, MPICH with slow messages; returns its launcher."""
    found = MpiInstallation.find()
    for name in ("bin", "lib"):
        (folder / name).mkdir()
    launcher, library = folder / "bin" / "mpiexec", folder / "lib" / "libmpi.so.12"
    launcher.write_text(f'#!/bin/sh\nexec "{found.launcher}" "$@"\n')
    launcher.chmod(0o755)
    linked = [str(found.library), f"-Wl,-rpath,{found.library.parent}"]
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, *linked], check=True)
    return launcher


def later_runs(program: Path, launcher: Path, overlap: bool, link: dict[str, str]) -> tuple[float, dict[str, Any]]:
    """Returns the seconds of a call of the slowest rank, without the first call, and all times of shard-run."""
    command = [
        sys.executable,
        "-m",
        "mlir_shard.tools.shard_run",
        str(program),
        "--mpi",
        str(launcher),
        "--timing=json",
    ]
    pipeline = PIPELINE.format(overlap=str(overlap).lower())
    ended = subprocess.run(
        [*command, "--repeat", "9", "--pipeline", pipeline],
        env={**os.environ, **link},
        capture_output=True,
        text=True,
        check=True,
    )
    times = json.loads(ended.stdout.partition("\n\n")[2])
    return max(one["later_runs"] for one in times["ranks"]), times


def main() -> None:
    """Prints a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--share", type=float, default=0.5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        launcher, program = slow_mpi(folder), folder / "program.mlir"
        for ranks in arguments.ranks:
            for title, shardings in CASES.items():
                program.write_text(MATMUL.format(ranks=ranks, size=arguments.size, **shardings))
                computing, _ = later_runs(program, launcher, False, {})
                # The bandwidth follows from the shards that a device receives in a ring.
                messages = arguments.share * computing
                block = 4 * arguments.size**2 / ranks
                link = {"SLOW_LINK_BANDWIDTH": str((ranks - 1) * block / messages)}
                without, _ = later_runs(program, launcher, False, link)
                overlapped, times = later_runs(program, launcher, True, link)
                hidden = (without - overlapped) / messages
                waited = max(one["in_messages"] for one in times["ranks"])
                print(
                    f"{ranks} ranks, {title:28} without overlap {without * 1e3:6.1f} ms, with {overlapped * 1e3:6.1f}"
                    f" ms, messages {messages * 1e3:6.1f} ms: {hidden:4.0%} hidden, {waited * 1e3:5.1f} ms in MPI"
                )


if __name__ == "__main__":
    main()
