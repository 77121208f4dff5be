# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Signals that end a tool inside MLIR, such as SIGSEGV."""

from __future__ import annotations

import faulthandler

from mlir_shard import _native


def report(tool: str, status: int = 1) -> None:
    """Makes the process name the activity that such a signal interrupts, and then exit with a status.

    Has no effect if Python's faulthandler is enabled, as by `python -X faulthandler`, because it shows more.
    """
    if not faulthandler.is_enabled():
        _native.report_crashes(tool, status)
