# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of a module in StableHLO, local or unsharded, to a module that XLA runs unchanged on replicas.

Layouts that XLA would choose wrongly are constrained: on CPUs, Fourier transforms support only the row-major order.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Any

from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir, passmanager
from mlir_shard.ir.editing import functions, operations_named, ops_below, replace_with
from mlir_shard.ir.op_names import op_names
from mlir_shard.passes import diagnostic
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.interface import CROSSING, is_scalar
from mlir_shard.runtime.pjrt.nested_slices import separate_slices
from mlir_shard.runtime.program import Lowered

TRANSFORM = "stablehlo.fft"


def constrain_layouts(transform: Any) -> None:
    """Constrains the operand and the result of a Fourier transform of static shape to the row-major layout."""
    with ir.InsertionPoint(transform), transform.location:
        transform.operands[0] = _in_order_of_rows(transform.operands[0])[-1].results[0]
    result = transform.results[0]
    with ir.InsertionPoint.after(transform), transform.location:
        ops = _in_order_of_rows(result)
    result.replace_all_uses_except(ops[-1].results[0], [ops[0]])


def _in_order_of_rows(value: Any) -> list[Any]:
    type_ = value.type
    flat = ir.RankedTensorType.get([math.prod(type_.shape)], type_.element_type)
    ops: list[Any] = []
    for name, result in (("reshape", flat), ("optimization_barrier", flat), ("reshape", type_)):
        operand = ops[-1].results[0] if ops else value
        ops.append(ir.Operation.create(f"stablehlo.{name}", [result], [operand]))
    return ops


ENTRY = "main"
_KNOWN = frozenset({"builtin", "func", "stablehlo"})
_CONSTANT = "arith.constant"
_COMPOSITE = "stablehlo.composite"
_TO_STABLEHLO = "builtin.module(func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo))"
_PARTITION = "stablehlo.partition_id"
_REPLICA = "stablehlo.replica_id"
_COLLECTIVES = frozenset(
    op_names("stablehlo", "all_gather all_reduce all_to_all collective_broadcast collective_permute reduce_scatter")
)
# Operations that communicate with a host, or address devices in another way.
_REFUSED = frozenset(op_names("stablehlo", "infeed outfeed recv send"))
# Attributes that make groups consist of partitions; without them groups consist of replicas.
_MOST_NAMED = 4
_MODES = ("channel_handle", "channel_id", "use_global_device_ids")


def lower(modules: Sequence[str], entry: str) -> list[Lowered]:
    """Lowers modules, given as text with a function `entry`, which is named `main` in the results.

    Raises RunError, which names the operations, if any are not in StableHLO or not supported by PJRT.
    """
    context = create_context()
    try:
        parsed = [ir.Module.parse(text, context) for text in modules]
    except ir.MLIRError as error:
        raise RunError(f"cannot parse the module between passes: {error}") from error
    return [Lowered(_lower(module, entry)) for module in parsed]


def _to_stablehlo(module: Any) -> None:
    """Converts constants of arith, composites and CHLO, which XLA does not parse, to StableHLO."""
    for op in operations_named(module, _CONSTANT):
        type_ = op.results[0].type
        if isinstance(type_, ir.RankedTensorType):
            with ir.InsertionPoint(op), op.location:
                constant = ir.Operation.create(
                    "stablehlo.constant", [type_], attributes={"value": op.attributes["value"]}
                )
            replace_with(op, constant.results)
    if not any(op.name == _COMPOSITE or op.name.startswith("chlo.") for op in ops_below(module)):
        return
    with module.context:
        try:
            passmanager.PassManager.parse(_TO_STABLEHLO).run(module.operation)
        except ir.MLIRError as error:
            reported = [diagnostic.from_host(one) for one in error.error_diagnostics]
            raise RunError("the program cannot be converted to StableHLO, which PJRT requires", reported) from error


