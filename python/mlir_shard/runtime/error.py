# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exception that the runtime raises."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_shard.passes.diagnostic import Diagnostic


class RunError(Exception):
    """A program that cannot be compiled or run, inputs that do not fit it, or a rank that failed.

    `message` is the failed action; `diagnostics` have the reason and the place, if they are known.
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        return "\n".join([self.message, *map(str, self.diagnostics)])
