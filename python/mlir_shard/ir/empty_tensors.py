# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of StableHLO on tensors without elements, which nothing has to be computed or moved for.

Frontends write them where an algorithm comes to its end: `jax.lax.associative_scan` slices nothing off and puts it
behind the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.op_names import op_names

_CONSTANT = "stablehlo.constant"
_CONCATENATE = "stablehlo.concatenate"
_REDUCE = "stablehlo.reduce"
_DIALECTS = ("chlo.", "stablehlo.")
# Each changes how a tensor lies, and no more.
_MOVES = frozenset(
    op_names(
        "sdy",
        "all_gather all_reduce all_slice all_to_all collective_permute propagation_barrier reduce_scatter reshard "
        "sharding_constraint",
    )
)
# They end a region, or do more than make results.
_KEPT = frozenset(
    op_names(
        "stablehlo",
        "after_all case composite create_token custom_call if infeed optimization_barrier outfeed recv return rng "
        "rng_bit_generator send while",
    )
)


def fold(module: Any) -> bool:
    """Puts constants in the place of empty results, and what is left without empty operands; whether any were.

    A concatenation does without what is empty, and a reduction of nothing is its initial values. Shardings stay.
    Nothing changes in a program that is in other dialects.
    """
    arrays = ModuleArrays(module)
    representatives = arrays.representatives()
    concerned = {number for number, op in enumerate(representatives) if _is_concerned(op)}
    if not concerned or not any(op.name.startswith(_DIALECTS) for op in representatives):
        return False
    found = [arrays.operation(op) for op, signature in enumerate(arrays.signatures) if signature in concerned]
    for op in reversed(found):
        operands = list(op.operands)
        with ir.InsertionPoint(op), op.location:
            values = _values(op)
        for old, new in zip(op.results, values, strict=True):
            sharding = sdy.get_sharding(old)
            if sharding is not None and new not in operands:
                # What is a sum of nothing, or of what has no elements, has no terms to be added elsewhere.
                sdy.set_sharding(new, replace(sharding, unreduced_axes=()))
            old.replace_all_uses_with(new)
        op.erase()
    return True


def _is_concerned(op: Any) -> bool:
    name = op.name
    if name in _MOVES:
        return any(map(_is_empty, op.results))
    if not name.startswith(_DIALECTS) or name in _KEPT or name == _CONSTANT or not len(op.results):
        return False
    if all(map(_is_empty, op.results)):
        return True
    return name in (_CONCATENATE, _REDUCE) and any(map(_is_empty, op.operands))


def _is_empty(value: Any) -> bool:
    type_ = value.type
    return isinstance(type_, ir.RankedTensorType) and any(
        not type_.is_dynamic_dim(dim) and not type_.get_dim_size(dim) for dim in range(type_.rank)
    )


def _values(op: Any) -> list[Any]:
    if all(map(_is_empty, op.results)):
        return [stablehlo.constant(ir.Attribute.parse(f"dense<> : {result.type}")) for result in op.results]
    if op.name == _REDUCE:
        initial = list(op.operands)[len(op.operands) // 2 :]
        return [
            stablehlo.broadcast(value, result.type.shape) for value, result in zip(initial, op.results, strict=True)
        ]
    full = [value for value in op.operands if not _is_empty(value)]
    if len(full) == 1:
        return full
    return [stablehlo.concatenate(full, op.attributes["dimension"].value)]
