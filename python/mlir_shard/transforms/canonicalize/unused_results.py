# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pattern on `linalg.generic` with several results, of which some have no uses.

torch-mlir computes a maximum with its index, which no collective combines; mostly the maximum alone is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import clone_with, terminator
from mlir_shard.ir.patterns import Pattern

LABEL = "shard-unused-results"
_YIELD = "linalg.yield"
_linalg = host.dialect("linalg")


def erase_unused(op: Any, rewriter: Any) -> bool:
    """Erases the results without uses if the other results are not computed from their destinations."""
    count, inputs = len(op.results), len(op.operands) - len(op.results)
    kept = [number for number, result in enumerate(op.results) if any(True for _ in result.uses)]
    if not kept or len(kept) == count or sdy.SHARDING in op.attributes or sdy.SHARDING_RULE in op.attributes:
        return False
    body = op.regions[0].blocks[0]
    yielded = [terminator(op).operands[number] for number in kept]
    needed = _needed(body, yielded)
    unused = [number for number in range(count) if number not in kept]
    if any(body.arguments[inputs + number] in needed for number in unused):
        return False
    operands = [*list(op.operands)[:inputs], *(op.operands[inputs + number] for number in kept)]
    maps = list(op.attributes["indexing_maps"])
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["indexing_maps"] = ir.ArrayAttr.get([*maps[:inputs], *(maps[inputs + number] for number in kept)])
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([inputs, len(kept)])
    types = [op.results[number].type for number in kept]
    with ir.InsertionPoint(op), op.location:
        made = ir.Operation.create(op.name, types, operands, attributes, regions=1)
        arguments = [*list(body.arguments)[:inputs], *(body.arguments[inputs + number] for number in kept)]
        block = made.regions[0].blocks.append(*(one.type for one in arguments), arg_locs=[op.location] * len(arguments))
        values = dict(zip(arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for inner in list(body.operations)[:-1]:
                if any(result in needed for result in inner.results):
                    clone_with(inner.operation, values)
            _linalg.YieldOp([values[value] for value in yielded])
    # Unused results can be replaced by any value.
    replaced = list(op.operands)[inputs:]
    for number, result in zip(kept, made.results, strict=True):
        replaced[number] = result
    rewriter.replace_op(op, replaced)
    return True


def _needed(body: Any, values: Sequence[Any]) -> set[Any]:
    """Returns the values of a body that `values` are computed from, and `values`."""
    needed, pending = set(), list(values)
    while pending:
        value = pending.pop()
        if value in needed:
            continue
        needed.add(value)
        if not isinstance(value.owner, ir.Block):
            inner = value.owner.operation
            pending += inner.operands if inner.block == body else []
    return needed


def has_several_results(op: Any) -> bool:
    """Returns whether an operation has more than one result."""
    return len(op.results) > 1


PATTERNS = (Pattern("unused-results", LABEL, "linalg.generic", erase_unused, may_match=has_several_results),)
