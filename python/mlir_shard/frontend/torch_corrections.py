# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Corrections of operators of torch that torch-mlir lowers wrongly, in the graph or in the module."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from operator import getitem
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch_mlir import ir

from mlir_shard.frontend.torch_graph import OF_SAME_ELEMENTS, call, without_elements
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import functions, operations_named
from mlir_shard.ir.values import insertion_point_after, replace_uses, uses_of

ENTRY = "main"
"""The name of the function of a module."""
_aten = torch.ops.aten
_INDEXED = (_aten.index.Tensor, _aten.index_put.default)
_RANGES = (_aten.arange.default, _aten.arange.start, _aten.arange.start_step)
_PLACES = (_aten.argmax.default, _aten.argmin.default)
_WITH_PLACES = (_aten.sort.default, _aten.topk.default)


def count_indices_from_the_start(graph: torch.fx.Graph) -> None:
    """Adds the sizes of dimensions to negative indices of a graph, which torch-mlir clamps to 0 for StableHLO."""
    for node in list(graph.nodes):
        if node.target not in _INDEXED:
            continue
        shape = node.args[0].meta["val"].shape
        indices = list(node.args[1])
        for dim, index in enumerate(indices):
            if index is None or index.meta["val"].dtype == torch.bool or _is_never_negative(index):
                continue
            with graph.inserting_before(node):
                is_negative = call(graph, _aten.lt.Scalar, index, 0)
                moved = call(graph, _aten.add.Tensor, index, shape[dim])
                indices[dim] = call(graph, _aten.where.self, is_negative, moved, index)
        node.args = (node.args[0], indices, *node.args[2:])


def compare_with_itself(graph: torch.fx.Graph) -> None:
    """Replaces comparisons of floats with themselves, which torch-mlir takes for true; they are false for NaN."""
    for node in graph.nodes:
        if node.target in _REFLEXIVE and node.args[0] is node.args[1]:
            with graph.inserting_before(node):
                is_nan = call(graph, _aten.ne.Tensor, *node.args)
            node.target, node.args = _aten.logical_not.default, (is_nan,)


_REFLEXIVE = (_aten.eq.Tensor, _aten.ge.Tensor, _aten.le.Tensor)


def _is_never_negative(index: torch.fx.Node) -> bool:
    """Returns whether the elements of an index are known not to be negative."""
    while index.target in OF_SAME_ELEMENTS:
        index = index.args[0]
    if index.target is getitem:
        # The first result of these operators has values, the second one places.
        return index.args[0].target in _WITH_PLACES and index.args[1] == 1
    return index.target in _PLACES or (index.target in _RANGES and all(one >= 0 for one in index.args))


def correct_remainders(module: Any) -> None:
    """Gives remainders of StableHLO the sign of the divisor, as torch does; StableHLO's is that of the dividend."""
    for op in operations_named(module.operation, "stablehlo.remainder"):
        divisor, found = op.operands[1], op.results[0]
        uses = uses_of(found)
        with module.context, op.location, insertion_point_after(found):
            zero = stablehlo.splat(found.type, 0)
            signs = [stablehlo.compare("LT", one, zero) for one in (found, divisor)]
            is_wrong = stablehlo.binary("and", stablehlo.compare("NE", found, zero), stablehlo.binary("xor", *signs))
            replace_uses(uses, stablehlo.select(is_wrong, stablehlo.binary("add", found, divisor), found))


def order_nan(module: Any) -> None:
    """Makes sorts of StableHLO stable, and places NaN after all other floats; in torch it is the greatest one."""
    for op in operations_named(module.operation, "stablehlo.sort"):
        with module.context:
            op.attributes["is_stable"] = ir.BoolAttr.get(True)
        for compare in operations_named(op, "stablehlo.compare"):
            if not isinstance(compare.operands[0].type.element_type, ir.FloatType):
                continue
            with compare.location, ir.InsertionPoint(compare):
                ordered = [_ordered(one) for one in compare.operands]
                total = ir.Attribute.parse("#stablehlo<comparison_type TOTALORDER>", module.context)
            for index, one in enumerate(ordered):
                compare.operands[index] = one
            compare.attributes["compare_type"] = total


def _ordered(value: Any) -> Any:
    """Returns a float without the signs of zeros and NaN, which the total order of IEEE 754 distinguishes."""
    zero = stablehlo.splat(value.type, 0)
    plain = stablehlo.select(stablehlo.compare("EQ", value, zero), zero, value)
    return stablehlo.select(stablehlo.compare("NE", value, value), stablehlo.splat(value.type, nan), plain)


_REDUCTIONS = {"amax": "maximum", "amin": "minimum", "prod": "multiply"}


def scatter_with_sums(graph: torch.fx.Graph) -> list[str]:
    """Replaces scatters with other reductions, which have no lowering, by scatters with sums, and returns the former.

    The updates of such a scatter become an additional argument of the graph, so that it is not merged with another one,
    and an additional result.
    """
    reductions = []
    updates = []
    first = next(node for node in graph.nodes if node.op != "placeholder")
    for node in graph.nodes:
        if node.target != _aten.scatter_reduce.two or node.args[4] not in _REDUCTIONS:
            continue
        x, dim, index, update, reduction = node.args
        with graph.inserting_before(first):
            argument = graph.placeholder(f"{node.name}_updates")
        argument.meta["val"] = without_elements(update.meta["val"], FakeTensorMode())
        node.target, node.args, node.kwargs = _aten.scatter_add.default, (x, dim, index, argument), {}
        reductions.append(_REDUCTIONS[reduction])
        updates.append(update)
    if updates:
        results = graph.output_node()
        results.args = ((*results.args[0], *updates),)
    return reductions


def restore_reductions(module: Any, reductions: Sequence[str]) -> None:
    """Gives scatters of StableHLO the reductions that `scatter_with_sums` returned, and their updates."""
    if not reductions:
        return
    function = functions(module)[ENTRY]
    block = function.regions[0].blocks[0]
    (last,) = operations_named(function, "func.return")
    count = len(block.arguments) - len(reductions)
    kept = len(last.operands) - len(reductions)
    for index, reduction in enumerate(reductions):
        argument, update = block.arguments[count + index], last.operands[kept + index]
        _reduce_by(reduction, _scatter_of(argument))
        argument.replace_all_uses_with(update)
    with last.location, ir.InsertionPoint(last):
        ir.Operation.create("func.return", [], list(last.operands)[:kept])
    last.erase()
    for _ in reductions:
        block.erase_argument(count)
    type_ = function.attributes["function_type"].value
    with function.location:
        changed = ir.FunctionType.get(list(type_.inputs)[:count], list(type_.results)[:kept])
        function.attributes["function_type"] = ir.TypeAttr.get(changed)
    module.operation.verify()


def _scatter_of(updates: Any) -> Any:
    """Returns the scatter whose updates are a value, or a slice or another shape of it."""
    while True:
        (use,) = updates.uses
        if use.owner.operation.name == "stablehlo.scatter":
            return use.owner.operation
        updates = use.owner.operation.results[0]


def _reduce_by(name: str, scatter: Any) -> None:
    (add,) = operations_named(scatter, "stablehlo.add")
    found = add.results[0]
    with scatter.context, add.location, insertion_point_after(found):
        replace_uses(uses_of(found), stablehlo.binary(name, *add.operands))
    add.erase()
