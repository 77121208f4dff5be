# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits of graphs of torch whose nodes know the shapes and types of their values, which the importer reads."""

from __future__ import annotations

from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._subclasses import FakeTensor
from torch.utils import _pytree as pytree


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
    # The value of a constant is a tensor with elements.
    args, kwargs = pytree.tree_map_only(_has_elements, mode.from_tensor, (args, kwargs))
    with mode:
        return node.target(*args, **kwargs)


def _has_elements(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)
