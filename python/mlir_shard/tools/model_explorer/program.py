# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Explained programs from files, as graphs for Model Explorer."""

from __future__ import annotations

import io
import os
from functools import lru_cache

from mlir_shard.explain.model_explorer.graphs import Graphs
from mlir_shard.explain.model_explorer.local_graphs import LocalGraphs
from mlir_shard.tools import modules, source
from mlir_shard.tools.source import Console, Source


class ProgramError(ValueError):
    """A program that cannot be shown; the message is its diagnostics."""


def graphs_of(path: str) -> tuple[Graphs, LocalGraphs]:
    """Returns the graphs of the program in a file, and those of its local program.

    Raises:
        ProgramError: the program cannot be read or partitioned.
    """
    return _graphs_of(path, os.stat(path).st_mtime_ns)


@lru_cache(maxsize=4)
def _graphs_of(path: str, changed: int) -> tuple[Graphs, LocalGraphs]:
    from mlir_shard.dialects.contexts import create_context
    from mlir_shard.explain.explanation import explain
    from mlir_shard.passes.registry import PassFailure

    errors = io.StringIO()
    console = Console(errors)
    try:
        modules.load_passes((), console)
        # Model Explorer copies files to a folder whose name is meaningless to the user.
        named = Source(os.path.basename(path), source.read(path).text)
        module = modules.parse_module(named, create_context(), console)
        explanation = explain(module, sources=console.texts())
        return Graphs(explanation), LocalGraphs(explanation)
    except PassFailure as failure:
        for one in failure.diagnostics:
            console.report(one)
    except modules.Reported:
        pass
    raise ProgramError(errors.getvalue())
