# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Signals that end a tool inside MLIR, such as SIGSEGV."""

from __future__ import annotations

import faulthandler

from mlir_shard import _native


def report(tool: str, status: int = 1) -> None:
    """Has the process name what was at work when such a signal ends it, and then exit with a status.

    Nothing changes where Python's faulthandler is enabled, as `python -X faulthandler` does: that shows more.
    """
    if not faulthandler.is_enabled():
        _native.report_crashes(tool, status)
