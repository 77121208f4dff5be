# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Execution of sharded programs: `execute(module, inputs)` runs a global module on MPI ranks or PJRT devices.

compile      global module -> the per-device program
lowering     tensors and collectives -> the LLVM dialect, by host passes
execution    global inputs and results of a program
backends     the lowering and the engine of each way to run a program
mpi          MPI ranks, started by mpiexec
pjrt         PJRT devices in one process, which imports jax
verify       comparison of the results of the sharded and the unsharded program
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir_shard.runtime.error import RunError
    from mlir_shard.runtime.execution import execute

__all__ = ["RunError", "execute"]


def __getattr__(name: str) -> Any:
    # A rank imports this package before it forks, so this file imports nothing else.
    if name == "execute":
        from mlir_shard.runtime.execution import execute

        return execute
    if name == "RunError":
        from mlir_shard.runtime.error import RunError

        return RunError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
