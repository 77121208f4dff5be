# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sharded programs: `execute(module, inputs, ranks)` runs a global module on MPI ranks of this machine.

compile      global module -> the program of a rank, in the LLVM dialect
lowering     tensors and collectives -> the LLVM dialect, by host passes
execution    global inputs and results of a program
mpi          ranks under mpiexec
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
