# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of graphs, in the format of Model Explorer's `graph_builder`.

https://github.com/google-ai-edge/model-explorer/wiki
"""

from __future__ import annotations

from typing import Any

from mlir_shard.explain.page.outline import scopes

Data = dict[str, Any]

RETURNS = frozenset({"func.return", "return"})
"""The ops that a function ends with; their operands are the results of a graph."""


def attribute(key: str, value: str) -> Data:
    """Returns an attribute of a node, of an output or of a graph."""
    return {"key": key, "value": value}


def edge(source: str, output: int, operand: int) -> Data:
    """Returns the edge to an operand of a node from an output of the node `source`."""
    return {"sourceNodeId": source, "sourceNodeOutputId": str(output), "targetNodeInputId": str(operand)}


def namespace(name: str) -> str:
    """Returns the layers around an op whose location has a name, as JAX and PyTorch give them."""
    return "/".join(part.replace("/", "∕") for part in scopes(name)[:-1])
