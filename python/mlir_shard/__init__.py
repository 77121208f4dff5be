# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor sharding for MLIR: propagation, resharding and SPMD partitioning on the upstream bindings.

    context = mlir_shard.create_context()
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, "builtin.module(sdy-basic-propagate,canonicalize)")
    print(mlir_shard.print_module(module))

Names are imported at their first use, so that `import mlir_shard` is fast.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

__all__ = [
    "Mesh",
    "P",
    "ParseError",
    "Pass",
    "PassFailure",
    "PipelineError",
    "Program",
    "annotate",
    "create_context",
    "diff",
    "execute",
    "from_jax",
    "from_torch",
    "interfaces",
    "load",
    "option",
    "parse",
    "plan_reshard",
    "print_module",
    "register",
    "register_pipeline",
    "remark",
    "run",
    "warn",
]

# The module that defines each public name, and the name in that module; empty if the name is the module.
_ORIGINS = {
    "Mesh": ("sharding", "Mesh"),
    "P": ("sharding.partition_spec", "PartitionSpec"),
    "ParseError": ("asm", "ParseError"),
    "Pass": ("passes.registry", "Pass"),
    "PassFailure": ("passes.registry", "PassFailure"),
    "PipelineError": ("passes.resolution", "PipelineError"),
    "Program": ("frontend.program", "Program"),
    "annotate": ("frontend.annotate", "annotate"),
    "create_context": ("dialects.contexts", "create_context"),
    "diff": ("frontend.difference", "diff"),
    "execute": ("runtime.execution", "execute"),
    "from_jax": ("frontend.from_jax", "from_jax"),
    "from_torch": ("frontend.from_torch", "from_torch"),
    "interfaces": ("interfaces", ""),
    "load": ("frontend.load", "load"),
    "option": ("passes.options", "option"),
    "parse": ("dialects.parsing", "parse"),
    "plan_reshard": ("frontend.plan_reshard", "plan_reshard"),
    "print_module": ("dialects.printing", "print_module"),
    "register": ("passes.registry", "register"),
    "register_pipeline": ("passes.registry", "register_pipeline"),
    "remark": ("passes.diagnostic", "remark"),
    "run": ("passes.runner", "run"),
    "warn": ("passes.diagnostic", "warn"),
}


def __getattr__(name: str) -> Any:
    if name not in _ORIGINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, original = _ORIGINS[name]
    if name == "run":
        importlib.import_module(f"{__name__}.passes.registry").search(f"{__name__}.transforms")
    origin = importlib.import_module(f"{__name__}.{module}")
    value = getattr(origin, original) if original else origin
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
