# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes that bring a program into the form propagation works on, in their order."""

from __future__ import annotations

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline


@register_pipeline("sdy-import-pipeline", "Brings a program into the form that propagation works on")
def import_pipeline(
    dedup_functions_fully: bool = option(False, "keep one copy of each function, whatever its callers' shardings"),
) -> str:
    """Meshes named and cleaned, constants split, data flow made explicit; and where functions stay as they are,
    constraints applied and groups formed here already, else after the calls have been imported."""
    passes = [
        "symbol-dce",
        "sdy-lift-inlined-meshes",
        "sdy-remove-size-one-axes",
        "sdy-propagate-sharding-from-func-to-call",
        "sdy-constant-or-scalar-splitter",
        "symbol-dce",
        "sdy-manual-axes-cleanup",
        "sdy-add-data-flow-edges",
    ]
    if dedup_functions_fully:
        passes += ["sdy-apply-sharding-constraints", "sdy-sharding-group-import"]
    return ",".join(passes)
