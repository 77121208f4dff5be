# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The constant expressions of a module, functions and named computations included."""

from __future__ import annotations

from typing import Any

from mlir_shard._native import ExpressionKind as Kind
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import ops_below
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.constants import CONSTANTS, SCALAR_EXPANSIONS, is_constant_of_constants
from mlir_shard.rules.linalg_loops import is_pointwise
from mlir_shard.transforms.call_graph import FunctionCopies, callee, name_of, original_name

# Dialects whose ops compute elements from elements, without effects.
_SCALAR_DIALECTS = frozenset(("arith", "complex", "index", "linalg", "math", "scf"))
_CALL = "func.call"
_COMPUTATION = "sdy.named_computation"
_KINDS = {
    _COMPUTATION: Kind.COMPUTATION,
    _CALL: Kind.CALL,
    "sdy.sharding_group": Kind.GROUP,
}


def expression_kind(op: Any) -> Kind:
    """Returns the role of ops with the name, types and attributes of `op` in constant expressions."""
    name = op.name
    if name in _KINDS:
        return _KINDS[name]
    if name in CONSTANTS:
        return Kind.CONSTANT
    if name in SCALAR_EXPANSIONS:
        return Kind.EXPANSION
    if is_constant_of_constants(op):
        return Kind.OF_CONSTANTS
    if is_pointwise(op):
        return Kind.ASKED_EACH
    return Kind.TERMINATOR if op.has_trait(ir.IsTerminatorTrait) else Kind.OTHER


class ConstantExpressions:
    """The constant expressions of a module, which are split one function after the other.

    The results of a call or named computation of constants are constant if its function or body computes constants from
    constants, as far as these have been processed.
    """

    def __init__(self, arrays: ModuleArrays, copies: FunctionCopies) -> None:
        self._arrays = arrays
        self._copies = copies
        kinds = [expression_kind(op) for op in arrays.representatives()]
        self.has_calls = Kind.CALL in kinds
        self._splitter = arrays.expression_splitter(kinds)
        # The processed functions, each with the name of the function that it is a copy of.
        self._originals: dict[str, str] = {}
        self._other_functions: set[str] = set()
        self._other_computations: set[str] = set()

    def scopes(self) -> dict[str, list[int]]:
        """Returns, for each function, the named computations in it, inner ones first, and then the function itself."""
        by_top = [(self._arrays.operation(scopes[-1]), scopes) for scopes in self._splitter.scopes()]
        return {name_of(top): scopes for top, scopes in by_top if top.name == "func.func"}

    def split_chains(self) -> bool:
        """Gives each use of a constant that is made of at most one other a copy of its own, also inside expressions.

        Returns whether it made copies; if so, the arrays no longer describe the module.
        """

        def preserves(op: int) -> bool:
            return _computes_on_scalars(self._arrays.operation(op))

        split = [
            self._splitter.split_chains(scope, self._is_scalar, preserves)
            for scopes in self._splitter.scopes()
            for scope in scopes
        ]
        return any(split)

    def split(self, scopes: list[int]) -> None:
        """Splits the expressions in the scopes of a function, each scope by itself.

        The last use of an expression keeps the existing ops, and every other use gets copies right before it.
        """
        function = self._arrays.operation(scopes[-1])
        original = original_name(function)
        for scope in scopes:
            self._split_scope(scope, original)
        self._originals[name_of(function)] = original

    def _split_scope(self, scope: int, function: str) -> None:
        op = self._arrays.operation(scope)
        computation = op.attributes["name"].value if op.name == _COMPUTATION else None

        def note_other() -> None:
            self._other_functions.add(function)
            if computation is not None:
                self._other_computations.add(computation)

        def preserves(op: int) -> bool:
            if not self._preserves(self._arrays.operation(op)):
                note_other()
                return False
            return True

        if self._splitter.split(scope, self._is_scalar, preserves, self._copy_of_callee):
            note_other()

    def _preserves(self, op: Any) -> bool:
        """Returns whether the results of an op with a function or body are constant if its operands are."""
        if op.name == _COMPUTATION:
            return op.attributes["name"].value not in self._other_computations
        if op.name != _CALL:
            return _computes_on_scalars(op)
        called = callee(op)
        return called in self._originals and self._originals[called] not in self._other_functions

    def _copy_of_callee(self, call: int) -> str:
        """Copies the callee of a call for one use, as its body is part of the expression; returns the copy's name."""
        return self._copies.copy(callee(self._arrays.operation(call)))

    def _is_scalar(self, value: int) -> bool:
        """Returns whether a value has no dimensions that could be sharded."""
        return not shape_of(self._arrays.value(value).type)


def _computes_on_scalars(op: Any) -> bool:
    """Returns whether the body of an op only computes on elements, and uses no tensor from outside the op."""
    return op.name not in _KINDS and all(
        inner.name.partition(".")[0] in _SCALAR_DIALECTS
        and not any(isinstance(operand.type, ir.ShapedType) for operand in inner.operands)
        for inner in ops_below(op)
    )
