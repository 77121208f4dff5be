# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The call graph of the functions of a module, their order by it, and copies of functions with their callees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, TypeVar

from mlir_shard.host import ir
from mlir_shard.ir.editing import attribute_columns, block_count, functions, named_in_each, operations_named
from mlir_shard.passes.analyses import analysis, held
from mlir_shard.passes.registry import PassFailure

T = TypeVar("T")
CALL = "func.call"
MAIN = "main"
MOST_COPIES = 1 << 16
"""The largest number of copies of functions or their bodies: a chain of calls may double it at each level."""
# The attribute of a copied function with the name of the original function.
ORIGINAL_NAME = "sdy.original_func_name"


def name_of(function: Any) -> str:
    """Returns the symbol of a function."""
    name: str = function.attributes["sym_name"].value
    return name


def original_name(function: Any) -> str:
    """Returns the name of the function that `function` is a copy of, or its own name if it is not a copy."""
    key = ORIGINAL_NAME if ORIGINAL_NAME in function.attributes else "sym_name"
    name: str = function.attributes[key].value
    return name


def callee(call: Any) -> str:
    """Returns the symbol of the function that a `func.call` calls."""
    name: str = call.attributes["callee"].value
    return name


def set_callee(call: Any, name: str) -> None:
    """Makes a `func.call` call the function of that symbol."""
    call.attributes["callee"] = ir.FlatSymbolRefAttr.get(name, call.context)


def has_body(function: Any) -> bool:
    """Returns whether a function has a body, rather than being a declaration."""
    return block_count(function) > 0


def main_function(module: Any) -> Any:
    """Returns the function in which the program begins: the only one of the module, or the one called `main`.

    Raises PassFailure if there is neither.
    """
    found = functions(module)
    if len(found) == 1:
        return next(iter(found.values()))
    if MAIN not in found:
        raise PassFailure(f"a module with {len(found)} functions must define the entry function @{MAIN}")
    return found[MAIN]


@dataclass(frozen=True)
class CallGraph:
    """The functions of a module by symbol, the calls in the body of each, and the symbols that these call, in text
    order."""

    functions: dict[str, Any]
    calls: dict[str, list[Any]]
    called: dict[str, list[str]]

    @staticmethod
    def of(module: Any) -> CallGraph:
        """Returns the call graph of a module."""
        found = functions(module)
        return CallGraph.between(found, dict(zip(found, named_in_each(list(found.values()), CALL), strict=True)))

    @staticmethod
    def between(functions: dict[str, Any], calls: dict[str, list[Any]]) -> CallGraph:
        """Returns the call graph of these functions with the calls in the body of each."""
        (symbols,) = attribute_columns(list(chain.from_iterable(calls.values())), "callee")
        names = (symbol.value for symbol in symbols)
        return CallGraph(functions, calls, {name: list(islice(names, len(inside))) for name, inside in calls.items()})

    def without(self, names: Collection[str]) -> CallGraph:
        """Returns the call graph without the functions of these names, which no other function calls."""

        def kept(of_function: dict[str, T]) -> dict[str, T]:
            return {name: one for name, one in of_function.items() if name not in names}

        return CallGraph(kept(self.functions), kept(self.calls), kept(self.called))

    @property
    def all_calls(self) -> list[Any]:
        """The calls of all functions."""
        return list(chain.from_iterable(self.calls.values()))

    @cached_property
    def post_order(self) -> tuple[str, ...]:
        """The functions with bodies, each after the functions that it calls, and otherwise in text order."""
        order: list[str] = []
        seen: set[str] = set()
        for root in self.functions:
            if root in seen:
                continue
            seen.add(root)
            stack = [(root, self._called(root))]
            while stack:
                name, called = stack[-1]
                following = next((one for one in called if one not in seen), None)
                if following is None:
                    order.append(name)
                    stack.pop()
                else:
                    seen.add(following)
                    if self.called[following]:
                        stack.append((following, self._called(following)))
                    else:
                        order.append(following)
        return tuple(name for name in order if has_body(self.functions[name]))

    def _called(self, name: str) -> Iterator[str]:
        return (called for called in self.called[name] if called in self.functions)

    def reject_recursion(self) -> None:
        """Raises PassFailure at a call that leads back to the function that contains it."""
        finished: set[str] = set()
        defined = set(self.post_order)
        for name in self.post_order:
            # A function is finished before its callers, except where a call leads back to its own function.
            for call, called in zip(self.calls[name], self.called[name], strict=True):
                if called in defined and called not in finished:
                    raise PassFailure(
                        f"the call of @{called} in @{name} is recursive and cannot be inlined",
                        call,
                    )
            finished.add(name)

    def reject_doubling(self, order: Sequence[str]) -> None:
        """Raises PassFailure at a function in which inlining would replace more than `MOST_COPIES` calls.

        Args:
            order: the functions in post-order.
        """
        counts: dict[str, int] = {}
        for name in order:
            # A recursive call is not inlined; its callee has no count yet.
            counts[name] = sum(1 + counts.get(called, 0) for called in self.called[name])
            if counts[name] > MOST_COPIES:
                raise PassFailure(
                    f"inlining @{name} and its callees replaces {counts[name]} calls, more than {MOST_COPIES}",
                    self.functions[name],
                )


