# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Explanations of values, for the options `--explain` of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mlir_shard.tools.command_line import UsageError


def values_text(module: Any, queries: Iterable[str], sources: Mapping[str, str], collectives: str = "shard") -> str:
    """Returns the explanations of the shardings of the values that queries select.

    Raises:
        UsageError: a query selects no value.
        PassFailure: the program cannot be partitioned.
    """
    from mlir_shard.explain.explanation import explain
    from mlir_shard.explain.selection import NothingSelected

    explanation = explain(module, collectives=collectives, sources=sources)
    try:
        return "\n\n".join(map(explanation.value, queries))
    except NothingSelected as error:
        raise UsageError(f"--explain: {error}") from None
