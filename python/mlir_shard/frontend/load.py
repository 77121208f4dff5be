# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from files: MLIR text and bytecode, portable StableHLO artifacts, and artifacts of `jax.export`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import mlir_shard
from mlir_shard import host
from mlir_shard.asm.module import BYTECODE_MAGIC
from mlir_shard.frontend.from_jax import from_jax
from mlir_shard.frontend.program import Program
from mlir_shard.sharding import Mesh

# The producer string in the bytecode of StableHLO's portable artifacts.
_PORTABLE = b"StableHLO_v"


def load(
    path: str | os.PathLike[str], *, mesh: Mesh | None = None, function: str = "main", context: Any = None
) -> Program:
    """Loads the program in a file.

    Args:
        path: a file of MLIR text or bytecode, a portable artifact of StableHLO, or an artifact of `jax.export`, which
            needs the packages jax and flatbuffers.
        mesh: the mesh of the specs of later annotations, if the file does not define one.
        function: the name of the program's entry function.
        context: the context of the module; by default a new one.

    Raises:
        OSError: the file cannot be read.
        ParseError: the file is not a valid module.
    """
    with open(path, "rb") as file:
        content = file.read()
    context = context or mlir_shard.create_context()
    if content.startswith(BYTECODE_MAGIC):
        if content[len(BYTECODE_MAGIC) :].lstrip(b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0d").startswith(_PORTABLE):
            stablehlo = host.module("_mlir_libs._stablehlo")
            return Program(stablehlo.deserialize_portable_artifact(context, content), mesh, function)
    elif b"\x00" in content:
        program = _exported(content, os.fspath(path), context)
        return replace(program, mesh=mesh or program.mesh)
    return Program(mlir_shard.parse(content, context, os.fspath(path)), mesh, function)


def _exported(content: bytes, path: str, context: Any) -> Program:
    try:
        from jax import export

        return from_jax(export.deserialize(bytearray(content)), context=context)
    except ImportError as error:
        raise ImportError(
            f"'{path}' is not MLIR; artifacts of jax.export need the packages jax and flatbuffers: {error}"
        ) from error
