# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs functions of a StableHLO module in its reference interpreter, whole or on several virtual devices at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlir_shard import host
from mlir_shard.host import ir

Array = Any

_stablehlo = host.module("_mlir_libs._stablehlo")


def run(module: Any, inputs: Sequence[Sequence[Array]], name: str = "main") -> list[list[Array]]:
    """The results of a function on each device, from its arguments on each device.

    The interpreter has one thread for each CPU, and collectives of more devices than CPUs would wait for ever.
    """
    text = str(module)
    context = ir.Context()
    _stablehlo.register_dialect(context, load=True)
    _stablehlo.register_interpreter_dialect(context, load=True)
    with context, ir.Location.unknown():
        parsed = ir.Module.parse(text)
        operations = [op.operation for op in parsed.body.operations]
        function = next(op for op in operations if op.attributes["sym_name"].value == name)
        type_ = function.attributes["function_type"].value
        types = [one for _ in inputs for one in type_.inputs]
        results = [one for _ in inputs for one in type_.results]
        with ir.InsertionPoint(parsed.body):
            attributes = {
                "sym_name": ir.StringAttr.get("on_all_devices"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, results)),
            }
            driver = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = driver.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        programs = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(name)] * len(inputs))])
        with ir.InsertionPoint(block):
            made = ir.Operation.create(
                "interpreter.run_parallel", results, list(block.arguments), {"programs": programs}
            )
            ir.Operation.create("func.return", [], list(made.results))
        # The interpreter begins with the function called main.
        if name == "main":
            function.attributes["sym_name"] = ir.StringAttr.get("device_main")
            made.attributes["programs"] = ir.ArrayAttr.get(
                [ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get("device_main")] * len(inputs))]
            )
        driver.attributes["sym_name"] = ir.StringAttr.get("main")
        parsed.operation.verify()
        arguments = [_attribute(array, one) for array, one in zip((a for i in inputs for a in i), types, strict=True)]
        flat = [np.array(result) for result in _stablehlo.eval_module(parsed, arguments)]
    count = len(type_.results)
    return [flat[start : start + count] for start in range(0, len(flat), count)]


def _attribute(array: Array, type_: Any) -> Any:
    return ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=type_.element_type, shape=list(array.shape))
