# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The unsharded program in f64, which shows the effect of rounding on a result that differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlir_shard.host import ir
from mlir_shard.ir.editing import first_names, operations_named, ops_in, replace_with
from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import FLOAT8, Array
from mlir_shard.runtime.program import Lowered, Port, Program

_F64 = "f64"
_NARROW = frozenset({"bf16", "f16", "f32", *FLOAT8})
_WIDER = dict.fromkeys(_NARROW, _F64) | {"complex<f32>": "complex<f64>"}
_CONSTANTS = ("arith.constant", "chlo.constant", "complex.constant", "stablehlo.constant", "tosa.const")
# Conversions that are the identity once all floats have the same type.
_CONVERSIONS = ("arith.extf", "arith.truncf", "stablehlo.reduce_precision")
# Operations whose results depend on the type: random numbers, bits, or a library's routine for the type.
_OF_TYPES = ("custom_call", "rng", "bitcast", "call_target")


def widen(module: Any) -> bool:
    """Replaces narrower floats in a module by f64, in place.

    Returns whether its meaning is the same; if not, the module must not be used.
    """
    if any(part in name for name in first_names(module) for part in _OF_TYPES):
        return False
    with module.context, ir.Location.unknown():
        for op in ops_in(module.operation):
            arguments = (one for region in op.regions for block in region.blocks for one in block.arguments)
            for value in (*op.results, *arguments):
                value.set_type(_wider(value.type))
            if op.name == "func.func":
                type_ = op.attributes["function_type"].value
                sides = (list(map(_wider, side)) for side in (type_.inputs, type_.results))
                op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*sides))
            elif op.name in _CONSTANTS:
                name = next(one for one in ("value", "values") if one in op.attributes)
                op.attributes[name] = _wider_constant(op.attributes[name])
        for op in operations_named(module, *_CONVERSIONS):
            if op.operands[0].type == op.results[0].type:
                replace_with(op, [op.operands[0]])
        try:
            return bool(module.operation.verify())
        except ir.MLIRError:
            return False


def _wider(type_: Any) -> Any:
    if isinstance(type_, ir.RankedTensorType):
        return ir.RankedTensorType.get(list(type_.shape), _wider(type_.element_type), type_.encoding)
    if isinstance(type_, ir.ComplexType):
        return ir.ComplexType.get(_wider(type_.element_type))
    return ir.F64Type.get() if str(type_) in _NARROW else type_


def _wider_constant(value: Any) -> Any:
    if isinstance(value, ir.FloatAttr):
        return ir.FloatAttr.get(_wider(value.type), value.value)
    if not isinstance(value, ir.DenseElementsAttr) or value.type == _wider(value.type):
        return value
    type_ = _wider(value.type)
    if value.is_splat:
        return ir.DenseElementsAttr.get_splat(type_, _wider_constant(value.get_splat_value()))
    if isinstance(value, ir.DenseFPElementsAttr):
        numbers = np.array([value[index] for index in range(len(value))], np.float64)
        return ir.DenseElementsAttr.get(numbers.reshape(type_.shape), type=type_.element_type)
    return value


def widened(program: Program, lowered: Lowered) -> Program:
    """Returns the program on one device for `lowered`, the module of `program` in f64."""
    sides = (tuple(map(_wider_port, side)) for side in (program.arguments, program.results))
    arguments, results = sides
    return Program(lowered, program.entry, arguments, results, 1)


def widened_inputs(program: Program, inputs: Sequence[Array]) -> list[Array]:
    """Converts the user's inputs to the types of `program`, which is a result of `widened`."""
    return [
        np.asarray(one).astype(arrays.numpy_dtype(port.spec.element_type))
        for port, one in zip(program.arguments, inputs, strict=True)
    ]


def _wider_port(port: Port) -> Port:
    element_type = _WIDER.get(port.spec.element_type, port.spec.element_type)
    spec, local = (replace(one, element_type=element_type) for one in (port.spec, port.local))
    return replace(port, spec=spec, local=local)
