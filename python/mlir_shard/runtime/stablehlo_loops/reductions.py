# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions along no dimension, as those along one of size 1."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir


def is_along_nothing(op: Any) -> bool:
    """Whether a `stablehlo.reduce` only combines each element with the initial value."""
    return not len(op.attributes["dimensions"])


def along_nothing(op: Any) -> list[Any]:
    """The results of such a reduction; its region is used up."""
    inputs = list(op.operands)[: len(op.results)]
    rank = inputs[0].type.rank
    expanded = [
        ir.Operation.create("stablehlo.reshape", [_with_a_dimension(one.type)], [one]).results[0] for one in inputs
    ]
    operands = [*expanded, *list(op.operands)[len(inputs) :]]
    attributes = {"dimensions": ir.DenseI64ArrayAttr.get([rank])}
    types = [result.type for result in op.results]
    made = ir.Operation.create("stablehlo.reduce", types, operands, attributes, regions=1)
    op.regions[0].blocks[0].append_to(made.regions[0])
    return list(made.results)


def _with_a_dimension(type_: Any) -> Any:
    return ir.RankedTensorType.get([*type_.shape, 1], type_.element_type)
