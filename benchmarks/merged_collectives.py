# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradient of a JAX transformer on MPI ranks, with and without merged collectives.

    python benchmarks/merged_collectives.py [--layers 1] [--sizes 64 8 128 16 8] [--runs 100]

Prints the number of collectives of each kind in both programs, the difference of their results, and the time of a run:
all ranks begin together, and run the two programs in turn. The time is that of the slowest rank, as the median and the
quartiles of all runs except the first. benchmarks/jax_transformer.py compares the results with those of JAX.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from jax_transformer import random_arrays
from transformer import DEVICES, Sizes, transformer

import mlir_shard
from mlir_shard.runtime import arrays
from mlir_shard.runtime.compile import LOCAL, Pipelines, compile_module
from mlir_shard.runtime.launch import python_process
from mlir_shard.runtime.launch.jit import Executable
from mlir_shard.runtime.launch.mpi import MpiInstallation
from mlir_shard.runtime.launch.mpi_library import MpiProcess
from mlir_shard.runtime.launch.run_folder import Exchange
from mlir_shard.transforms.communication.shard_communication_report import communication_report
from mlir_shard.transforms.communication.simplify import shard_optimize_communication
from mlir_shard.transforms.partition.pipelines import shard_spmdize

_TITLES = ("merged", "not merged")
_MERGE = "shard-merge-collectives,"
# As for other runs: waiting ranks yield the core, and messages go through shared memory.
_SETTINGS = {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "64",
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "FI_PROVIDER": "tcp",
}


def write_programs(folder: Path, layers: int, sizes: Sizes) -> None:
    """Compiles both programs, and writes them with their inputs to separate folders."""
    import jax

    model = transformer(layers, sizes)
    text = model.lower(jax.grad(model.loss)).as_text()
    inputs = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(random_arrays(model))]
    module = mlir_shard.parse(text, mlir_shard.create_context())
    # The last pass is the pipeline that merges collectives.
    local = shard_spmdize(collectives="shard", planner="optimal", remarks_above=None, verify_repetition=False)
    before = local.rpartition(",")[0]
    merged = shard_optimize_communication(collectives="shard")
    for title, optimize in zip(_TITLES, (merged, merged.replace(_MERGE, "")), strict=True):

        def count(stage: str, local: Any, title: str = title) -> None:
            if stage == LOCAL:
                found = communication_report(local.operation).collectives
                kinds = Counter(one.communication.kind.value for one in found)
                print(f"{title}: {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}", flush=True)

        pipelines = Pipelines(spmdize=f"{before},{optimize}")
        program = compile_module(module, pipelines=pipelines, with_unsharded=False, watch=count).sharded
        (folder / title).mkdir()
        Exchange(folder / title).write_program(program, inputs, os.getpid())


def be_rank(folder: Path, library: Path, runs: int) -> None:
    """Runs both programs in turn; the first rank prints the results of all ranks."""
    mpi = MpiProcess(library)
    compiled, blocks = [], []
    for title in _TITLES:
        exchange = Exchange(folder / title)
        program, _ = exchange.read_program()
        compiled.append(Executable(program, mpi))
        blocks.append(
            [
                arrays.cut(exchange.read_input(index), port.boxes[mpi.rank], port.local.shape)
                for index, port in enumerate(program.arguments)
            ]
        )
    seconds = np.zeros((len(_TITLES), runs))
    off = 0.0
    for run in range(runs):
        results = []
        for number, call in enumerate(compiled):
            inputs = [block.copy() for block in blocks[number]]
            mpi.barrier()
            begin = time.perf_counter()
            results.append(call(inputs))
            seconds[number, run] = time.perf_counter() - begin
        off = max(
            off,
            *(float(np.abs(one - other).max() / np.abs(other).max()) for one, other in zip(*results, strict=True)),
        )
    slowest = np.max(mpi.all_gather(seconds), axis=0)[:, 1:]
    worst = max(float(one[0]) for one in mpi.all_gather(np.array([off])))
    if mpi.rank == 0:
        print(f"results are off from each other by {worst:.1e} at most, relative to the largest of a tensor")
        quartiles = np.percentile(slowest, [25, 50, 75], axis=1).T * 1e3
        for title, (low, middle, high) in zip(_TITLES, quartiles, strict=True):
            print(f"{title}: {middle:.1f} ms, quartiles {low:.1f} and {high:.1f}")
        print(f"ratio {quartiles[0][1] / quartiles[1][1]:.2f}", flush=True)
    mpi.finalize()


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument(
        "--sizes", type=int, nargs=5, default=[64, 8, 128, 16, 8], help="width heads hidden length batch"
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rank", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        be_rank(*arguments.rank, arguments.runs)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_programs(Path(folder), arguments.layers, Sizes(*arguments.sizes))
        mpi = MpiInstallation.find()
        rank = [sys.executable, __file__, "--runs", str(arguments.runs), "--rank", folder, str(mpi.library)]
        environment = python_process.python_environment(_SETTINGS)
        sys.exit(subprocess.run([*mpi.command(DEVICES), *rank], env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
