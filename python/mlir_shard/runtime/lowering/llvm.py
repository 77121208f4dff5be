# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of a module on tensors, with `shard` or StableHLO collectives, to the LLVM dialect by host pipelines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mlir_shard import host
from mlir_shard.dialects.registered_function import specific_name
from mlir_shard.host import ir, passmanager
from mlir_shard.ir import empty_tensors, strided_inserts
from mlir_shard.ir.editing import first_names, functions, operations_named, ops_below, replace_with
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.values import is_token
from mlir_shard.passes import diagnostic
from mlir_shard.passes.diagnostic import Diagnostic
from mlir_shard.runtime.collectives import buffers, shard_collectives, shard_to_mpi, stablehlo_collectives
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.interface import donated_arguments
from mlir_shard.runtime.launch import mpi_library
from mlir_shard.runtime.launch.cpu import NATIVE, Cpu
from mlir_shard.runtime.lowering import (
    aggregated_ops,
    array_calls,
    external_symbols,
    float8,
    floats,
    function_names,
    function_results,
    generic_operations,
    message_times,
    nonblocking_messages,
    peak_memory,
    scalar_views,
    tosa_ops,
)
from mlir_shard.runtime.lowering.blas import blas_calls, contractions
from mlir_shard.runtime.lowering.loops import (
    accumulators,
    destinations,
    lifetimes,
    loop_order,
    math_calls,
    merged_loops,
    shared_loops,
    unrolling,
)
from mlir_shard.runtime.lowering.stablehlo import operations, top_k
from mlir_shard.runtime.program import PEAK_BYTES

_arith = host.dialect("arith")


def to_values(module: Any) -> None:
    """Replaces the type of every token in a module, in place, and the operations that create tokens by constants."""
    type_ = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1, module.context))
    for op in ops_below(module):
        values = [*op.results, *(one for region in op.regions for block in region.blocks for one in block.arguments)]
        for value in values:
            if is_token(value.type):
                value.set_type(type_)
        if op.name == "func.func":
            _change_signature(op, type_)
    for op in operations_named(module, "stablehlo.after_all", "stablehlo.create_token"):
        with ir.InsertionPoint(op), op.location:
            value = ir.DenseElementsAttr.get_splat(type_, ir.BoolAttr.get(False))
            made = _arith.ConstantOp(type_, value).result
        replace_with(op, [made])


def _change_signature(function: Any, type_: Any) -> None:
    signature = function.attributes["function_type"].value
    if any(map(is_token, (*signature.inputs, *signature.results))):
        inputs, results = (
            [type_ if is_token(one) else one for one in side] for side in (signature.inputs, signature.results)
        )
        changed = ir.FunctionType.get(inputs, results, function.context)
        function.attributes["function_type"] = ir.TypeAttr.get(changed, function.context)


# Decomposition of composites and CHLO to StableHLO.
_TO_STABLEHLO = "func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo)"
# Replaces operations of dynamic shapes that are constant, if there are any.
_TO_STATIC = "func.func(stablehlo-canonicalize-dynamism)"
_OF_DYNAMIC_SHAPE = op_names(
    "stablehlo",
    "dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape real_dynamic_slice",
)
# StableHLO and TOSA to linalg. Unsigned types become signless afterwards: StableHLO's lowering selects signed or
# unsigned operations by the type.
_TO_LINALG = (
    "stablehlo-legalize-to-linalg,stablehlo-convert-to-signless,"
    "func.func(tosa-optional-decompositions,tosa-to-linalg-named,tosa-to-linalg,"
    "tosa-to-arith{include-apply-rescale=true},tosa-to-tensor,tosa-to-scf)"
)
_ELEMENTWISE_TO_LINALG = "convert-elementwise-to-linalg"
_SIMPLIFY = "linalg-fold-unit-extent-dims,linalg-fuse-elementwise-ops,canonicalize,cse"
# No simplification may run between the lowering to MPI and bufferization: the sent tensor is read as memory, and
# one-shot bufferization is wrong if two such reads are merged, or one is folded into the tensor's original memory.
_TO_MPI = "convert-shard-to-mpi"
_TO_BUFFERS = (
    "eliminate-empty-tensors,one-shot-bufferize{allow-return-allocs-from-loops=true bufferize-function-boundaries=true "
    "function-boundary-type-conversion=identity-layout-map},"
    # Upstream's deallocation pipeline, but with canonicalize before its simplification.
    "expand-realloc{emit-deallocs=false},ownership-based-buffer-deallocation,canonicalize,"
    "buffer-deallocation-simplification,bufferization-lower-deallocations,convert-bufferization-to-memref,cse,canonicalize"
)
_TO_GENERIC = "linalg-generalize-named-ops"
_TO_SCALARS = f"convert-linalg-to-loops,convert-complex-to-standard,{floats.EMULATE}"
_TO_LLVM = (
    "expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    # The C library lacks some functions of LLVM, and LLVM's log1p is inaccurate near 0.
    "convert-math-to-llvm{approximate-log1p=false},convert-math-to-libm,arith-expand{include-bf16=true},"
    "convert-to-llvm,reconcile-unrealized-casts,canonicalize,cse"
)
# The cast between a lowered operation and one that was not lowered.
_CAST = "builtin.unrealized_conversion_cast"
_BF16 = "bf16"
_C_INTERFACE = "llvm.emit_c_interface"
_WRITABLE = "bufferization.writable"
_FOR_XLA = ("chlo.", "stablehlo.")
# The dialects that a program may contain at bufferization.
_BUFFERIZABLE = frozenset(
    {"affine", "arith", "bufferization", "builtin", "cf", "complex", "func", "index", "linalg", "llvm", "math"}
    | {"memref", "mpi", "scf", "tensor", "ub", "vector"}
)
DEFAULT_CPU = Cpu()