def call_graph(module: Any) -> CallGraph:
    """Returns the call graph of a module at the start of the current pass: see `passes/analyses.py`."""
    return analysis(_call_graph, module)


def _call_graph(module: Any) -> CallGraph:
    if held(module).has_any((CALL,)):
        return CallGraph.of(module)
    found = functions(module)
    return CallGraph.between(found, {name: [] for name in found})


def changed_call_graph(graph: CallGraph) -> dict[Callable[[Any], Any], Any]:
    """Returns the `analyses` of `Changes` after which a module has this call graph."""
    return {_call_graph: graph}


class FunctionCopies:
    """Copies functions to the end of a module; no function may call itself, directly or through others.

    made: the copies.
    calls: the calls in the body of each copy, by its symbol.
    """

    def __init__(self, module: Any) -> None:
        self._end = ir.InsertionPoint(module.regions[0].blocks[0])
        self._symbols = ir.SymbolTable(module)
        self._functions = functions(module)
        self.made: list[Any] = []
        self.calls: dict[str, list[Any]] = {}
        self._counts: dict[str, int] = {}

    def copy(self, name: str) -> str:
        """Copies the function of that symbol if it has a body; returns the symbol of the copy.

        Raises PassFailure if there would be more than `MOST_COPIES`.
        """
        count = self._count(name)
        if len(self.made) + count > MOST_COPIES:
            raise PassFailure(
                f"the calls require {len(self.made) + count} copies of functions, more than {MOST_COPIES}: @{name} "
                f"and its callees require {count}",
                self._functions[name],
            )
        return self._copy(name)

    def _count(self, name: str) -> int:
        """Returns the number of copies that copying a function makes, including copies of the functions it calls."""
        function = self._functions.get(name)
        if function is None or not has_body(function):
            return 0
        if name not in self._counts:
            called = (callee(call) for call in operations_named(function, CALL))
            self._counts[name] = 1 + sum(map(self._count, called))
        return self._counts[name]

    def _copy(self, name: str) -> str:
        function = self._functions.get(name)
        if function is None or not has_body(function):
            return name
        called = [self._copy(callee(call)) for call in operations_named(function, CALL)]
        copied = function.clone(ip=self._end)
        copied.attributes[ORIGINAL_NAME] = ir.StringAttr.get(original_name(function), function.context)
        symbol: str = self._symbols.insert(copied).value
        self.calls[symbol] = operations_named(copied, CALL) if called else []
        for call, symbol_of_copy in zip(self.calls[symbol], called, strict=True):
            set_callee(call, symbol_of_copy)
        self.made.append(copied)
        self._functions[symbol] = copied
        return symbol
