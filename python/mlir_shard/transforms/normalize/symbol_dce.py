# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `symbol-dce`: the host's, where there is anything that it could remove."""

from __future__ import annotations

from typing import Any

from mlir_shard.passes import host_passes
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.call_graph import CallGraph

_PUBLIC = "public"


@register
class SymbolDce(Pass):
    """Removes the symbols that nothing refers to and that are not public.

    The host's pass of this name looks at every attribute of every operation. Where all private functions are reached by
    calls from public ones, and no other symbol is private, there is nothing to remove, and that is soon found out.
    """

    name = "symbol-dce"
    summary = "Eliminate dead symbols"

    def run(self, op: Any) -> None:
        if op.name != "builtin.module" or _may_have_dead_symbols(op):
            host_passes.run(f"{op.name}(symbol-dce)", op.operation, verify_each=False)


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
    """The functions reached by calls from the ones that are not private."""
    graph = CallGraph.of(module)
    rest = [name for name in graph.functions if name not in private]
    reached: set[str] = set()
    while rest:
        for called in graph.called[rest.pop()]:
            if called in graph.functions and called not in reached:
                reached.add(called)
                rest.append(called)
    return reached
