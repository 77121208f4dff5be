# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipelines that run on inputs: those of most users, and each pass of the project alone."""

from __future__ import annotations

import functools

from mlir_shard.passes import registry
from mlir_shard.passes.own_listing import passes

FREQUENT = (
    "builtin.module(shard-propagate,shard-spmdize)",
    "builtin.module(spmd-pipeline{collectives=stablehlo})",
    "builtin.module(sdy-propagation-pipeline)",
    "builtin.module(canonicalize)",
)
# These passes write to files or to standard output.
_WITH_FILES = frozenset({"sdy-save-module", "shard-communication-report"})
_MODULE = "builtin.module"
_PROJECT = "mlir_shard."


@functools.cache
def pipelines() -> tuple[str, ...]:
    """Returns each pass, with the nesting that it needs, and each pipeline of the project."""
    registry.search("mlir_shard.transforms")
    # Other tests in this process may have registered passes of their own.
    alone = {name: one.anchor for name, one in registry.registered().items() if one.__module__.startswith(_PROJECT)}
    nested = [
        f"{_MODULE}({name})" if anchor in (None, _MODULE) else f"{_MODULE}({anchor}({name}))"
        for name, anchor in alone.items()
        if name not in _WITH_FILES
    ]
    return (*nested, *(f"{_MODULE}({name})" for name in registry.registered_pipelines()))


@functools.cache
def own_passes() -> frozenset[str]:
    """Returns the names of the passes of the project."""
    return frozenset(passes())
