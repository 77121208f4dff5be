# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Removal of StableHLO operations on tensors without elements, which need no computation or communication.

Frontends emit them at the end of an algorithm: `jax.lax.associative_scan` takes an empty slice and concatenates it to
the rest, and its gradient pads such a slice.
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
_PAD = "stablehlo.pad"
_UPDATE = "stablehlo.dynamic_update_slice"
_DIALECTS = ("chlo.", "stablehlo.")
# These change only the sharding of a tensor.
_MOVES = frozenset(
    op_names(
        "sdy",
        "all_gather all_reduce all_slice all_to_all collective_permute propagation_barrier reduce_scatter reshard "
        "sharding_constraint",
    )
)
# These end a region, or have effects other than their results.
_KEPT = frozenset(
    op_names(
        "stablehlo",
        "after_all case composite create_token custom_call if infeed optimization_barrier outfeed recv return rng "
        "rng_bit_generator send while",
    )
)


def fold(module: Any) -> bool:
    """Replaces empty results by constants, and removes empty operands. Returns whether there were any.

    A concatenation drops empty operands, a reduction of an empty tensor becomes its initial values, an empty tensor
    that is padded becomes its padding, and an empty update leaves its operand. Shardings are kept. Programs in other
    dialects are not changed.
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
                # An empty sum, or a sum of empty tensors, has no partial sums on other devices.
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
    return name in (_CONCATENATE, _PAD, _REDUCE, _UPDATE) and any(map(_is_empty, op.operands))


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
    if op.name == _PAD:
        return [stablehlo.broadcast(op.operands[1], op.results[0].type.shape)]
    if op.name == _UPDATE:
        return [op.operands[0]]
    full = [value for value in op.operands if not _is_empty(value)]
    if len(full) == 1:
        return full
    return [stablehlo.concatenate(full, op.attributes["dimension"].value)]
