# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs by XLA in this process, on virtual devices of its CPU."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence

from mlir_shard.runtime import RunError, arrays
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.program import Program


def prepare(devices: int) -> None:
    """Loads jax with enough devices for any program."""
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={devices} --xla_backend_optimization_level=0 "
        "--xla_llvm_disable_expensive_passes=true --xla_disable_hlo_passes=algsimp"
    )
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_ENABLE_X64"] = "1"
    importlib.import_module("mlir_shard.runtime.pjrt.executable")


class EngineError(RunError):
    """An internal error of XLA."""


class XlaEngine:
    """Runs programs in StableHLO for at most the available number of devices. EngineError if XLA fails."""

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Runs a program as `Engine.run` does."""
        blocks = []
        for port, whole in zip(program.arguments, inputs, strict=True):
            cut = [arrays.cut(whole, box, port.local.shape) for box in port.boxes]
            blocks.append([arrays.presented(block, port.spec.element_type) for block in cut])
        try:
            return run_on_devices(program, blocks)
        except RunError as error:
            raise EngineError(error.message) from error


def run_on_devices(program: Program, blocks: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Returns the local results of each device in storage form, for the shards of each argument on all devices."""
    from mlir_shard.runtime.pjrt.executable import PjrtExecutable

    executable = PjrtExecutable(program, "cpu")
    results = executable([executable.put(of_argument) for of_argument in blocks])
    of_results = [executable.take(result) for result in results]
    return [[of_result[rank] for of_result in of_results] for rank in range(program.ranks)]
