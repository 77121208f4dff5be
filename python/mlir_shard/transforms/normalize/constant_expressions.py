# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finding the constant expressions of a module, and what uses them, on the module as flat arrays."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.host import ir
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.constants import is_constant, is_constant_of_constants, is_scalar_expansion
from mlir_shard.transforms.call_graph import callee


class Kind(Enum):
    """What an op is to constant expressions."""

    CONSTANT = auto()
    OF_CONSTANTS = auto()
    EXPANSION = auto()
    COMPUTATION = auto()
    CALL = auto()
    GROUP = auto()
    TERMINATOR = auto()
    OTHER = auto()


_KINDS = {
    "sdy.named_computation": Kind.COMPUTATION,
    "func.call": Kind.CALL,
    "sdy.sharding_group": Kind.GROUP,
}
_PRESERVING = (Kind.CONSTANT, Kind.OF_CONSTANTS, Kind.EXPANSION)


def _kind(op: Any) -> Kind:
    name = op.name
    if name in _KINDS:
        return _KINDS[name]
    if is_constant(name):
        return Kind.CONSTANT
    if is_scalar_expansion(name):
        return Kind.EXPANSION
    if is_constant_of_constants(op):
        return Kind.OF_CONSTANTS
    return Kind.TERMINATOR if op.has_trait(ir.IsTerminatorTrait) else Kind.OTHER


@dataclass(slots=True, eq=False)
class Scope:
    """The ops in a function or in a named computation, without those in named computations inside it.

    `function` and `computation` are the names of what it is in. The rest is what is found in it: the ops of constant
    expressions and expansions of scalars, the uses of their results by other ops as (op, position, value), the
    memberships of sharding groups and the callee by op, and the ops whose scalar results are used.
    """

    ops: list[int]
    function: str
    computation: str | None = None
    constants: dict[int, None] = field(default_factory=dict)
    expansions: dict[int, None] = field(default_factory=dict)
    uses: list[tuple[int, int, int]] = field(default_factory=list)
    groups: dict[int, list[int]] = field(default_factory=dict)
    calls: dict[int, str] = field(default_factory=dict)
    used_as_scalars: set[int] = field(default_factory=set)

    def __contains__(self, op: int) -> bool:
        return op in self.constants or op in self.expansions

    def in_order_of_erasure(self) -> list[int]:
        """The ops found, each after those that use its results."""
        return [*reversed(self.expansions), *reversed(self.constants)]


