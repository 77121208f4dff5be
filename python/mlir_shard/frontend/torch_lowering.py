# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of graphs of torch to MLIR modules by torch-mlir, and the operators that it cannot lower."""

from __future__ import annotations

from collections.abc import Iterator
from operator import getitem
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch_mlir import ir, passmanager
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras.fx_importer import FxImporter

from mlir_shard.frontend.torch_corrections import (
    ENTRY,
    correct_remainders,
    order_nan,
    restore_reductions,
    scatter_with_sums,
)
from mlir_shard.frontend.torch_graph import without_elements
from mlir_shard.frontend.torch_places import in_line, line_of_node
from mlir_shard.ir.editing import operations_where

_TO_BACKEND_CONTRACT = "func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline"
_TO_DIALECT = {
    "linalg": "torch-backend-to-linalg-on-tensors-backend-pipeline",
    "stablehlo": "torch-backend-to-stablehlo-backend-pipeline",
    "tosa": "torch-backend-to-tosa-backend-pipeline",
}
DIALECTS = tuple(_TO_DIALECT)
"""The dialects of modules."""
_MOST_NAMED = 12


def lowered(module: torch.fx.GraphModule, dialect: str) -> Any:
    """Lowers a graph without arguments and results that are not tensors to a module of another dialect.

    Raises:
        ValueError: torch-mlir cannot lower the operators that the message names.
    """
    try:
        return _lowered(module.graph, dialect)
    except _NotLoweredError as error:
        named = [_named(node, reason, dialect) for node, reason in _not_lowered(module.graph, dialect)]
        if not named:
            # Each operator can be lowered in a program of its own.
            raise ValueError(f"torch-mlir cannot lower the program to '{dialect}': {error}") from error
        more = [f"and {len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
        lines = "".join(f"\n  {one}" for one in [*named[:_MOST_NAMED], *more])
        raise ValueError(f"torch-mlir cannot lower the program to '{dialect}':{lines}") from error


class _NotLoweredError(Exception):
    """The failure to lower a graph, with the reason that torch-mlir gives; empty if it gives none."""


def _lowered(graph: torch.fx.Graph, dialect: str) -> Any:
    reductions = scatter_with_sums(graph) if dialect == "stablehlo" else []
    context = ir.Context()
    torch_dialect.register_dialect(context)
    importer = FxImporter(context=context)
    try:
        importer.import_stateless_graph(graph, func_name=ENTRY)
    # The importer raises any of these for operators and arguments that it does not support.
    except (NotImplementedError, AssertionError, KeyError, TypeError, ValueError) as error:
        raise _NotLoweredError(str(error).partition("\n")[0]) from error
    module = importer.module
    for pipeline in (_TO_BACKEND_CONTRACT, _TO_DIALECT[dialect]):
        try:
            with context:
                passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
        except ir.MLIRError as error:
            reasons = dict.fromkeys(filter(None, (_reason(str(one.message)) for one in error.error_diagnostics)))
            raise _NotLoweredError("; ".join(reasons)) from error
    correct_remainders(module)
    order_nan(module)
    restore_reductions(module, reductions)
    if own := operations_where(module.operation, lambda name: name.startswith("tm_tensor.")):
        raise _NotLoweredError(f"torch-mlir lowers it to '{own[0].name}', an operation of its own")
    return module


def _reason(message: str) -> str:
    """Returns the reason in a diagnostic of torch-mlir; empty for one that only names an operation in its own IR."""
    return "" if message.startswith("failed to legalize operation") else message.partition(": %")[0]


def _not_lowered(graph: torch.fx.Graph, dialect: str) -> Iterator[tuple[torch.fx.Node, str]]:
    """Yields the operators that cannot be lowered in a graph of their own with the reasons, one of each kind."""
    known = set()
    for node in graph.nodes:
        if node.op != "call_function" or node.target is getitem:
            continue
        types = [_type(one.meta["val"]) for one in node.all_input_nodes]
        constants = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: None)
        if (key := f"{node.target} {types} {constants}") in known:
            continue
        known.add(key)
        try:
            _lowered(_alone(node), dialect)
        except _NotLoweredError as error:
            yield node, str(error)


def _type(value: Any) -> Any:
    return (value.dtype, tuple(value.shape)) if isinstance(value, torch.Tensor) else value


def _alone(node: torch.fx.Node) -> torch.fx.Graph:
    """Returns a graph of one operator."""
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for one in node.all_input_nodes:
        copies[one] = graph.placeholder(one.name)
        copies[one].meta["val"] = without_elements(one.meta["val"], FakeTensorMode())
    copies[node] = graph.node_copy(node, copies.__getitem__)
    if isinstance(node.meta["val"], torch.Tensor):
        results = [copies[node]]
    else:
        results = [graph.node_copy(one, copies.__getitem__) for one in node.users if one.target is getitem]
    graph.output(tuple(results))
    return torch.fx.GraphModule({}, graph).graph


def _named(node: torch.fx.Node, reason: str, dialect: str) -> str:
    others = [one for one in DIALECTS if one != dialect and _is_lowered(node, one)]
    quoted = " or ".join(f"dialect='{one}'" for one in others)
    advice = f"{quoted} has a lowering" if others else "compute it with other operators"
    place, line = line_of_node(node)
    because = f": {reason}" if reason else ""
    return f"{place}error: operator '{name_of(node.target)}'{in_line(line)} has no lowering{because}; {advice}"


def name_of(operator: Any) -> str:
    """Returns the name of an operator, such as `aten.cummax`, without `default`."""
    return str(operator).removesuffix(".default")


def _is_lowered(node: torch.fx.Node, dialect: str) -> bool:
    try:
        _lowered(_alone(node), dialect)
    except _NotLoweredError:
        return False
    return True
