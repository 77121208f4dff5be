# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contexts in which programs of this project live."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy, user_dialects


def create_context(*, allow_unregistered: bool = False) -> Any:
    """An `ir.Context` with every upstream dialect, StableHLO, CHLO and VHLO, and with sdy on top, and the dialects
    that users have registered.

    Multithreading is off: programs are small beside the cost of starting threads, and runs stay deterministic.
    """
    context = host.upstream_context()
    context.allow_unregistered_dialects = allow_unregistered
    sdy.load(context)
    user_dialects.load(context)
    return context