class ConstantExpressions:
    """The constant expressions of a module.

    `finished` are the functions that have been gone through: of no other one is it known what its calls give.
    """

    def __init__(self, arrays: ModuleArrays) -> None:
        self.arrays = arrays
        self.finished: set[str] = set()
        self._kinds = [_kind(op) for op in arrays.representatives()]
        # Where each operation of the module's body begins, and so the one before it ends.
        self._ends = [op for op, parent in enumerate(arrays.parents) if parent < 0] + [len(arrays)]
        self._other_functions: set[str] = set()
        self._other_computations: set[str] = set()
        self._originals: dict[str, str] = {}
        self._scalars: dict[int, list[bool]] = {}

    def scopes(self, function: int, name: str) -> Iterator[Scope]:
        """The scopes in a function, inner ones first; `name` is that of the function it is a copy of."""
        parents, kinds, signatures = self.arrays.parents, self._kinds, self.arrays.signatures
        inside = range(function + 1, self._ends[bisect(self._ends, function)])
        ops: dict[int, list[int]] = {}
        if Kind.COMPUTATION in kinds:
            ops[function] = []
            scope_of = {function: function}
            for op in inside:
                scope = scope_of[parents[op]]
                ops[scope].append(op)
                scope_of[op] = scope
                if kinds[signatures[op]] is Kind.COMPUTATION:
                    ops[op] = []
                    scope_of[op] = op
        else:
            ops[function] = list(inside)
        yield from self._inner_first(function, ops, name)

    def has_calls(self) -> bool:
        """Whether there is a call anywhere."""
        return Kind.CALL in self._kinds

    def _inner_first(self, scope: int, ops: dict[int, list[int]], function: str) -> Iterator[Scope]:
        for op in ops[scope] if len(ops) > 1 else ():
            if op in ops:
                yield from self._inner_first(op, ops, function)
        op = self.arrays.operation(scope)
        yield Scope(ops[scope], function, op.attributes["name"].value if op.name == "sdy.named_computation" else None)

    def find(self, scope: Scope) -> None:
        """Finds the constant expressions in a scope, and their uses, all in the order of the text."""
        arrays, kinds, signatures = self.arrays, self._kinds, self.arrays.signatures
        operands_of, other, terminator, group = arrays.operands, Kind.OTHER, Kind.TERMINATOR, Kind.GROUP
        constant_kind, expansion = Kind.CONSTANT, Kind.EXPANSION
        # The results of the constant expressions found, and of the expansions of scalars.
        constant: set[int] = set()
        expanded: set[int] = set()
        for op in scope.ops:
            kind = kinds[signatures[op]]
            operands = operands_of(op)
            if kind is group:
                scope.groups.setdefault(arrays.definers[operands[0]], []).append(op)
                continue
            if kind is other or kind is terminator:
                pass
            elif not self._preserves(op, kind, scope):
                self._note_other(scope)
            elif kind is constant_kind or constant.issuperset(operands):
                scope.constants[op] = None
                constant.update(arrays.results(op))
                continue
            elif kind is expansion and all(value in constant or self.is_scalar(value) for value in operands):
                scope.expansions[op] = None
                expanded.update(arrays.results(op))
                continue
            if not (constant.isdisjoint(operands) and expanded.isdisjoint(operands)):
                for position, value in enumerate(operands):
                    if value in constant or value in expanded:
                        self._add_use(scope, op, position, value)
        if any(kinds[signature] is other for signature in {signatures[op] for op in scope.ops}):
            self._note_other(scope)

    def _note_other(self, scope: Scope) -> None:
        """Notes that a scope does other things than make constants of constants."""
        self._other_functions.add(scope.function)
        if scope.computation is not None:
            self._other_computations.add(scope.computation)

    def _add_use(self, scope: Scope, op: int, position: int, value: int) -> None:
        if self.is_scalar(value):
            scope.used_as_scalars.add(self.arrays.definers[value])
        else:
            scope.uses.append((op, position, value))

    def _preserves(self, op: int, kind: Kind, scope: Scope) -> bool:
        """Whether the results of an op are constant where its operands are."""
        if kind in _PRESERVING:
            return True
        if kind is Kind.COMPUTATION:
            return self.arrays.operation(op).attributes["name"].value not in self._other_computations
        if kind is Kind.CALL:
            called = callee(self.arrays.operation(op))
            scope.calls[op] = called
            return called in self.finished and self._originals[called] not in self._other_functions
        return False

    def finish(self, function: str, original: str) -> None:
        """Says that all of a function has been gone through; `original` is the name of what it is a copy of."""
        self.finished.add(function)
        self._originals[function] = original

    def is_scalar(self, value: int) -> bool:
        """Whether a value has no dimensions that could be sharded."""
        definer = self.arrays.definers[value]
        if definer < 0:
            return not shape_of(self.arrays.value(value).type)
        signature = self.arrays.signatures[definer]
        if signature not in self._scalars:
            results = map(self.arrays.value, self.arrays.results(definer))
            self._scalars[signature] = [not shape_of(result.type) for result in results]
        scalars = self._scalars[signature]
        return scalars[0] if len(scalars) == 1 else scalars[self.arrays.results(definer).index(value)]

    def needed(self, scope: Scope, value: int) -> list[int]:
        """The ops found that make a value, without those that only scalars come from, each after those it uses."""
        arrays, definers = self.arrays, self.arrays.definers
        found = {definers[value]}
        rest = [definers[value]]
        while rest:
            for operand in arrays.operands(rest.pop()):
                definer = definers[operand]
                if definer in scope and definer not in found and not self.is_scalar(operand):
                    found.add(definer)
                    rest.append(definer)
        return sorted(found)

    def shared(self, scope: Scope) -> set[int]:
        """The ops found that have scalar results, and all that those need: what uses the scalars keeps using them."""
        arrays = self.arrays
        shared = {op for op in scope.constants if any(map(self.is_scalar, arrays.results(op)))}
        rest = list(shared)
        while rest:
            for operand in arrays.operands(rest.pop()):
                definer = arrays.definers[operand]
                if definer in scope and definer not in shared:
                    shared.add(definer)
                    rest.append(definer)
        return shared
