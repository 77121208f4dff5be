# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers that parse ops from text and print their rules."""

from __future__ import annotations

from typing import Any

from mlir_shard import asm
from mlir_shard.dialects.contexts import create_context
from mlir_shard.rules import RuleOptions, rule_for
from mlir_shard.sharding import factor_symbol

_BY_DEFAULT = RuleOptions()

# The modules of parsed operations, because an operation does not keep its module alive.
_alive: list[Any] = []


def ops(text: str) -> list[Any]:
    """Returns the operations of a function, given its signature and body: the text after `func.func @f`."""
    module = asm.parse_module(f"func.func @f{text}", create_context(allow_unregistered=True))
    _alive.append(module)
    function = module.body.operations[0].operation
    return [op.operation for op in function.regions[0].blocks[0].operations]


def spelled(op: Any, options: RuleOptions = _BY_DEFAULT) -> str:
    """Returns the rule of an op with its special factors as text, or `None` for an op without a rule."""
    rule = rule_for(op, options)
    if rule is None:
        return "None"
    result = str(rule)
    for name in ("reduction", "need_replication", "permutation", "blocked_propagation"):
        factors = getattr(rule, f"{name}_factors")
        if factors:
            result += f" {name}={','.join(map(factor_symbol, factors))}"
    return result


def rule_of(signature: str, op: str, *, conservative: bool = False) -> str:
    """Returns the rule, as `spelled`, of one op in a function with these arguments."""
    return spelled(ops(f"({signature}) {{\n {op}\n return }}")[0], RuleOptions(conservative))
