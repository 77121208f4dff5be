# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory predicted for training steps on two devices, beside the memory that XLA assigns and that MPI ranks need.

    python benchmarks/memory.py [--only llama] [--layers 48]

The steps are those of model_steps.py. On PJRT, the prediction is compared with the sizes of arguments, results, aliases
and temporaries that XLA reports for the compiled local program (`memory_analysis`). On MPI, it is compared with the
memory that the compiled program allocates, and with the peak memory of a rank in its first call, as measured by
`shard-run --timing`, the larger of both ranks. At the end it prints the time of a prediction for the local program of
the gradient of a transformer on 8 devices: the median of five, in processor time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import Any

import jax
import numpy as np
from model_steps import Step, llama, lowered, resnet, transformer
from rich.console import Console
from rich.table import Table
from transformer import lowered_gradient

import mlir_shard as ms
from mlir_shard.explain.memory import peak_memory
from mlir_shard.ir.editing import ops_below
from mlir_shard.runtime.backends import MPI, PJRT, backend
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.execution import run_program
from mlir_shard.runtime.pjrt import xla_module
from mlir_shard.runtime.pjrt.executable import PjrtExecutable
from mlir_shard.runtime.program import RankTimes

_MIB = 2**20


def in_xla(module: Any) -> tuple[int, int]:
    """Returns the memory predicted for a global module on PJRT, and that reported by XLA, in bytes."""
    pipelines = backend(PJRT).pipelines
    compiled = compile_module(module, pipelines=pipelines, with_unsharded=False, lower=xla_module.lower).sharded
    local = ms.parse(compiled.text, ms.create_context())
    return peak_memory(local, engine="pjrt").without_constants, PjrtExecutable(compiled, "cpu").memory()


def on_ranks(module: Any, arrays: Sequence[Any]) -> tuple[int, int, int]:
    """Returns the memory of a global module on MPI in bytes: predicted, allocated, and measured on a rank."""
    seen: list[Sequence[RankTimes]] = []
    predicted: list[int] = []
    chosen = backend(MPI, observe=seen.append)

    def watch(stage: str, shown: Any) -> None:
        if stage == "local":
            predicted.append(peak_memory(shown, engine="mpi").without_constants)

    compiled = compile_module(module, with_unsharded=False, watch=watch, lower=chosen.lower).sharded
    run_program(compiled, arrays, chosen.engine)
    measured = max(one.peak_bytes or 0 for one in seen[-1])
    return predicted[0], compiled.peak_bytes or 0, measured


def measure(step: Step, table: Table) -> None:
    """Adds a row for a step to the table, and prints it."""
    program, weights, x = lowered(step)
    arrays = [np.asarray(one) for one in jax.tree.leaves((weights, x))]
    text = program.as_text()
    row = [step.name]
    predicted, stated = in_xla(ms.parse(text, ms.create_context()))
    row += [_mib(predicted), _mib(stated), _off(predicted, stated)]
    predicted, allocated, measured = on_ranks(ms.parse(text, ms.create_context()), arrays)
    row += [_mib(predicted), _mib(allocated), _mib(measured), _off(predicted, allocated), _off(predicted, measured)]
    table.add_row(*row)
    print(*row, flush=True)


def _mib(size: int) -> str:
    return f"{size / _MIB:.2f}"


def _off(predicted: int, measured: int) -> str:
    return f"{predicted / measured - 1:+.1%}"


def time_predictions(layers: int) -> None:
    """Prints a line for each engine."""
    # In another process, because JAX cannot change the number of devices, and the steps have fewer.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        text = other.submit(lowered_gradient, layers).result()
    for engine, collectives in (("pjrt", "stablehlo"), ("mpi", "shard")):
        module = ms.parse(text, ms.create_context())
        ms.run(module, f"builtin.module(spmd-pipeline{{collectives={collectives}}})")
        seconds = []
        for _ in range(5):
            begin = time.process_time()
            peak_memory(module, engine=engine)
            seconds.append(time.process_time() - begin)
        count = sum(1 for _ in ops_below(module))
        print(f"{engine}: {median(seconds):.2f} s for {count:,} operations")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the models with this in their name")
    parser.add_argument("--layers", type=int, default=48, help="of the gradient for which predictions are timed")
    arguments = parser.parse_args()
    steps = [transformer(2, "data"), transformer(2, "model"), llama("data"), llama("model"), resnet()]
    table = Table(
        "step",
        "PJRT",
        "XLA states",
        "off",
        "MPI",
        "allocated",
        "measured",
        "off allocated",
        "off measured",
        title="MiB",
    )
    for step in steps:
        if arguments.only.lower() in step.name.lower():
            measure(step, table)
    Console(width=140).print(table)
    time_predictions(arguments.layers)


if __name__ == "__main__":
    main()
