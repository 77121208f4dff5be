# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a module on tensors, with upstream's shard collectives, to the LLVM dialect: all host pipelines are here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import empty_tensors
from mlir_shard.host import ir, passmanager
from mlir_shard.passes import diagnostic
from mlir_shard.passes.diagnostic import Diagnostic
from mlir_shard.runtime import (
    collectives,
    external_symbols,
    generic_operations,
    half_floats,
    mpi_abi,
    narrowing,
    shard_to_mpi,
    stablehlo_collectives,
    stablehlo_loops,
    tokens,
)
from mlir_shard.runtime.cpu import Cpu
from mlir_shard.runtime.error import RunError

# What is made of simpler operations of StableHLO.
_TO_STABLEHLO = "func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo)"

# StableHLO, TOSA, and element-wise arith and math on tensors. What is unsigned becomes signless last: until then
# StableHLO's lowering chooses signed or unsigned operations by the type.
_TO_LINALG = (
    "stablehlo-legalize-to-linalg,stablehlo-convert-to-signless,"
    "func.func(tosa-to-linalg-named,tosa-to-linalg,tosa-to-arith,tosa-to-tensor,tosa-to-scf),"
    "convert-elementwise-to-linalg"
)
_SIMPLIFY = "linalg-fuse-elementwise-ops,canonicalize,cse"

# Nothing is simplified between this and buffers: a tensor is read as memory where a message is sent, which one-shot
# bufferization would not know once two such reads were merged, or one folded into the memory the tensor came from.
_TO_MPI = "convert-shard-to-mpi"

_TO_BUFFERS = (
    "one-shot-bufferize{allow-return-allocs-from-loops=true bufferize-function-boundaries=true "
    "function-boundary-type-conversion=identity-layout-map},"
    "buffer-deallocation-pipeline,convert-bufferization-to-memref,canonicalize"
)

_TO_SCALARS = f"convert-linalg-to-loops,convert-complex-to-standard,{half_floats.EMULATE}"

_TO_LLVM = (
    "expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    # The C library lacks some of the functions that LLVM has, and LLVM's log1p near 0 is not exact.
    "convert-math-to-llvm{approximate-log1p=false},convert-math-to-libm,arith-expand{include-bf16=true},"
    "convert-to-llvm,reconcile-unrealized-casts,canonicalize,cse"
)

# Stands between an operation that was lowered and one that was not.
_CAST = "builtin.unrealized_conversion_cast"

_C_INTERFACE = "llvm.emit_c_interface"

_FOR_XLA = ("chlo.", "stablehlo.")

# What may be left of a program where it goes to buffers.
_BUFFERIZABLE = frozenset(
    {"affine", "arith", "bufferization", "builtin", "cf", "complex", "func", "index", "linalg", "llvm", "math"}
    | {"memref", "mpi", "scf", "tensor", "ub", "vector"}
)


DEFAULT_CPU = Cpu()


def lower(module: Any, entry: str, implementation: str = mpi_abi.MPICH, cpu: Cpu = DEFAULT_CPU) -> None:
    """Lowers a module in place.

    Args:
        entry: the function to call from outside, by its C interface.
        implementation: of the MPI that runs it, see `mpi_abi`.
        cpu: what LLVM is to compile it for.

    Raises:
        RunError: with the diagnostics where that fails.
    """
    context = module.context
    reported: list[Diagnostic] = []

    def handle(one: Any) -> bool:
        if one.severity == ir.DiagnosticSeverity.ERROR:
            reported.append(diagnostic.from_host(one))
        return True

    handler = context.attach_diagnostic_handler(handle)
    context.emit_error_diagnostics = True
    try:
        with context, ir.Location.unknown():
            _run_stages(module, entry, mpi_abi.of(implementation), cpu)
    except ir.MLIRError as error:
        raise RunError("the program cannot be lowered to LLVM", reported) from error
    finally:
        handler.detach()