def lower(module: Any, entry: str, implementation: str = mpi_library.MPICH, cpu: Cpu = DEFAULT_CPU) -> None:
    """Lowers a module in place.

    Args:
        entry: the function to call from outside, through its C interface.
        implementation: the MPI implementation that runs it, see `mpi_library`.
        cpu: the CPU for which LLVM compiles it.

    Raises:
        RunError: the lowering failed; it has the diagnostics.
    """
    context = module.context
    reported: list[Diagnostic] = []

    def handle(one: Any) -> bool:
        if one.severity == ir.DiagnosticSeverity.ERROR:
            reported.append(_named(diagnostic.from_host(one)))
        return True

    handler = context.attach_diagnostic_handler(handle)
    context.emit_error_diagnostics = True
    try:
        with context, ir.Location.unknown():
            _run_stages(module, entry, mpi_library.of(implementation), cpu)
    except ir.MLIRError as error:
        raise RunError("the program cannot be lowered to LLVM", reported) from error
    finally:
        handler.detach()


def _run_stages(module: Any, entry: str, abi: mpi_library.MpiAbi, cpu: Cpu) -> None:
    # The lowering does not introduce bf16, and searching the lowered module for it would take long.
    has_bf16 = _BF16 in module.operation.get_asm(large_elements_limit=8)
    entry = function_names.set_apart(module, entry)
    _prepare_functions(module, entry)
    _name_assertions(module)
    _describe(module, abi.entry)
    to_values(module)
    shard_collectives.legalize(module, entry)
    stand_ins = stablehlo_collectives.legalize(module)
    top_k.sort_for_top_k(module)
    _run(module, _TO_STABLEHLO)
    if operations_named(module, *_OF_DYNAMIC_SHAPE):
        _run(module, _TO_STATIC)
    empty_tensors.fold(module)
    operations.legalize(module)
    tosa_ops.legalize(module)
    _run(module, _TO_LINALG)
    accumulators.widen(module)
    _run(module, _ELEMENTWISE_TO_LINALG)
    aggregated_ops.decompose(module)
    strided_inserts.separate(module)
    protected = contractions.protect(module)
    generic_operations.prepare(module)
    _run(module, _SIMPLIFY)
    contractions.release(module, protected)
    array_calls.lower(module)
    nonblocking_messages.hoist(module)
    calls = shard_to_mpi.lower(module, functions(module)[entry], stand_ins, abi)
    with buffers.kept(module):
        _run(module, _TO_MPI)
    # This follows `buffers.kept`, which would erase the reads that it adds.
    nonblocking_messages.start_early(module, calls)
    _erase_grids(module)
    _check_dialects(module, _BUFFERIZABLE)
    _erase_deallocations(module)
    _drop_destinations(module)
    destinations.separate(module)
    function_results.separate(module, entry)
    scalar_views.separate(module)
    _run(module, _TO_BUFFERS)
    if cpu.name == NATIVE:
        # Programs for other CPUs must not depend on the machine, for which OpenBLAS selects kernels.
        blas_calls.lower(module)
    lifetimes.shorten(module)
    most = peak_memory.peak_bytes(module, entry)
    if most is not None:
        _describe(module, abi.entry, f'"{PEAK_BYTES}" = {most} : i64')
    _copies_to_linalg(module)
    _run(module, _TO_GENERIC)
    merged_loops.merge(module)
    shared_loops.outline(module)
    loop_order.arrange(module, cpu)
    # From here on the module is large, so it is verified only once, at the end.
    _run(module, _TO_SCALARS, verifies=False)
    unrolling.limit(module)
    floats.round_each_result(module)
    floats.by_f32(module)
    float8.convert_by_integers(module)
    floats.saturate(module)
    floats.convert_f16_by_integers(module, cpu)
    math_calls.lower(module)
    _run(module, _TO_LLVM, verifies=False)
    module.operation.verify()
    _check_dialects(module, frozenset({"builtin", "llvm"}))
    if has_bf16:
        floats.hold_bf16_in_integers(module)
    message_times.count(module)
    for op in module.body.operations:
        if op.operation.name == "llvm.func":
            cpu.set_on(op.operation)
            shared_loops.finish(op.operation)
    function_names.restore(module, entry)
    external_symbols.check(module, cpu)


