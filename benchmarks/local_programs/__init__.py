# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timing of a program of one rank in this process beside other libraries, on one core.

Import this before numpy and JAX: it sets their number of threads.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_ENABLE_X64"] = "1"

import contextlib
import io
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import mlir_shard
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.launch.jit import Executable
from mlir_shard.runtime.lowering.lowering_process import LoweringProcess


def ours(text: str) -> Callable[[Sequence[Any]], list[Any]]:
    """Compiles the function `main` of a module without sharding for this process."""
    module = mlir_shard.parse(text, mlir_shard.create_context())
    # The compilation warns that the program has no shardings.
    with contextlib.redirect_stderr(io.StringIO()):
        program = compile_module(module, with_unsharded=False, lower=LoweringProcess()).sharded
    return Executable(program)


def in_turn(functions: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """Calls the functions in turn; returns the median seconds of a call of each."""
    times: list[list[float]] = [[] for _ in functions]
    begin = time.perf_counter()
    while len(times[0]) < 5 or time.perf_counter() - begin < seconds:
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [median(taken) for taken in times]
