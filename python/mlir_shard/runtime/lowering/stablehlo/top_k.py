# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites approximate top-k calls of JAX, `ApproxTopK`, to sorts: an exact result satisfies every recall target."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import clone_with, functions, operations_named, replace_with

_TARGET = "ApproxTopK"
_CONFIG = "mhlo.backend_config"


def sort_for_top_k(module: Any) -> None:
    """Rewrites the calls of a module in place, and erases their comparators, which compare as the region of a sort."""
    calls = operations_named(module, "stablehlo.custom_call")
    known, comparators = functions(module), {}
    for call in [one for one in calls if stablehlo.call_target(one) == _TARGET and _CONFIG in one.attributes]:
        (comparator,) = call.attributes["called_computations"]
        dim = call.attributes[_CONFIG]["reduction_dim"].value
        comparators[comparator.value] = known[comparator.value]
        with ir.InsertionPoint(call), call.location:
            values = _sorted(call, dim, known[comparator.value])
            count = call.results[0].type.shape[dim]
            results = [stablehlo.along(one, dim, 0, count) for one in values]
        replace_with(call, results)
    for comparator in comparators.values():
        comparator.erase()


def _sorted(call: Any, dim: int, comparator: Any) -> list[Any]:
    """Sorts the values and their indices, which are the first half of the operands; the others are initial values."""
    operands = list(call.operands)[: len(call.results)]
    types = [one.type for one in operands]
    attributes = {"dimension": stablehlo.integer(dim), "is_stable": ir.BoolAttr.get(True)}
    op = ir.Operation.create("stablehlo.sort", types, operands, attributes, regions=1)
    body = comparator.regions[0].blocks[0]
    block = op.regions[0].blocks.append(*[one.type for one in body.arguments])
    values = dict(zip(body.arguments, block.arguments, strict=True))
    *inner, last = body.operations
    with ir.InsertionPoint(block):
        for one in inner:
            clone_with(one, values)
        ir.Operation.create("stablehlo.return", [], [values[one] for one in last.operands])
    return list(op.results)
