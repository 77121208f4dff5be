# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pass that ends the process by a signal, as a mistake in MLIR would."""

from __future__ import annotations

import os
import signal
from typing import Any

from mlir_shard import Pass, _native, option, register


@register
class Crash(Pass):
    """Sends a signal to the process; leaves a file in a folder that must be removed."""

    name = "crash"
    anchor = "func.func"
    summary = "Crashes"

    number: str = option("SIGSEGV", "the name of the signal")
    folder: str = option("", "a folder to make")

    def run(self, op: Any) -> None:
        """Crashes."""
        if self.folder:
            os.makedirs(os.path.join(self.folder, "inner"))
            _native.remove_at_crash(self.folder)
        os.kill(os.getpid(), getattr(signal, self.number))
