# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `symbol-dce`, which runs that of the host if calls are not the only references to symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from mlir_shard.ir.editing import attribute_columns, children, is_private
from mlir_shard.passes import host_passes
from mlir_shard.passes.analyses import held
from mlir_shard.passes.registry import Changes, Pass, register
from mlir_shard.transforms.call_graph import call_graph, changed_call_graph

# The dialects whose operations, with some exceptions, refer to no symbols other than meshes and grids.
_WITHOUT_SYMBOLS = frozenset(
    ("arith", "chlo", "complex", "linalg", "math", "scf", "sdy", "stablehlo", "tensor", "tosa", "ub")
)
_WITH_SYMBOLS = frozenset(("stablehlo.composite", "stablehlo.custom_call"))
_FUNCTIONS = frozenset(("builtin.module", "func.call", "func.func", "func.return"))


@register
class SymbolDce(Pass):
    """Removes the symbols that are not public and that nothing refers to.

    The host's pass of this name visits every attribute of every operation. In a module in which only calls refer to
    functions and no other symbols are private, this pass instead removes the private functions that no call reaches
    from the other functions.
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
    """Returns whether only calls, of the operations with these names, refer to symbols."""
    return all(
        name in _FUNCTIONS or (name not in _WITH_SYMBOLS and name.partition(".")[0] in _WITHOUT_SYMBOLS)
        for name in names
    )


def _are_functions_alone_private(module: Any) -> bool:
    """Returns whether functions are the only symbols in a module, nested ones included, that may be private."""
    inside = [one.operation for one in module.regions[0].blocks[0].operations]
    return all(one.name == "func.func" or not (len(one.regions) or is_private(one)) for one in inside)


def _called_from_others(called: Mapping[str, Iterable[str]], private: Set[str]) -> set[str]:
    """Returns the private functions that calls from the others reach; `called` has the callees of each function."""
    reached: set[str] = set()
    rest = set(called) - private
    while rest:
        # Only callees are looked up: the rest of `private` may be as large as the number of functions.
        found = {name for name in called.get(rest.pop(), ()) if name in private and name not in reached}
        reached |= found
        rest |= found
    return reached
