# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine that runs programs on PJRT devices; only the process that it starts imports jax."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch import python_process
from mlir_shard.runtime.launch.processes import RankProcesses
from mlir_shard.runtime.program import Observe, Program, run_and_close

CPU = "cpu"
_DEVICE_COUNT = "--xla_force_host_platform_device_count"


@dataclass(frozen=True, slots=True)
class PjrtEngine:
    """An engine that runs programs in StableHLO, see `xla_module`, in a separate process with jax.

    platform: `cpu`, with as many devices as a program needs, or another platform of jax that has enough devices. A run
    of more than `timeout` seconds is stopped. `observe` is called with the times of the process.
    """

    timeout: float | None = None
    platform: str = CPU
    observe: Observe | None = None
    repeat: int = 1

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Implements `Engine.run`."""
        return run_and_close(self.start(program), inputs, program.ranks, self.repeat)

    def start(self, program: Program) -> RankProcesses:
        """Implements `DeviceEngine.start`."""
        check_installed()
        arguments = ["pjrt", self.platform]
        environment = python_process.python_environment(_settings(self.platform, program.ranks))
        # Collectives need one thread per device, which XLA provides.
        return RankProcesses(
            program, [], arguments, environment, self.timeout, in_one_process=True, observe=self.observe
        )


def check_installed() -> None:
    """Raises RunError if jax is not installed, before anything is compiled."""
    for package in ("jax", "jaxlib"):
        if importlib.util.find_spec(package) is None:
            raise RunError(f"the package {package}, which provides PJRT, is not installed: pip install jax")


def _settings(platform: str, devices: int) -> dict[str, str]:
    """Returns the environment variables that jax reads when it is imported."""
    flags = os.environ.get("XLA_FLAGS", "")
    if platform == CPU:
        kept = re.sub(rf"{_DEVICE_COUNT}=\S*", "", flags).split()
        flags = " ".join([*kept, f"{_DEVICE_COUNT}={devices}"])
    return {"JAX_PLATFORMS": platform, "JAX_ENABLE_X64": "1", "XLA_FLAGS": flags}
