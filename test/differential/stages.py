# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes that are compared, each on Shardy's output of the previous pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# Passes that Shardy runs on functions.
_ON_FUNCTIONS = frozenset(
    (
        "sdy-constant-or-scalar-merger",
        "sdy-explicit-gather-scatter-batching",
        "sdy-populate-op-sharding-rules",
        "sdy-sharding-constraint-to-reshard",
        "sdy-sink-data-flow-edges",
        "sdy-sink-func-data-flow-edges",
    )
)
# The strategies of the aggressive pass, and of those built on it, for conflicts.
_STRATEGIES = ("aggressive", "basic-then-aggressive")

PROPAGATION = (
    "sdy-basic-propagate",
    "sdy-basic-propagate{conservative-propagation=true}",
    *(f"sdy-aggressive-propagate{{propagation-strategy={one}}}" for one in _STRATEGIES),
    *(f"sdy-op-priority-propagate{{propagation-strategy={one}}}" for one in ("basic", *_STRATEGIES)),
    *(f"sdy-user-priority-propagate{{propagation-strategy={one}}}" for one in ("basic", *_STRATEGIES)),
    "sdy-user-priority-propagate{run-op-priority-propagation=false propagation-strategy=basic}",
    "sdy-user-priority-propagate{conservative-propagation=true}",
)

WHOLE = "sdy-propagation-pipeline"
_BATCHING = "sdy-explicit-gather-scatter-batching"
_NAMES_AND_CONSTANTS = (
    "sdy-lift-inlined-meshes",
    "sdy-remove-size-one-axes",
    "sdy-propagate-sharding-from-func-to-call",
    "sdy-constant-or-scalar-splitter",
    _BATCHING,
    "symbol-dce",
    "sdy-manual-axes-cleanup",
    "sdy-add-data-flow-edges",
)
_CONSTRAINTS = ("sdy-apply-sharding-constraints", "sdy-sharding-group-import")
_PROPAGATED = "sdy-user-priority-propagate{keep-sharding-rules=true}"
_AFTERWARDS = (
    "sdy-unflatten-call-graph",
    "symbol-dce",
    "sdy-constant-or-scalar-merger",
    "sdy-sink-data-flow-edges",
    "sdy-sharding-constraint-to-reshard",
    "sdy-update-non-divisible-input-output-shardings",
    "sdy-close-shardings",
)


@dataclass(frozen=True, slots=True)
class Stage:
    """Passes that are compared one by one on the same module. The last one computes the module of the next stage.

    With `is_aside` the next stage has the same module instead. With `live` dead code is removed before, because
    Shardy's driver erases it together with the operations that it folds.
    """

    passes: tuple[str, ...]
    is_aside: bool = False
    live: bool = False


def _chain(*, functions_stay: bool) -> Iterator[Stage]:
    options = "{dedup-functions-fully=true}" if functions_stay else ""
    yield Stage((f"sdy-import-pipeline{options}",), is_aside=True)
    yield Stage((f"{WHOLE}{options}",), is_aside=True)
    # Shardy propagates only on named meshes.
    yield Stage(_NAMES_AND_CONSTANTS[:1])
    yield Stage(("sdy-basic-propagate", "sdy-user-priority-propagate"), is_aside=True)
    for name in _NAMES_AND_CONSTANTS[1:]:
        if name == _BATCHING:
            yield Stage((name,), is_aside=True, live=True)
        else:
            yield Stage((name,))
    around: tuple[str, ...]
    if functions_stay:
        around = (*_CONSTRAINTS, "sdy-add-func-data-flow-edges")
        back = ("sdy-propagate-to-func-results", "sdy-sink-func-data-flow-edges")
    else:
        around = ("sdy-flatten-call-graph", "symbol-dce", "sdy-import-func-calls", "symbol-dce", *_CONSTRAINTS)
        back = ("sdy-export-named-computations", "sdy-propagate-to-func-results")
    for name in (*around, "sdy-pre-order-funcs"):
        yield Stage((name,))
    yield Stage(("sdy-populate-op-sharding-rules", *PROPAGATION, _PROPAGATED))
    for name in (*back, *_AFTERWARDS):
        yield Stage((name,))


# The stages with functions kept, and with functions inlined and outlined again.
CHAINS = {stay: tuple(_chain(functions_stay=stay)) for stay in (False, True)}

REMOVAL_OF_DEAD_CODE = "trivial-dce"


def pipeline(name: str) -> str:
    """Returns a pass with its options as a pipeline for a module."""
    nested = name.split("{")[0] in _ON_FUNCTIONS
    return f"builtin.module(func.func({name}))" if nested else f"builtin.module({name})"
