# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sharded programs: `execute(module, inputs)` runs a global module on MPI ranks or devices of PJRT.

compile      global module -> the program of a rank
lowering     tensors and collectives -> the LLVM dialect, by host passes
execution    global inputs and results of a program
backends     what a program is lowered to, and what runs that
mpi          ranks under mpiexec
pjrt         devices in a process with jax
verify       the sharded program's results against the unsharded one's
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir_shard.runtime.error import RunError
    from mlir_shard.runtime.execution import execute

__all__ = ["RunError", "execute"]


def __getattr__(name: str) -> Any:
    # A rank loads this package before it forks, so nothing else is loaded here.
    if name == "execute":
        from mlir_shard.runtime.execution import execute

        return execute
    if name == "RunError":
        from mlir_shard.runtime.error import RunError

        return RunError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
