# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padded tensors that are inserted with strides, which the host's canonicalization inserts at wrong offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import operations_named, replace_with

_linalg, _tensor = host.dialect("linalg"), host.dialect("tensor")
_PAD: Final = "tensor.pad"


def separate(root: Any) -> None:
    """Replaces each `tensor.pad` that is inserted with strides by a fill and an insertion.

    The host folds an insertion of a padded tensor into a fill with the same value, and adds the padding to the offsets
    without multiplying it by the strides (`FoldInsertPadIntoFill`).
    """
    for op in operations_named(root, "tensor.insert_slice"):
        strides = elements(op.attributes["static_strides"])
        source = op.operands[0].owner
        if isinstance(source, ir.Block) or source.operation.name != _PAD or all(one == 1 for one in strides):
            continue
        pad = source.operation
        value = pad.regions[0].blocks[0].operations[0].operation
        low, high = (elements(pad.attributes[f"static_{side}"]) for side in ("low", "high"))
        type_ = pad.results[0].type
        has_one_value = value.name == "tensor.yield" and value.operands[0].owner != pad.regions[0].blocks[0]
        if (
            not has_one_value
            or not type_.has_static_shape
            or not pad.operands[0].type.has_static_shape
            or min(*low, *high, 0) < 0
        ):
            continue
        with ir.InsertionPoint(pad), pad.location:
            empty = _tensor.EmptyOp(type_.shape, type_.element_type).result
            filled = _linalg.fill(value.operands[0], outs=[empty])
            inserted = _insert(pad.operands[0], filled, low)
        replace_with(pad, [inserted])


def _insert(source: Any, target: Any, offsets: Sequence[int]) -> Any:
    shape = list(source.type.shape)
    return _tensor.InsertSliceOp(source, target, [], [], [], list(offsets), shape, [1] * len(shape)).result
