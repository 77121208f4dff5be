# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs single-device StableHLO programs in StableHLO's reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlir_shard import host
from mlir_shard.host import ir

Array = Any

_stablehlo = host.module("_mlir_libs._stablehlo")


def run(module: Any, inputs: Sequence[Array]) -> list[Array]:
    """Returns the results of `main`.

    Supports a single device only: the interpreter has one thread for each processor, and collectives of more devices
    than processors would deadlock.
    """
    text = str(module)
    context = ir.Context()
    _stablehlo.register_dialect(context, load=True)
    with context, ir.Location.unknown():
        parsed = ir.Module.parse(text)
        functions = {op.operation.attributes["sym_name"].value: op.operation for op in parsed.body.operations}
        types = functions["main"].attributes["function_type"].value.inputs
        arguments = [
            ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=type_.element_type, shape=list(array.shape))
            for array, type_ in zip(inputs, types, strict=True)
        ]
        return [np.array(result) for result in _stablehlo.eval_module(parsed, arguments)]
