# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the nodes of the graphs of a program cost, and how they are sharded, in the format of `node_data_builder`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mlir_shard.explain.explanation import Explanation
from mlir_shard.explain.model_explorer.graphs import Graphs
from mlir_shard.explain.model_explorer.local_graphs import SUFFIX, LocalGraphs
from mlir_shard.explain.model_explorer.parts import Data
from mlir_shard.explain.text import sharding_text
from mlir_shard.explain.values import Tensor

_WHITE_TO_RED = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#f28b82"}]
_WHITE_TO_BLUE = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#8ab4f8"}]
_REPLICATED = "#ffffff"
# Of distinct shardings, the most frequent first; it comes back after so many.
_COLORS = ("#aecbfa", "#fdd663", "#a8dab5", "#f6aea9", "#d7aefb", "#78d9ec", "#fcad70", "#e8eaed")


SHARDING = "Sharding"
BYTES = "Bytes received for collectives"
TIME = "Predicted time of collectives (µs)"
SHARD_BYTES = "Bytes of a shard"
KINDS = {
    SHARDING: "the axes of each dimension",
    BYTES: "what a device receives for the operation",
    TIME: "what that takes, as the cost model has it",
    SHARD_BYTES: "what a device holds of the results",
}
"""The kinds of data, each with what it is in a line."""


class NodeData:
    """The data of all functions of a program and of its local program, by the names of kinds of data.

    Args:
        graphs: of the program.
        local: of the local program.
    """

    def __init__(self, graphs: Graphs, local: LocalGraphs | None = None) -> None:
        self._graphs, self._local = graphs, local
        self._kinds: dict[str, Callable[[str], Data]] = {
            SHARDING: self._shardings,
            BYTES: self._bytes,
            TIME: self._times,
            SHARD_BYTES: self._shards,
        }

    def of(self, kind: str, function: str) -> Data:
        """Returns the data of one kind for the graph of a function, as JSON has it.

        Args:
            kind: one of `KINDS`.
            function: its name, `@main`, or that of its local graph, `@main (local)`.

        Raises:
            KeyError: there is no such kind or function.
        """
        name = function.removeprefix("@")
        if self._local is not None and name.endswith(SUFFIX):
            return _of_local(self._local, kind, name.removesuffix(SUFFIX))
        return self._kinds[kind](name)

    def _bytes(self, function: str) -> Data:
        return self._costs(function, lambda one: one.communication.bytes_received, _WHITE_TO_RED)

    def _times(self, function: str) -> Data:
        return self._costs(function, lambda one: one.time * 1e6, _WHITE_TO_RED)

    def _costs(self, function: str, amount: Callable[[Any], float], gradient: list[Data]) -> Data:
        results = {}
        for node in self._graphs.outputs[function]:
            needed = self._graphs.collectives.get(node)
            if needed:
                results[node] = sum(amount(one.collective) for one in needed)
        return _coloured(results, gradient)

    def _shards(self, function: str) -> Data:
        results = {}
        for node, tensors in self._graphs.outputs[function].items():
            sizes = [shard_bytes(self._graphs.explanation, one) for one in tensors if one is not None]
            if sizes:
                results[node] = sum(sizes)
        return _coloured(results, _WHITE_TO_BLUE)

    def _shardings(self, function: str) -> Data:
        texts = {
            node: "; ".join(sharding_text(one) for one in tensors if one is not None)
            for node, tensors in self._graphs.outputs[function].items()
            if any(one is not None for one in tensors)
        }
        counts: dict[str, int] = {}
        for shown in texts.values():
            counts[shown] = counts.get(shown, 0) + 1
        sharded = sorted((shown for shown in counts if shown != "replicated"), key=lambda shown: -counts[shown])
        colors = {shown: _COLORS[index % len(_COLORS)] for index, shown in enumerate(sharded)}
        results = {
            node: {"value": shown, "bgColor": colors.get(shown, _REPLICATED), "textColor": "#000000"}
            for node, shown in texts.items()
        }
        return {"results": results, "showExpandedSummaryOnGroupNode": True}


def _of_local(local: LocalGraphs, kind: str, function: str) -> Data:
    """The tensors of a local program have no sharding: for it there is no data of that kind."""
    collectives = local.collectives[function]
    if kind == BYTES:
        values = {node: float(one.collective.communication.bytes_received) for node, one in collectives.items()}
        return _coloured(values, _WHITE_TO_RED)
    if kind == TIME:
        return _coloured({node: one.collective.time * 1e6 for node, one in collectives.items()}, _WHITE_TO_RED)
    if kind == SHARD_BYTES:
        return _coloured(local.result_bytes[function], _WHITE_TO_BLUE)
    return {"results": {}}


def _coloured(values: Mapping[str, float], gradient: list[Data]) -> Data:
    return {"results": {node: {"value": value} for node, value in values.items()}, "gradient": gradient}


def shard_bytes(explanation: Explanation, tensor: Tensor) -> int:
    """Returns the bytes of a tensor that a device holds."""
    mesh = explanation.mesh_of(tensor)
    count = math.prod(tensor.shape)
    if tensor.sharding is None or mesh is None or not count:
        return tensor.bytes
    local = [size or 0 for size in tensor.sharding.local_shape(tensor.shape, mesh)]
    return tensor.bytes * math.prod(local) // count
