# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs and shardings of the nodes of the graphs of a program, in the format of `node_data_builder`."""

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

# The colours of the largest values: red, green and blue.
_RED = (0xF2, 0x8B, 0x82)
_BLUE = (0x8A, 0xB4, 0xF8)
_Color = tuple[int, int, int]
_REPLICATED = "#ffffff"
# The colours of distinct shardings, the most frequent first; they are repeated if there are more.
_COLORS = ("#aecbfa", "#fdd663", "#a8dab5", "#f6aea9", "#d7aefb", "#78d9ec", "#fcad70", "#e8eaed")


SHARDING = "Sharding"
BYTES = "Bytes received for collectives"
TIME = "Predicted time of collectives (µs)"
SHARD_BYTES = "Bytes of a shard"
KINDS = {
    SHARDING: "the axes of each dimension",
    BYTES: "bytes that a device receives for the operation",
    TIME: "time of the collectives, predicted by the cost model",
    SHARD_BYTES: "bytes of the results that a device holds",
}
"""The kinds of data, each with a description of one line."""


class NodeData:
    """The data of all functions of a program and of its local program, by the names of kinds of data.

    Args:
        graphs: the graphs of the program.
        local: the graphs of the local program.
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
        """Returns the data of one kind for the graph of a function, in the types of JSON.

        Args:
            kind: one of `KINDS`.
            function: the name of the function, `@main`, or of its local graph, `@main (local)`.

        Raises:
            KeyError: the kind or the function does not exist.
        """
        name = function.removeprefix("@")
        if self._local is not None and name.endswith(SUFFIX):
            return _of_local(self._local, kind, name.removesuffix(SUFFIX))
        return self._kinds[kind](name)

    def _bytes(self, function: str) -> Data:
        return self._costs(function, lambda one: one.communication.bytes_received, _RED)

    def _times(self, function: str) -> Data:
        return self._costs(function, lambda one: one.time * 1e6, _RED)

    def _costs(self, function: str, amount: Callable[[Any], float], color: _Color) -> Data:
        results = {}
        for node in self._graphs.outputs[function]:
            needed = self._graphs.collectives.get(node)
            if needed:
                results[node] = sum(amount(one.collective) for one in needed)
        return _coloured(results, color)

    def _shards(self, function: str) -> Data:
        results = {}
        for node, tensors in self._graphs.outputs[function].items():
            sizes = [shard_bytes(self._graphs.explanation, one) for one in tensors if one is not None]
            if sizes:
                results[node] = sum(sizes)
        return _coloured(results, _BLUE)

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
    """Returns the data of one kind for a local graph; empty for shardings, which local tensors do not have."""
    collectives = local.collectives[function]
    if kind == BYTES:
        values = {node: float(one.collective.communication.bytes_received) for node, one in collectives.items()}
        return _coloured(values, _RED)
    if kind == TIME:
        return _coloured({node: one.collective.time * 1e6 for node, one in collectives.items()}, _RED)
    if kind == SHARD_BYTES:
        return _coloured(local.result_bytes[function], _BLUE)
    return {"results": {}}


def _coloured(values: Mapping[str, float], color: _Color) -> Data:
    """Returns values with colours from white at 0 to the given one at the largest value.

    A gradient of Model Explorer begins at the least value, so equal values would have no colour.
    """
    most = max(values.values(), default=0) or 1
    shades = {value: [round(255 + (part - 255) * value / most) for part in color] for value in {*values.values()}}
    return {
        "results": {
            node: {"value": value, "bgColor": "#{:02x}{:02x}{:02x}".format(*shades[value]), "textColor": "#000000"}
            for node, value in values.items()
        }
    }


def shard_bytes(explanation: Explanation, tensor: Tensor) -> int:
    """Returns the bytes of a tensor that a device holds."""
    mesh = explanation.mesh_of(tensor)
    count = math.prod(tensor.shape)
    if tensor.sharding is None or mesh is None or not count:
        return tensor.bytes
    local = [size or 0 for size in tensor.sharding.local_shape(tensor.shape, mesh)]
    return tensor.bytes * math.prod(local) // count
