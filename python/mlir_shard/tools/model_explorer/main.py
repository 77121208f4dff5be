# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The adapter and the providers of node data that Model Explorer finds in this module."""

from __future__ import annotations

from typing import Any, ClassVar

from dacite import Config, from_dict
from model_explorer import (
    Adapter,
    AdapterMetadata,
    GetConfigEditorsResult,
    ModelExplorerGraphs,
    NodeDataProvider,
    NodeDataProviderFilter,
    NodeDataProviderMetadata,
    NodeDataProviderResult,
)
from model_explorer.graph_builder import Graph
from model_explorer.node_data_builder import GraphNodeData

from mlir_shard.explain.model_explorer.node_data import KINDS, NodeData
from mlir_shard.tools.model_explorer.program import ProgramError, graphs_of

ADAPTER = "mlir_shard"
# Values may be strings although the types declare numbers.
_UNCHECKED = Config(check_types=False)


class ShardingAdapter(Adapter):
    """An adapter that shows the functions of a program with the shardings of their tensors, and its local program."""

    metadata = AdapterMetadata(
        id=ADAPTER,
        name="mlir-shard",
        description="Programs with the shardings of their tensors, where these come from, and collectives",
        fileExts=["mlir", "mlirbc"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """Returns the graphs of the program in a file; see `Adapter`."""
        graphs, local = graphs_of(model_path)
        return {"graphs": [from_dict(Graph, one, _UNCHECKED) for one in (*graphs.data, *local.data)]}


class ShardingData(NodeDataProvider):
    """A provider of node data, which colours the nodes by sharding or by cost."""

    metadata: ClassVar[list[NodeDataProviderMetadata]] = [
        NodeDataProviderMetadata(
            # Model Explorer proposes the id as the title of the data.
            id=f"{ADAPTER}: {kind}",
            name=f"mlir-shard: {kind}",
            description=description,
            icon="grid_view",
            filter=NodeDataProviderFilter(adapterIds=[ADAPTER]),
        )
        for kind, description in KINDS.items()
    ]

    def get_config_editors(self, provider_id: str) -> GetConfigEditorsResult:
        """Returns an empty result, because the data has no options; see `NodeDataProvider`."""
        return GetConfigEditorsResult(configEditors=[])

    def run(
        self, provider_id: str, model_path: str, graph_id: str, config_values: dict[str, Any], graph: Graph | None
    ) -> NodeDataProviderResult:
        """Returns the data of the nodes of a graph; see `NodeDataProvider`."""
        kind = provider_id.removeprefix(f"{ADAPTER}: ")
        try:
            found = NodeData(*graphs_of(model_path)).of(kind, graph_id)
        except (ProgramError, KeyError) as error:
            return NodeDataProviderResult(error=str(error))
        return NodeDataProviderResult(result=from_dict(GraphNodeData, {"name": kind, **found}, _UNCHECKED))
