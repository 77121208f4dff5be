# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The difference of two programs, for Python."""

from __future__ import annotations

from typing import Any

from mlir_shard.explain.difference.changes import Difference
from mlir_shard.explain.difference.compare import compare
from mlir_shard.frontend.program import LocalProgram, Program
from mlir_shard.runtime.backends import SHARD


def diff(before: Any, after: Any, *, collectives: str = SHARD, keeps_order: bool = False) -> Difference:
    """Returns the changes between two programs in annotations, shardings, collectives, bytes and predicted time.

    Names, and the order of functions and of independent operations, are ignored.

    Args:
        before, after: the programs: a `Program`, a `LocalProgram` or a module each. If one is local, only local
            programs are compared.
        collectives: the dialect of the collectives of local programs, `shard` or `stablehlo`.
        keeps_order: whether to partition the second program in its own order instead of that of the first.

    Raises:
        PassFailure: a program cannot be partitioned.
    """
    modules = (one.module if isinstance(one, Program | LocalProgram) else one for one in (before, after))
    return compare(*modules, collectives=collectives, keeps_order=keeps_order)
