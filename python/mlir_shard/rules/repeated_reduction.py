# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a reduction of StableHLO gives the same with its initial values in it several times.

That of an associative region does where the region makes of the initial values and the same again the initial values:
of the identity, and of what it leaves as it is, as a maximum does.
"""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir

_bindings = host.module("_mlir_libs._stablehlo")

_CONSTANTS = ("stablehlo.constant", "sdy.constant")
# On scalars, what StableHLO's interpreter computes without a doubt.
_COMPUTED = frozenset(
    (
        "stablehlo.abs",
        "stablehlo.add",
        "stablehlo.and",
        "stablehlo.compare",
        "stablehlo.constant",
        "stablehlo.convert",
        "stablehlo.is_finite",
        "stablehlo.maximum",
        "stablehlo.minimum",
        "stablehlo.multiply",
        "stablehlo.negate",
        "stablehlo.not",
        "stablehlo.or",
        "stablehlo.select",
        "stablehlo.sign",
        "stablehlo.subtract",
        "stablehlo.xor",
    )
)


def may_repeat_initial_values(op: Any) -> bool:
    """Whether that is known of a `stablehlo.reduce`; its region is run, on constants, by StableHLO's interpreter."""
    op = op.operation
    found = [_constant(value) for value in list(op.operands)[len(op.results) :]]
    initial = [one for one in found if one is not None]
    block = op.regions[0].blocks[0]
    *body, last = (inner.operation for inner in block.operations)
    if len(initial) != len(found) or any(inner.name not in _COMPUTED for inner in body):
        return False
    module = ir.Module.create(loc=op.location)
    types = [one.type for one in initial]
    with ir.InsertionPoint(module.body), op.location:
        signature = ir.TypeAttr.get(ir.FunctionType.get([], types))
        attributes = {"sym_name": ir.StringAttr.get("main"), "function_type": signature}
        function = ir.Operation.create("func.func", regions=1, attributes=attributes)
        entry = function.regions[0].blocks.append()
    with ir.InsertionPoint(entry), op.location:
        values = [
            ir.Operation.create("stablehlo.constant", [one.type], attributes={"value": one}).results[0]
            for one in (*initial, *initial)
        ]
        made = dict(zip(block.arguments, values, strict=True))
        for inner in body:
            if any(value not in made for value in inner.operands):
                return False
            copied = inner.clone().operation
            for number, value in enumerate(inner.operands):
                copied.operands[number] = made[value]
            made.update(zip(inner.results, copied.results, strict=True))
        if any(value not in made for value in last.operands):
            return False
        ir.Operation.create("func.return", operands=[made[value] for value in last.operands])
    return list(_bindings.eval_module(module, [])) == initial


def _constant(value: Any) -> Any | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name not in _CONSTANTS:
        return None
    return owner.operation.attributes["value"]
