# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The names that are imported at their first use, for type checkers.

from mlir_shard import interfaces as interfaces
from mlir_shard.asm import ParseError as ParseError
from mlir_shard.dialects.contexts import create_context as create_context
from mlir_shard.dialects.parsing import parse as parse
from mlir_shard.dialects.printing import print_module as print_module
from mlir_shard.frontend.annotate import annotate as annotate
from mlir_shard.frontend.difference import diff as diff
from mlir_shard.frontend.from_jax import from_jax as from_jax
from mlir_shard.frontend.from_torch import from_torch as from_torch
from mlir_shard.frontend.load import load as load
from mlir_shard.frontend.plan_reshard import plan_reshard as plan_reshard
from mlir_shard.frontend.program import Program as Program
from mlir_shard.passes.diagnostic import remark as remark
from mlir_shard.passes.diagnostic import warn as warn
from mlir_shard.passes.options import option as option
from mlir_shard.passes.registry import Pass as Pass
from mlir_shard.passes.registry import PassFailure as PassFailure
from mlir_shard.passes.registry import register as register
from mlir_shard.passes.registry import register_pipeline as register_pipeline
from mlir_shard.passes.resolution import PipelineError as PipelineError
from mlir_shard.passes.runner import run as run
from mlir_shard.runtime.execution import execute as execute
from mlir_shard.sharding import Mesh as Mesh
from mlir_shard.sharding.partition_spec import PartitionSpec as P

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
__version__: str
