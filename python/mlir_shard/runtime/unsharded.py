# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program without its sharding: what a sharded program has to compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import ir
from mlir_shard.passes import diagnostic
from mlir_shard.runtime import manual_computations
from mlir_shard.runtime.error import RunError

# Without a sharding there is nothing for these to say.
_ERASED = frozenset({"sdy.mesh", "sdy.sharding_group", "shard.grid", "shard.sharding"})

# These change how a tensor lies on the devices, not the tensor.
_IDENTITIES = frozenset(
    f"sdy.{name}"
    for name in (
        "all_gather",
        "all_reduce",
        "all_slice",
        "all_to_all",
        "collective_permute",
        "data_flow_edge",
        "propagation_barrier",
        "reduce_scatter",
        "replicated_to_unreduced",
        "reshard",
        "sharded_to_unreduced",
        "sharding_constraint",
    )
) | {"shard.shard"}

_INLINED = "sdy.named_computation"
_CONSTANT = "sdy.constant"


def drop_sharding(module: Any) -> None:
    """Takes every sharding annotation out of a global module, in place.

    A `sdy.manual_computation` becomes its body on the blocks of all devices. RunError for an operation that means
    nothing on one device, such as a collective in such a body.
    """
    refusals = manual_computations.refusals(module)
    if refusals:
        raise _refused(refusals)
    try:
        manual_computations.compute_on_one_device(module)
    except RunError as error:
        raise _refused(error.diagnostics) from error
    found: list[Any] = []

    def visit(op: Any) -> Any:
        _drop_attributes(op)
        if op.name.startswith(("sdy.", "shard.")):
            found.append(op)
        return ir.WalkResult.ADVANCE

    # Regions before the operations that hold them, users before what they use.
    module.operation.walk(visit, ir.WalkOrder.POST_ORDER)
    wrong = [op for op in found if not _is_droppable(op)]
    if wrong:
        raise _refused([_without_meaning(op) for op in wrong])
    for op in reversed(found):
        if op.name != "sdy.return":
            _drop(op)


def _refused(diagnostics: Sequence[diagnostic.Diagnostic]) -> RunError:
    message = "the program cannot be run without its sharding, to compare the results with; --no-verify runs it alone"
    return RunError(message, diagnostics)


def _is_droppable(op: Any) -> bool:
    if op.name == "sdy.return":
        # One of another operation goes with that.
        return op.parent.name.startswith("sdy.")
    return op.name in _ERASED | _IDENTITIES | {_INLINED, _CONSTANT}


def _without_meaning(op: Any) -> diagnostic.Diagnostic:
    return diagnostic.at("error", f"'{op.name}' has no meaning on one device", op.location)


def _drop(op: Any) -> None:
    if op.name in _IDENTITIES:
        _replace(op, [op.operands[0]])
    elif op.name == _CONSTANT:
        with ir.InsertionPoint(op), op.location:
            value = op.attributes["value"]
            constant = ir.Operation.create("stablehlo.constant", [value.type], attributes={"value": value})
        _replace(op, list(constant.results))
    elif op.name == _INLINED:
        _inline(op)
    else:
        op.erase()


def _inline(op: Any) -> None:
    body = op.regions[0].blocks[0]
    for argument, operand in zip(body.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *inner, terminator = [one.operation for one in body.operations]
    for one in inner:
        one.move_before(op)
    _replace(op, list(terminator.operands))


def _replace(op: Any, values: Sequence[Any]) -> None:
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def _drop_attributes(op: Any) -> None:
    for name in [name for name in op.attributes if name.startswith("sdy.")]:
        del op.attributes[name]
    for name in ("arg_attrs", "res_attrs"):
        if name in op.attributes:
            op.attributes[name] = ir.ArrayAttr.get([_without_sharding(one) for one in op.attributes[name]], op.context)


def _without_sharding(attributes: Any) -> Any:
    kept = {named.name: named.attr for named in attributes if not named.name.startswith("sdy.")}
    return ir.DictAttr.get(kept, attributes.context)
