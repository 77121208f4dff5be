# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions without a body, each of which stands for a collective until tensors become memory.

To the passes on the way they are calls of which nothing is known: they stay, and stay in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard.host import ir
from mlir_shard.runtime import collectives
from mlir_shard.runtime.group_exchange import GroupExchange

# Of the operands of a call, before which things are built, what its result is then.
Lowering = Callable[[Sequence[Any], GroupExchange], Any]


class StandIns:
    """Those of one module."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._lowerings: dict[str, Lowering] = {}
        self._declarations: list[Any] = []

    def call(self, type_: Any, operands: Sequence[Any], lowering: Lowering) -> Any:
        """The result, of `type_`, of what `lowering` builds later; elements are of types that MPI carries."""
        name = f"mlir_shard.collective_{len(self._lowerings)}"
        types = ", ".join(str(value.type) for value in operands)
        declaration = ir.Operation.parse(f"func.func private @{name}({types}) -> {type_}")
        self._module.body.append(declaration)
        self._declarations.append(declaration)
        self._lowerings[name] = lowering
        attributes = {"callee": ir.FlatSymbolRefAttr.get(name)}
        return ir.Operation.create("func.call", [type_], list(operands), attributes).results[0]

    def lower(self, exchange: GroupExchange) -> None:
        """Replaces the calls."""
        for call in collectives.find(self._module, frozenset({"func.call"})):
            lowering = self._lowerings.get(call.attributes["callee"].value)
            if lowering is not None:
                with ir.InsertionPoint(call), call.location:
                    call.results[0].replace_all_uses_with(lowering(list(call.operands), exchange))
                call.erase()
        for declaration in self._declarations:
            declaration.erase()
