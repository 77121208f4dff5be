# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies constants for each of their uses, so that unrelated uses can be sharded differently."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Changes, ModulePass, register
from mlir_shard.rules.constants import CONSTANTS
from mlir_shard.transforms.call_graph import FunctionCopies, call_graph
from mlir_shard.transforms.constant_expressions import ConstantExpressions


@register
class ConstantOrScalarSplitter(ModulePass):
    """Gives each use of a constant expression, and of a broadcast of a scalar, its own copy of the entire expression.

    A constant expression is a constant, an iota, a `tensor.empty`, or an op on constant expressions that computes
    constants from constants: elementwise ops, including those of linalg, fills, broadcasts, reshapes, slices, and calls
    and named computations of only such ops. A use inside another constant expression is copied with that expression.
    Scalars are not copied, as they have no dimension to shard. StableHLO constants become sdy constants, which folding
    does not merge, unless `convert-constants` is off. With `split-inside`, each use inside an expression gets its own
    copy too, of a constant and of values computed from one constant alone: for example, the positions for the rows and
    for the columns of a mask.
    """

    name = "sdy-constant-or-scalar-splitter"
    summary = "Splits constants and expansions of scalars so that each has a single use"

    convert_constants: bool = option(True, "Convert constants of StableHLO to constants of sdy")
    split_inside: bool = option(False, "Also split subexpressions that depend on a single constant")

    def run(self, op: Any) -> Changes:
        arrays, copies, graph = _arrays(op), FunctionCopies(op), call_graph(op)
        if self.split_inside and ConstantExpressions(arrays, copies).split_chains():
            before, arrays = arrays, _arrays(op)
            arrays.take_made(before)
        if self.convert_constants:
            _convert_constants(arrays)
        expressions = ConstantExpressions(arrays, copies)
        scopes = expressions.scopes()
        for name in graph.post_order if expressions.has_calls else scopes:
            expressions.split(scopes[name])
        return Changes(copies.made, moved=arrays.made())


def _arrays(op: Any) -> ModuleArrays:
    """Reads the operations. Expressions do not depend on the sizes of operations that are not constants."""
    return ModuleArrays(op, any_sizes=lambda name: name not in CONSTANTS)


def _convert_constants(arrays: ModuleArrays) -> None:
    numbered = enumerate(arrays.representatives())
    arrays.replace({signature: _of_sdy(op) for signature, op in numbered if op.name == "stablehlo.constant"})


def _of_sdy(constant: Any) -> Any:
    """Returns the sdy constant that is equal to a StableHLO constant; it is in no block."""
    attributes = {name: constant.attributes[name] for name in constant.attributes}
    types = [result.type for result in constant.results]
    return ir.Operation.create("sdy.constant", types, [], attributes, loc=constant.location, ip=False)
