# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of LAPACK custom calls and of Fourier transforms to calls of functions that each rank provides."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.ir.stablehlo import call_target
from mlir_shard.passes import diagnostic
from mlir_shard.runtime.arrays import TensorSpec
from mlir_shard.runtime.collectives import buffers
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch.libraries import fourier, lapack
from mlir_shard.runtime.launch.libraries.array_calls import ArrayCall

_func = host.dialect("func")
_bindings = host.module("_mlir_libs._stablehlo")
_CONFIG = "mhlo.backend_config"


def lower(module: Any) -> None:
    """Lowers these operations of a module in place, before bufferization.

    Raises:
        RunError: the module has LAPACK calls, but SciPy is not installed.
    """
    of_lapack = [op for op in operations_named(module, "stablehlo.custom_call") if lapack.is_known(call_target(op))]
    if of_lapack and find_spec("scipy") is None:
        message = f"'{call_target(of_lapack[0])}' needs SciPy: pip install 'mlir-shard[run]'"
        raise RunError(
            "the program cannot be run on this machine", [diagnostic.at("error", message, of_lapack[0].location)]
        )
    calls = [(op, call_target(op), _config(op)) for op in of_lapack]
    calls += [(op, fourier.TARGET, _transform(op)) for op in operations_named(module, "stablehlo.fft")]
    declared: set[str] = set()
    for op, target, options in calls:
        call = ArrayCall(target, options, _specs(op.operands), _specs(op.results))
        with ir.InsertionPoint(op), op.location:
            _lower(module, op, call, declared)


def _config(op: Any) -> tuple[tuple[str, int], ...]:
    if _CONFIG not in op.attributes:
        return ()
    return tuple((one.name, int(one.attr.value)) for one in op.attributes[_CONFIG])


def _transform(op: Any) -> tuple[tuple[str, int], ...]:
    form = _bindings.FftTypeAttr(op.attributes["fft_type"]).value
    return (fourier.FORM, fourier.FORMS.index(form)), (fourier.RANK, len(op.attributes["fft_length"]))


def _specs(values: Any) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(tuple(one.type.shape), str(one.type.element_type)) for one in values)


def _lower(module: Any, op: Any, call: ArrayCall, declared: set[str]) -> None:
    rooms = [buffers.room(one.type) for one in op.results]
    addresses = [buffers.pointer(one) for one in (*map(buffers.read, op.operands), *rooms)]
    if call.symbol not in declared:
        declared.add(call.symbol)
        with ir.InsertionPoint.at_block_begin(module.body):
            type_ = ir.FunctionType.get([one.type for one in addresses], [])
            _func.FuncOp(call.symbol, type_, visibility="private")
    _func.CallOp([], call.symbol, addresses)
    replace_with(op, [buffers.tensor(one, of.type) for one, of in zip(rooms, op.results, strict=True)])
