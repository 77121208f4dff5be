# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of unsigned integers in graphs of torch, as arithmetic of wider signed integers.

torch-mlir lowers shifts, comparisons and sorts of unsigned integers as those of signed ones, and divisions crash it.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import getitem
from typing import Any

import torch

from mlir_shard.frontend.torch_graph import OF_SAME_ELEMENTS, call, value_of_call

_aten = torch.ops.aten
_WIDER = {torch.uint8: torch.int32, torch.uint32: torch.int64}
_CONVERT = torch.ops.prims.convert_element_type.default
_MOVES = OF_SAME_ELEMENTS | {_aten.cat.default, _aten.clone.default}
"""Operators that only move elements."""


def widen_unsigned(graph: torch.fx.Graph, *, extends_signs: bool) -> None:
    """Computes with unsigned integers in wider signed ones, and converts the results, which wrap around as in torch.

    Args:
        graph: the graph, which is modified.
        extends_signs: whether the conversion of an unsigned integer to a wider one copies its highest bit, as in tosa.
    """
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is getitem or node.target in _MOVES:
            continue
        if node.target == _CONVERT:
            if (_wider(node) and _dtype(node.args[0]).is_floating_point) or (extends_signs and _wider(node.args[0])):
                _convert_by_integers(graph, node, extends_signs)
        elif any(_wider(one) for one in (*node.all_input_nodes, *_results(node))):
            _widen(graph, node, extends_signs)


def _convert_by_integers(graph: torch.fx.Graph, node: torch.fx.Node, extends_signs: bool) -> None:
    """Converts between unsigned integers and others by wider signed ones."""
    source = node.args[0]
    with graph.inserting_before(node):
        if _wider(source):
            taken = _widened(graph, source, extends_signs)
        else:
            taken = call(graph, _CONVERT, source, _wider(node))
    node.args = (taken, *node.args[1:])


def _widen(graph: torch.fx.Graph, node: torch.fx.Node, extends_signs: bool) -> None:
    wanted = {one: _dtype(one) for one in _results(node)}
    with graph.inserting_before(node):
        for one in node.all_input_nodes:
            if _wider(one):
                node.replace_input_with(one, _widened(graph, one, extends_signs))
    kwargs = dict(node.kwargs)
    if kwargs.get("dtype") in _WIDER:
        kwargs["dtype"] = _WIDER[kwargs["dtype"]]
    node.kwargs = kwargs
    node.meta["val"] = value_of_call(node)
    for one, dtype in wanted.items():
        if one is not node:
            one.meta["val"] = node.meta["val"][one.args[1]]
        # The importer prefers this description of the former result.
        one.meta.pop("tensor_meta", None)
        if _dtype(one) != dtype:
            users = list(one.users)
            with graph.inserting_after(one):
                narrow = call(graph, _CONVERT, one, dtype)
            for user in users:
                user.replace_input_with(one, narrow)


def _widened(graph: torch.fx.Graph, node: torch.fx.Node, extends_signs: bool) -> torch.fx.Node:
    wide = call(graph, _CONVERT, node, _wider(node))
    return call(graph, _aten.bitwise_and.Scalar, wide, torch.iinfo(_dtype(node)).max) if extends_signs else wide


def _results(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """Yields the tensors that an operator returns."""
    if isinstance(node.meta.get("val"), torch.Tensor):
        yield node
    else:
        yield from (user for user in node.users if user.target is getitem)


def _dtype(node: Any) -> torch.dtype:
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def _wider(node: torch.fx.Node) -> torch.dtype | None:
    value = node.meta.get("val")
    return _WIDER.get(value.dtype) if isinstance(value, torch.Tensor) else None