def _describe(module: Any, *entries: str) -> None:
    module.operation.attributes[mpi_library.ATTRIBUTE] = ir.Attribute.parse(f"#dlti.map<{', '.join(entries)}>")


def _run(module: Any, pipeline: str, *, verifies: bool = True) -> None:
    manager = passmanager.PassManager.parse(f"builtin.module({pipeline})")
    manager.enable_verifier(verifies)
    manager.run(module.operation)


def _prepare_functions(module: Any, entry: str) -> None:
    """Makes all functions but the entry private, and drops a frontend's attributes of arguments and results.

    The entry's arguments become read-only unless they are donated: callers keep them.
    """
    for op in list(module.body.operations):
        if op.operation.name != "func.func":
            continue
        attributes = op.operation.attributes
        donated = donated_arguments(op.operation)
        for name in ("arg_attrs", "res_attrs"):
            if name in attributes:
                del attributes[name]
        is_entry = attributes["sym_name"].value == entry
        attributes["sym_visibility"] = ir.StringAttr.get("public" if is_entry else "private")
        if is_entry:
            attributes[_C_INTERFACE] = ir.UnitAttr.get()
            kept = {_WRITABLE: ir.BoolAttr.get(False)}
            inputs = attributes["function_type"].value.inputs
            attributes["arg_attrs"] = ir.ArrayAttr.get(
                [ir.DictAttr.get({} if index in donated else kept) for index in range(len(inputs))]
            )


def _name_assertions(module: Any) -> None:
    """Adds the location of each assertion to its message."""
    for op in operations_named(module, "cf.assert"):
        text = diagnostic.at("error", f"the assertion '{op.attributes['msg'].value}' failed", op.location)
        op.attributes["msg"] = ir.StringAttr.get(text.heading)


def _erase_grids(module: Any) -> None:
    """Erases the grids, which are unused after the lowering to MPI."""
    for op in list(module.body.operations):
        if op.operation.name == "shard.grid":
            op.operation.erase()


def _erase_deallocations(module: Any) -> None:
    """Erases deallocations: the deallocation pipeline frees all buffers, and rejects programs that free buffers."""
    for op in operations_named(module, "memref.dealloc"):
        op.erase()


def _drop_destinations(module: Any) -> None:
    """Replaces results in given destinations by their sources: results are returned in new memory."""
    for op in operations_named(module, "bufferization.materialize_in_destination"):
        if len(op.results):
            replace_with(op, [op.operands[0]])


def _copies_to_linalg(module: Any) -> None:
    """Replaces copies by loops: copies of strided memory would call a library that the bindings do not ship."""
    linalg = host.dialect("linalg")
    for copy in operations_named(module, "memref.copy"):
        with ir.InsertionPoint(copy), copy.location:
            linalg.copy(copy.operands[0], outs=[copy.operands[1]])
        copy.erase()


def _named(reported: Diagnostic) -> Diagnostic:
    """Names the operation in a diagnostic of bufferization, whose note has it in generic form."""
    noted = re.search(r'"(\w+\.\w+)"', reported.notes[0].message) if reported.notes else None
    if noted is None or reported.message != _NOT_BUFFERIZED:
        return reported
    register = f'register a lowering with @mlir_shard.interfaces.lowering("{noted[1]}")'
    advice = f"use {_INSTEAD[noted[1]]}, or {register}" if noted[1] in _INSTEAD else register
    return replace(reported, message=f"'{noted[1]}' has no lowering to LLVM: {advice}", notes=())


_NOT_BUFFERIZED = "op was not bufferized"
_INSTEAD = {
    "tensor.gather": "stablehlo.gather, or linalg.generic with tensor.extract",
    "tensor.scatter": "stablehlo.scatter, or tensor.insert_slice in a loop",
}


def _check_dialects(module: Any, known: frozenset[str]) -> None:
    """Raises RunError for the outermost operations of dialects other than `known`, which have not been lowered."""

    def is_known(op: Any) -> bool:
        return op.name.partition(".")[0] in known and op.name != _CAST

    if all(name.partition(".")[0] in known and name != _CAST for name in first_names(module)):
        return
    left = [op for op in ops_below(module, enters=is_known) if not is_known(op)]
    if left:
        messages = [
            diagnostic.at("error", f"'{specific_name(op)}' has no lowering to LLVM", op.location) for op in left
        ]
        is_for_xla = all(op.name.startswith(_FOR_XLA) for op in left)
        advice = "; --engine=pjrt may run it" if is_for_xla else ""
        if any(op.name == "stablehlo.custom_call" for op in left):
            advice += "; register a lowering of the custom call with mlir_shard.interfaces.lowering"
        raise RunError(f"the program cannot be lowered to LLVM{advice}", messages)
