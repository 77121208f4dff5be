# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cumulative reductions: windowed reductions of all elements up to each element, or from it on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.computed_bodies import is_associative, is_identity
from mlir_shard.rules.reduction import combiners_of_elements
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.rules.windows import (
    REDUCE_WINDOW,
    dim_of,
    is_padding_neutral,
    windows_along_dims,
    windows_along_factors,
    windows_of,
)
from mlir_shard.sharding import OpShardingRule


def cumulative_dim(op: Any) -> int | None:
    """Returns the dimension along which a windowed reduction is cumulative, its only one with windows; else None."""
    dim = full_windows_dim(op)
    return dim if dim is not None and starts_neutrally(op) else None


def starts_neutrally(op: Any) -> bool:
    """Returns whether a reduction with a `full_windows_dim` gives the same with any number of initial values."""
    return is_padding_neutral(op) or is_identity(op, op.operands[1])


def full_windows_dim(op: Any) -> int | None:
    """Returns the dimension along which the windows of a reduction have all elements up to, or from, one; else None.

    It has to be the only dimension with windows, and the body has to be known to be associative. The result depends on
    the attributes, types and body of `op`, but not on its operands.
    """
    if len(op.results) != 1 or not has_static_shapes(op):
        return None
    windows = windows_along_dims(op)
    if len(windows) != 1:
        return None
    (one,) = windows
    size = op.operands[0].type.shape[one.dim]
    is_full = (one.stride, one.dilation, one.extent) == (1, 1, size)
    if not is_full or sorted((one.low, one.high)) != [0, size - 1]:
        return None
    return one.dim if combiners_of_elements(op)[0] is not None or is_associative(op) else None


def factor_windows(op: Any, rule: OpShardingRule) -> tuple[FactorWindow, ...]:
    """Returns the windows along those permutation factors that are a dimension of the first result, without the op."""
    op = op.operation
    is_scan = op.name == REDUCE_WINDOW and cumulative_dim(op) is not None
    found = []
    for window in windows_along_factors(op, rule) if is_scan else windows_of(op, rule):
        result_dim = dim_of(window.factor, rule.result_mappings[0])
        if result_dim is not None:
            size = shape_of(op.operands[window.operand].type)[window.dim]
            new_size = shape_of(op.results[0].type)[result_dim]
            found.append(replace(window.sized(size, new_size), is_scan=is_scan))
    return tuple(found)
