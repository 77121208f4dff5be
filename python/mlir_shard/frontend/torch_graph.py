# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits of graphs of torch with the shapes and types of values in the metadata of nodes, which the importer reads."""

from __future__ import annotations

from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

_aten = torch.ops.aten
OF_SAME_ELEMENTS = frozenset(
    {
        _aten.expand.default,
        _aten.permute.default,
        _aten.reshape.default,
        _aten.select.int,
        _aten.slice.Tensor,
        _aten.squeeze.dims,
        _aten.unsqueeze.default,
        _aten.view.default,
    }
)
"""Operators that return elements of their first operand in another order or shape."""


def call(graph: torch.fx.Graph, function: Any, *args: Any, **kwargs: Any) -> torch.fx.Node:
    """Inserts a call of an operator."""
    made = graph.call_function(function, args, kwargs)
    made.meta["val"] = value_of_call(made)
    return made


def value_of_call(node: torch.fx.Node) -> Any:
    """Returns the result of a call as tensors without elements."""
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: one.meta["val"])
    mode = detect_fake_mode([*pytree.tree_leaves((args, kwargs)), node.meta.get("val")])
    if mode is None:
        return node.target(*args, **kwargs)
    args, kwargs = pytree.tree_map(lambda value: without_elements(value, mode), (args, kwargs))
    with mode:
        return node.target(*args, **kwargs)


def without_elements(value: Any, mode: FakeTensorMode) -> Any:
    """Returns a tensor without the elements that the value of a constant has, and any other value itself."""
    has_elements = isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)
    return mode.from_tensor(value) if has_elements else value
