# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops to ask for rules, from text."""

from __future__ import annotations

from typing import Any

from mlir_shard import asm
from mlir_shard.dialects.context import create_context

# An operation does not keep its module alive.
_alive: list[Any] = []


def ops(text: str) -> list[Any]:
    """The operations of a function, from its signature and body: the text after `func.func @f`."""
    module = asm.parse_module(f"func.func @f{text}", create_context(allow_unregistered=True))
    _alive.append(module)
    function = module.body.operations[0].operation
    return [op.operation for op in function.regions[0].blocks[0].operations]
