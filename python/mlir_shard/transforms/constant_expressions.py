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

# What computes elements of elements, without effects.
_SCALAR_DIALECTS = frozenset(("arith", "complex", "index", "linalg", "math", "scf"))
_CALL = "func.call"
_COMPUTATION = "sdy.named_computation"
_KINDS = {
    _COMPUTATION: Kind.COMPUTATION,
    _CALL: Kind.CALL,
    "sdy.sharding_group": Kind.GROUP,
}


def expression_kind(op: Any) -> Kind:
    """What operations with the name, types and attributes of `op` are to constant expressions."""
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
    """Splits the constant expressions of a module, one function after the other.

    A call or named computation makes constants of constants where all that its function or body has done so, as far
    as that has been gone through.
    """

    def __init__(self, arrays: ModuleArrays, copies: FunctionCopies) -> None:
        self._arrays = arrays
        self._copies = copies
        kinds = [expression_kind(op) for op in arrays.representatives()]
        self.has_calls = Kind.CALL in kinds
        self._splitter = arrays.expression_splitter(kinds)
        # The functions that have been gone through, with the names of what they are copies of.
        self._originals: dict[str, str] = {}
        self._other_functions: set[str] = set()
        self._other_computations: set[str] = set()

    def scopes(self) -> dict[str, list[int]]:
        """For each function the named computations in it, inner ones first, and then the function itself."""
        by_top = [(self._arrays.operation(scopes[-1]), scopes) for scopes in self._splitter.scopes()]
        return {name_of(top): scopes for top, scopes in by_top if top.name == "func.func"}

    def split_chains(self) -> bool:
        """Gives each use of a constant that is made of at most one other a copy of its own, also inside expressions.

        Returns whether there was any to copy: then the arrays are no longer those of the module.
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
        """Splits the expressions in the scopes of a function, each by itself.

        The last use of an expression keeps the ops that are there, and every other one gets copies, right before them.
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
        """Whether the results of an op with a function or body are constant where its operands are."""
        if op.name == _COMPUTATION:
            return op.attributes["name"].value not in self._other_computations
        if op.name != _CALL:
            return _computes_on_scalars(op)
        called = callee(op)
        return called in self._originals and self._originals[called] not in self._other_functions

    def _copy_of_callee(self, call: int) -> str:
        """The body of a function is part of the expression, so that a call for one use has a function of its own."""
        return self._copies.copy(callee(self._arrays.operation(call)))

    def _is_scalar(self, value: int) -> bool:
        """Whether a value has no dimensions that could be sharded."""
        return not shape_of(self._arrays.value(value).type)


def _computes_on_scalars(op: Any) -> bool:
    """Whether the body of a structured op only computes on elements, and takes no tensor from around the op."""
    return op.name not in _KINDS and all(
        inner.name.partition(".")[0] in _SCALAR_DIALECTS
        and not any(isinstance(operand.type, ir.ShapedType) for operand in inner.operands)
        for inner in ops_below(op)
    )