def _lower(module: Any, entry: str) -> str:
    _to_stablehlo(module)

    def is_run(op: Any) -> bool:
        is_crossing = op.name in CROSSING and op.operands[0].type == op.results[0].type
        return is_crossing or (op.name.partition(".")[0] in _KNOWN and op.name not in _REFUSED)

    wrong: list[Any] = []
    for op in ops_below(module, enters=is_run):
        _retype(op)
        if not is_run(op):
            wrong.append(op)
        elif op.name in _COLLECTIVES:
            for name in _MODES:
                if name in op.attributes:
                    del op.attributes[name]
    declared = [op for op in functions(module).values() if not len(op.regions[0].blocks)]
    called = {op.attributes["callee"].value for op in operations_named(module, "func.call")}
    _drop_declarations(declared, called)
    if wrong:
        first, *others = dict.fromkeys(op.name for op in wrong)
        also = f", nor can {', '.join(others[:_MOST_NAMED])}" if others else ""
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        message = f"'{first}' cannot be run by PJRT{also}{more}"
        advice = "" if any(op.name.startswith("stablehlo.") for op in wrong) else "; --engine=mpi may run it"
        raise RunError(
            f"the program has ops outside of StableHLO, which PJRT cannot run{advice}",
            [diagnostic.at("error", message, wrong[0].location)],
        )
    for op in operations_named(module, *CROSSING):
        replace_with(op, [op.operands[0]])
    for op in operations_named(module, _PARTITION):
        with ir.InsertionPoint(op), op.location:
            replica = ir.Operation.create(_REPLICA, [op.results[0].type])
        replace_with(op, replica.results)
    for op in operations_named(module, TRANSFORM):
        constrain_layouts(op)
    separate_slices(module, entry)
    _prepare_functions(module, entry)
    return str(module)


def _retype(op: Any) -> None:
    """Replaces scalars by tensors of rank 0, and `index` by i64, in the types of an op: XLA supports neither."""
    with op.location:
        for value in (
            *op.results,
            *(one for region in op.regions for block in region.blocks for one in block.arguments),
        ):
            value.set_type(_retyped(value.type))
        if op.name == "func.func":
            signature = op.attributes["function_type"].value
            sides = (list(map(_retyped, side)) for side in (signature.inputs, signature.results))
            op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*sides))


def _retyped(type_: Any) -> Any:
    shape = [] if is_scalar(type_) else type_.shape if isinstance(type_, ir.RankedTensorType) else None
    if shape is None:
        return type_
    element = type_ if is_scalar(type_) else type_.element_type
    return ir.RankedTensorType.get(
        shape, ir.IntegerType.get_signless(64) if isinstance(element, ir.IndexType) else element
    )


def _drop_declarations(declared: Sequence[Any], called: Container[str]) -> None:
    """Erases uncalled functions without a body, which crash XLA; raises RunError if one is called."""
    missing = [op for op in declared if op.attributes["sym_name"].value in called]
    if missing:
        names = [(op, op.attributes["sym_name"].value) for op in missing]
        messages = [diagnostic.at("error", f"@{name} is called, but has no body", op.location) for op, name in names]
        raise RunError("the program is incomplete, but PJRT requires all functions", messages)
    for op in declared:
        op.erase()


def _prepare_functions(module: Any, entry: str) -> None:
    """Makes all functions but the entry private, renames it to `main`, and drops attributes for other tools."""
    operation = module.operation
    for name in [name for name in operation.attributes if "." in name]:
        del operation.attributes[name]
    functions = {op.operation.attributes["sym_name"].value: op.operation for op in module.body.operations}
    if entry != ENTRY and ENTRY in functions:
        _rename(operation, functions[ENTRY], f"{ENTRY}_{len(functions)}")
    for name, op in functions.items():
        op.attributes["sym_visibility"] = ir.StringAttr.get("public" if name == entry else "private", module.context)
        for noted in [one for one in op.attributes if "." in one or one in ("arg_attrs", "res_attrs")]:
            del op.attributes[noted]
    if entry != ENTRY:
        _rename(operation, functions[entry], ENTRY)


def _rename(module: Any, function: Any, name: str) -> None:
    with module.context:
        ir.SymbolTable.replace_all_symbol_uses(function.attributes["sym_name"].value, name, module)
        ir.SymbolTable.set_symbol_name(function, name)
