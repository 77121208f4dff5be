# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `symbol-dce`: the host's, where calls are not the only references to symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from mlir_shard.ir.editing import attribute_columns, children, is_private
from mlir_shard.passes import host_passes
from mlir_shard.passes.analyses import held
from mlir_shard.passes.registry import Changes, Pass, register
from mlir_shard.transforms.call_graph import call_graph, changed_call_graph

# Of their operations none refers to a symbol that is not a mesh or a grid, but for some.
_WITHOUT_SYMBOLS = frozenset(
    ("arith", "chlo", "complex", "linalg", "math", "scf", "sdy", "stablehlo", "tensor", "tosa", "ub")
)
_WITH_SYMBOLS = frozenset(("stablehlo.composite", "stablehlo.custom_call"))
_FUNCTIONS = frozenset(("builtin.module", "func.call", "func.func", "func.return"))


@register
class SymbolDce(Pass):
    """Removes the symbols that nothing refers to and that are not public.

    The host's pass of this name looks at every attribute of every operation. In a module in which nothing but calls
    refers to functions, and no other symbol is private, the private functions are removed that no call reaches from
    the others.
    """

    name = "symbol-dce"
    summary = "Eliminate dead symbols"

    def run(self, op: Any) -> bool | Changes | None:
        if op.name != "builtin.module" or not _are_functions_alone_private(op):
            _run_host(op)
            return None
        functions = children(op, "func.func")
        symbols, visibilities = attribute_columns(functions, "sym_name", "sym_visibility")
        if all(one is None or one.value == "public" for one in visibilities):
            return False
        if not _have_calls_alone(held(op).operations):
            _run_host(op)
            return None
        graph = call_graph(op)
        private = {
            symbol.value: function
            for symbol, visibility, function in zip(symbols, visibilities, functions, strict=True)
            if visibility is not None and visibility.value == "private"
        }
        dead = private.keys() - _called_from_others(graph.called, private.keys())
        for name in dead:
            private[name].erase()
        return Changes(analyses=changed_call_graph(graph.without(dead))) if dead else False


def _run_host(op: Any) -> None:
    host_passes.run(f"{op.name}(symbol-dce)", op.operation, verify_each=False)


def _have_calls_alone(names: Iterable[str]) -> bool:
    """Whether of the operations of those names nothing but calls refers to symbols."""
    return all(
        name in _FUNCTIONS or (name not in _WITH_SYMBOLS and name.partition(".")[0] in _WITHOUT_SYMBOLS)
        for name in names
    )


def _are_functions_alone_private(module: Any) -> bool:
    """Whether functions are the only symbols of a module, and of what is in it, that may be private."""
    inside = [one.operation for one in module.regions[0].blocks[0].operations]
    return all(one.name == "func.func" or not (len(one.regions) or is_private(one)) for one in inside)


def _called_from_others(called: Mapping[str, Iterable[str]], private: Set[str]) -> set[str]:
    """The private functions reached by calls from the others; `called` are the functions that each function calls."""
    reached: set[str] = set()
    rest = set(called) - private
    while rest:
        # A look at each callee alone: what is left of `private` is as long as there are functions.
        found = {name for name in called.get(rest.pop(), ()) if name in private and name not in reached}
        reached |= found
        rest |= found
    return reached
