# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A constant for each of its uses, so that uses that have nothing else in common do not shard alike."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.call_graph import CallGraph, name_of, original_name
from mlir_shard.transforms.function_copies import FunctionCopies
from mlir_shard.transforms.normalize.constant_expressions import ConstantExpressions, Scope
from mlir_shard.transforms.operations import operations_named


@register
class ConstantOrScalarSplitter(Pass):
    """Gives each use of a constant expression, and of a broadcast of a scalar, a copy of its own of all that makes it.

    A constant expression is a constant, an iota, or an op that makes constants of constants, of constant expressions:
    elementwise ops, broadcasts, reshapes, slices, and calls and named computations of nothing but such ops. What uses
    it in another constant expression uses its copy there. Scalars have no dimension to shard, and stay. Constants of
    StableHLO become those of sdy, which folding leaves apart.
    """

    name = "sdy-constant-or-scalar-splitter"
    anchor = "builtin.module"
    summary = "Splits constants and expansions of scalars so that each has a single use"

    def run(self, op: Any) -> None:
        _convert_constants(op)
        arrays = ModuleArrays(op)
        expressions = ConstantExpressions(arrays)
        tops = [number for number, parent in enumerate(arrays.parents) if parent < 0]
        numbers = {name_of(top): number for number in tops if (top := arrays.operation(number)).name == "func.func"}
        splitter = _Splitter(op, expressions)
        for name in CallGraph.of(op).post_order() if expressions.has_calls() else numbers:
            original = original_name(arrays.operation(numbers[name]))
            for scope in expressions.scopes(numbers[name], original):
                splitter.split(scope)
            expressions.finish(name, original)


def _convert_constants(module: Any) -> None:
    for constant in operations_named(module, "stablehlo.constant"):
        attributes = {name: constant.attributes[name] for name in constant.attributes}
        types = [result.type for result in constant.results]
        with constant.location:
            new = ir.Operation.create("sdy.constant", types, [], attributes, ip=ir.InsertionPoint(constant))
        constant.results[0].replace_all_uses_with(new.results[0])
        constant.erase()


class _Splitter:
    """Splits the expressions of one scope after the other: the bodies of named computations before what is around.

    The last use of an expression keeps the ops that are there, and every other one gets copies, right before them.
    """

    def __init__(self, module: Any, expressions: ConstantExpressions) -> None:
        self._expressions = expressions
        self._arrays = expressions.arrays
        self._copies = FunctionCopies(module)

    def split(self, scope: Scope) -> None:
        """Finds the expressions in a scope and splits them."""
        expressions = self._expressions
        expressions.find(scope)
        needed = [expressions.needed(scope, value) for _, _, value in scope.uses]
        last = {number: index for index, numbers in enumerate(needed) for number in numbers}
        shared = expressions.shared(scope)
        for index, ((user, position, value), numbers) in enumerate(zip(scope.uses, needed, strict=True)):
            copied: dict[int, Any] = {}
            for number in numbers:
                if last[number] == index and number not in shared:
                    self._keep(scope, number, copied)
                else:
                    self._copy(scope, number, copied)
            if value in copied:
                self._arrays.operation(user).operands[position] = copied[value]
        kept = last.keys() - shared
        self._erase_unused(scope, [number for number in scope.in_order_of_erasure() if number not in kept])

    def _keep(self, scope: Scope, number: int, copied: dict[int, Any]) -> None:
        """Leaves an op to the current use."""
        operands = self._arrays.operands(number)
        if any(operand in copied for operand in operands) or number in scope.groups or number in scope.calls:
            op = self._arrays.operation(number)
            self._use_copies(op, operands, copied)
            self._own_function(scope, number, op)
            for group in reversed(scope.groups.get(number, ())):
                self._arrays.operation(group).move_after(op)

    def _copy(self, scope: Scope, number: int, copied: dict[int, Any]) -> None:
        """Copies an op, and its memberships of sharding groups, for the current use."""
        original = self._arrays.operation(number)
        point = ir.InsertionPoint(original)
        op = original.clone(ip=point)
        self._use_copies(op, self._arrays.operands(number), copied)
        self._own_function(scope, number, op)
        copied.update(zip(self._arrays.results(number), op.results, strict=True))
        for group in scope.groups.get(number, ()):
            member = self._arrays.operation(group).clone(ip=point)
            member.operands[0] = copied[self._arrays.operands(group)[0]]

    @staticmethod
    def _use_copies(op: Any, operands: list[int], copied: dict[int, Any]) -> None:
        for position, operand in enumerate(operands):
            if operand in copied:
                op.operands[position] = copied[operand]

    def _own_function(self, scope: Scope, number: int, op: Any) -> None:
        """Gives a call a function of its own, as what is in the function is part of the expression."""
        if number in scope.calls:
            symbol = self._copies.copy(scope.calls[number])
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(symbol, op.context)

    def _erase_unused(self, scope: Scope, numbers: list[int]) -> None:
        for number in numbers:
            if number in scope.used_as_scalars:
                continue
            op = self._arrays.operation(number)
            members = [use.owner.operation for result in op.results for use in result.uses]
            if all(member.name == "sdy.sharding_group" for member in members):
                for member in members:
                    member.erase()
                op.erase()
