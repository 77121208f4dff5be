# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `symbol-dce`: the host's, where there is anything that it could remove."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.module import native_host
from mlir_shard.passes import host_passes
from mlir_shard.passes.registry import Pass, register

_PUBLIC = "public"


@register
class SymbolDce(Pass):
    """Removes the symbols that nothing refers to and that are not public.

    The host's pass of this name looks at every attribute of every operation. Where all private functions are reached by
    calls from public ones, and no other symbol is private, there is nothing to remove, and that is soon found out.
    """

    name = "symbol-dce"
    summary = "Eliminate dead symbols"

    def run(self, op: Any) -> bool:
        if op.name == "builtin.module" and not _may_have_dead_symbols(op):
            return False
        host_passes.run(f"{op.name}(symbol-dce)", op.operation, verify_each=False)
        return True


def _may_have_dead_symbols(module: Any) -> bool:
    private = set()
    for op in module.regions[0].blocks[0].operations:
        op = op.operation
        is_private = "sym_visibility" in op.attributes and op.attributes["sym_visibility"].value != _PUBLIC
        is_function = op.name == "func.func"
        if (is_private or len(op.regions)) and not is_function:
            return True
        if is_private:
            private.add(op.attributes["sym_name"].value)
    return bool(private) and not private <= _called_from_public(module, private)


def _called_from_public(module: Any, private: set[str]) -> set[str]:
    """The private functions reached by calls from the others."""
    called: dict[str, set[str]] = {}
    for caller, callee in native_host().function_calls(module.operation._CAPIPtr):
        called.setdefault(caller, set()).add(callee)
    reached: set[str] = set()
    rest = set(called) - private
    while rest:
        found = called.get(rest.pop(), set()) & private - reached
        reached |= found
        rest |= found
    return reached
