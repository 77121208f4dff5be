# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How exactly the results of a function are computed: by the coarsest floats on the way to each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mlir_shard.host import ir
from mlir_shard.runtime.boundary import is_token
from mlir_shard.runtime.verify import TOLERANCES


def coarsest_floats(module: Any, function: Any) -> tuple[str, ...]:
    """For each result but tokens, the name of the coarsest float type that it is computed by way of, "" for none.

    An f32 that is made of numbers in bf16 is as exact as these are.
    """
    functions = {op.attributes["sym_name"].value: op for op in _functions(module)}
    blocks = function.regions[0].blocks
    if len(blocks) > 1:
        results = function.attributes["function_type"].value.results
        everywhere = _coarsest(_inside(function, functions, {}, set()))
        return (everywhere,) * sum(not is_token(one) for one in results)
    known: dict[Any, str] = {}
    for op in blocks[0].operations:
        found = _coarsest(_inside(op.operation, functions, known, set()))
        known.update((result, found) for result in op.operation.results)
    return tuple(
        _coarsest([known.get(value, ""), _float(value.type)])
        for value in op.operation.operands
        if not is_token(value.type)
    )


def _functions(module: Any) -> Iterator[Any]:
    all_ops = (op.operation for op in module.operation.regions[0].blocks[0].operations)
    return (op for op in all_ops if op.name == "func.func")


def _inside(root: Any, functions: Mapping[str, Any], known: Mapping[Any, str], called: set[str]) -> set[str]:
    """The floats of all values in an operation, in what it calls, and on the way to what it uses from around it."""
    found: set[str] = set()

    def visit(op: Any) -> Any:
        found.update(_float(value.type) for value in (*op.results, *op.operands))
        found.update(known.get(value, "") for value in op.operands)
        callee = op.attributes["callee"].value if op.name == "func.call" else ""
        if callee in functions and callee not in called:
            called.add(callee)
            found.update(_inside(functions[callee], functions, {}, called))
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def _coarsest(names: Iterable[str]) -> str:
    return max(names, key=lambda name: TOLERANCES.get(name, 0.0), default="")


def _float(type_: Any) -> str:
    name = str(getattr(type_, "element_type", type_))
    return name if name in TOLERANCES else ""
