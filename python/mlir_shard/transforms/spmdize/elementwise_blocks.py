# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that work element by element, on a block of their tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.ir.editing import ops_below
from mlir_shard.rules import RuleCache
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.sharding.rule import FactorType

_LINALG = frozenset(
    f"linalg.{name}"
    for name in (
        *("abs", "add", "ceil", "div", "div_unsigned", "elementwise", "erf", "exp", "floor", "generic", "log", "map"),
        *("max", "min", "mul", "negf", "powf", "reciprocal", "round", "rsqrt", "select", "sqrt", "square", "sub"),
        "tanh",
    )
)


@dataclass(frozen=True, slots=True)
class OnBlock:
    """An op that is to work on blocks: the dimension of each operand that is cut, None where it stays whole."""

    op: Any
    operand_dims: tuple[int | None, ...]


def on_block(op: Any, value: Any, dim: int, rules: RuleCache) -> OnBlock | None:
    """How an op with the operand `value` works on blocks of dimension `dim` of its result; None where it does not."""
    if len(op.results) != 1 or not (is_elementwise(op.name) or op.name in _LINALG):
        return None
    if list(op.results[0].type.shape) != list(value.type.shape) or any(
        one.name == "linalg.index" for one in ops_below(op)
    ):
        return None
    rule = rules.rule_for(op)
    if rule is None or any(
        rule.factor_type(factor) is not FactorType.PASS_THROUGH for factor in range(rule.num_factors)
    ):
        return None
    factors = rule.result_mappings[0].dim_mappings[dim].factor_indices
    if len(factors) != 1:
        return None
    dims: list[int | None] = []
    for operand, mapping in zip(op.operands, rule.operand_mappings, strict=True):
        cut = [at for at, one in enumerate(mapping.dim_mappings) if factors[0] in one.factor_indices]
        is_whole = cut and mapping.dim_mappings[cut[0]].factor_indices == factors
        is_value = operand == value
        if len(cut) > 1 or (cut and not is_whole) or (is_value and cut != [dim]):
            return None
        dims.append(cut[0] if cut else None)
    return OnBlock(op, tuple(dims))
