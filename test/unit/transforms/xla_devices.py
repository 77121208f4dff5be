# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs local StableHLO programs on virtual devices of XLA, however few processors the machine has.

The devices are in a separate process, which is reused: their number has to be set before jax is loaded.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from hang_guard import SECONDS
from random_programs import xla_engine

from mlir_shard.runtime import arrays, interface
from mlir_shard.runtime.pjrt import xla_module
from mlir_shard.runtime.program import Program

Array = Any
_MOST_DEVICES = 8


def run(module: Any, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Returns the results of `main` on each device, for its arguments on each device. At most eight devices."""
    (lowered,) = xla_module.lower([str(module)], "main")
    ports = interface.ports(interface.entry_function(module, "main"), 1)
    executor, pid = _process()
    future = executor.submit(_run, Program(lowered, "main", *ports, len(inputs)), inputs)
    if not wait([future], SECONDS).done:
        os.kill(pid, signal.SIGKILL)
    try:
        return future.result()
    except BrokenProcessPool:
        _process.cache_clear()
        raise


@functools.cache
def _process() -> tuple[ProcessPoolExecutor, int]:
    executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), xla_engine.prepare, (_MOST_DEVICES,))
    return executor, executor.submit(os.getpid).result()


def _run(program: Program, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    types = [port.spec.element_type for port in program.results]
    returned = xla_engine.run_on_devices(program, list(zip(*inputs, strict=True)))
    return [list(map(arrays.presented, of_device, types)) for of_device in returned]
