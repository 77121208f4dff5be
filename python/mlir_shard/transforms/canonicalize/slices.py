# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns on slices: an intermediate tensor of another size has other shards, so that elements move twice."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.patterns import Pattern
from mlir_shard.ir.values import defining_op
from mlir_shard.rules.registry import has_static_shapes

LABEL = "shard-slices"


def slice_of_pad(op: Any, rewriter: Any) -> bool:
    """Replaces a slice of a pad by a pad with other amounts, if its result has elements of the padded tensor.

    Tokens are shifted so: `jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]`.
    """
    found = _padding(op)
    if found is None:
        return False
    pad, lows, highs = found
    attributes = {name: op.attributes[name] for name in op.attributes if name not in _OF_SLICE}
    attributes |= {
        "edge_padding_low": stablehlo.sizes(lows),
        "edge_padding_high": stablehlo.sizes(highs),
        "interior_padding": pad.attributes["interior_padding"],
    }
    with ir.InsertionPoint(op):
        made = ir.Operation.create(pad.name, [op.results[0].type], list(pad.operands), attributes, loc=op.location)
    rewriter.replace_op(op, made)
    return True


def _padding(op: Any) -> tuple[Any, list[int], list[int]] | None:
    """Returns the pad that a slice is of, and the amounts of padding before and behind that the slice leaves."""
    pad = defining_op(op.operands[0], "stablehlo.pad")
    if pad is None or not has_static_shapes(op) or not has_static_shapes(pad) or sdy.SHARDING in pad.attributes:
        return None
    strides, starts, limits = (elements(op.attributes[name]) for name in ("strides", "start_indices", "limit_indices"))
    lows, between = (elements(pad.attributes[name]) for name in ("edge_padding_low", "interior_padding"))
    shape = pad.operands[0].type.shape
    cut = [dim for dim, size in enumerate(op.operands[0].type.shape) if size != limits[dim] - starts[dim]]
    if set(strides) != {1} or any(between[dim] for dim in cut) or len(list(pad.results[0].uses)) > 1:
        return None
    if any(starts[dim] >= lows[dim] + shape[dim] or limits[dim] <= lows[dim] for dim in cut):
        return None
    highs = elements(pad.attributes["edge_padding_high"])
    for dim in cut:
        highs[dim] = limits[dim] - lows[dim] - shape[dim]
        lows[dim] -= starts[dim]
    return pad, lows, highs


def _may_match(op: Any) -> bool:
    return _padding(op) is not None


_OF_SLICE = ("start_indices", "limit_indices", "strides")
PATTERNS = (Pattern("slice-of-pad", LABEL, "stablehlo.slice", slice_of_pad, ("stablehlo.pad",), _may_match),)