def _run_stages(module: Any, entry: str, abi: mpi_abi.MpiAbi, cpu: Cpu) -> None:
    _prepare_functions(module, entry)
    module.operation.attributes[mpi_abi.ATTRIBUTE] = ir.Attribute.parse(abi.attribute)
    tokens.to_values(module)
    collectives.legalize(module, entry)
    stand_ins = stablehlo_collectives.legalize(module)
    _run(module, _TO_STABLEHLO)
    empty_tensors.fold(module)
    stablehlo_loops.legalize(module)
    _run(module, _TO_LINALG)
    generic_operations.prepare(module)
    _run(module, _SIMPLIFY)
    shard_to_mpi.lower(module, _function(module, entry), stand_ins, abi)
    _run(module, _TO_MPI)
    _erase_grids(module)
    _check_dialects(module, _BUFFERIZABLE)
    _erase_deallocations(module)
    _run(module, _TO_BUFFERS)
    _copies_to_linalg(module)
    _run(module, _TO_SCALARS)
    half_floats.round_each_result(module)
    narrowing.by_f32(module)
    narrowing.saturate(module)
    half_floats.convert_f16_by_integers(module, cpu)
    _run(module, _TO_LLVM)
    _check_dialects(module, frozenset({"builtin", "llvm"}))
    for op in module.body.operations:
        if op.operation.name == "llvm.func":
            cpu.set_on(op.operation)
    external_symbols.check(module, cpu)


def _run(module: Any, pipeline: str) -> None:
    passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)


def _prepare_functions(module: Any, entry: str) -> None:
    """Leaves the entry alone visible, and drops attributes of arguments and results that a frontend has put there."""
    for op in list(module.body.operations):
        if op.operation.name != "func.func":
            continue
        attributes = op.operation.attributes
        for name in ("arg_attrs", "res_attrs"):
            if name in attributes:
                del attributes[name]
        is_entry = attributes["sym_name"].value == entry
        attributes["sym_visibility"] = ir.StringAttr.get("public" if is_entry else "private")
        if is_entry:
            attributes[_C_INTERFACE] = ir.UnitAttr.get()


def _erase_grids(module: Any) -> None:
    """The lowering to MPI leaves them, and nothing refers to them any more."""
    for op in list(module.body.operations):
        if op.operation.name == "shard.grid":
            op.operation.erase()


def _erase_deallocations(module: Any) -> None:
    """All buffers are freed by the deallocation pipeline, which refuses a program that frees some itself."""
    for op in _all(module, lambda name: name == "memref.dealloc"):
        op.erase()


def _copies_to_linalg(module: Any) -> None:
    """Copies as loops: a copy of strided memory would call a library that the bindings do not ship."""
    linalg = host.dialect("linalg")
    for copy in _all(module, lambda name: name == "memref.copy"):
        with ir.InsertionPoint(copy), copy.location:
            linalg.copy(copy.operands[0], outs=[copy.operands[1]])
        copy.erase()


def _check_dialects(module: Any, known: frozenset[str]) -> None:
    """RunError names the outermost operations of other dialects than the known: they have not been lowered."""
    left: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name.partition(".")[0] in known and op.name != _CAST:
            return ir.WalkResult.ADVANCE
        left.append(op)
        return ir.WalkResult.SKIP

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if left:
        messages = [diagnostic.at("error", f"'{op.name}' has no lowering to LLVM", op.location) for op in left]
        is_for_xla = all(op.name.startswith(_FOR_XLA) for op in left)
        advice = ", where --engine=pjrt may run it" if is_for_xla else ""
        raise RunError(f"the program cannot be lowered to LLVM{advice}", messages)


def _function(module: Any, name: str) -> Any:
    return next(op for op in _all(module, lambda one: one == "func.func") if op.attributes["sym_name"].value == name)


def _all(module: Any, matches: Callable[[str], bool]) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if matches(op.name):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found
