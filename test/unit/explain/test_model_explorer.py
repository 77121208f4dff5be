# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of programs as graphs of Model Explorer: the data of the nodes, and that Model Explorer reads them."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import mlir_shard
from mlir_shard.explain.explanation import explain
from mlir_shard.explain.model_explorer.graphs import Graphs
from mlir_shard.explain.model_explorer.local_graphs import LocalGraphs
from mlir_shard.explain.model_explorer.node_data import KINDS, NodeData

PROGRAM = """\
sdy.mesh @mesh = <["x"=2, "y"=2]>

func.func @main(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
    %b: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.dot %a, %b : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<5> : tensor<i32>
  %loop:2 = stablehlo.while(%i = %one, %x = %0) : tensor<i32>, tensor<8x4xf32> cond {
    %c = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.tanh %x : tensor<8x4xf32> loc("jit(step)/layer_0(a/b)/tanh")
    stablehlo.return %next, %y : tensor<i32>, tensor<8x4xf32>
  }
  return %loop#1 : tensor<8x4xf32>
}
"""


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    module = mlir_shard.parse(PROGRAM, mlir_shard.create_context(), "p.mlir")
    return Graphs(explain(module, sources={"p.mlir": PROGRAM}))


def nodes(graphs: Graphs) -> dict[str, Any]:
    """Returns the nodes by their labels."""
    (graph,) = graphs.data
    assert graph["id"] == "@main"
    assert len({one["id"] for one in graph["nodes"]}) == len(graph["nodes"])
    return {one["label"]: one for one in graph["nodes"]}


def attributes(node: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: one["value"] for one in node["attrs"]}


def values(data: dict[str, Any]) -> dict[str, float]:
    """Returns the values of node data by node."""
    return {node: one["value"] for node, one in data["results"].items()}


def test_nodes_and_edges(graphs: Graphs) -> None:
    found = nodes(graphs)
    dot = found["stablehlo.dot %0"]
    assert [one["sourceNodeId"] for one in dot["incomingEdges"]] == [
        found["argument 0 %a"]["id"],
        found["argument 1 %b"]["id"],
    ]
    assert dot["outputsMetadata"][0]["attrs"] == [
        {"key": "__tensor_tag", "value": "%0"},
        {"key": "shape", "value": 'tensor<8x4xf32> [{"y"}, {}]'},
    ]
    loop = found["stablehlo.while"]
    assert found["result 0"]["incomingEdges"] == [
        {"sourceNodeId": loop["id"], "sourceNodeOutputId": "1", "targetNodeInputId": "0"}
    ]
    # Ops in a region are in a layer. Ops with scopes of a front end are in the layers of these scopes.
    assert found["stablehlo.compare"]["namespace"] == "stablehlo.while at line 9"
    assert found["stablehlo.tanh"]["namespace"] == "jit(step)/layer_0(a∕b)"
    known = {one["id"] for one in graphs.data[0]["nodes"]}
    assert all(edge["sourceNodeId"] in known for node in graphs.data[0]["nodes"] for edge in node["incomingEdges"])


def test_reasons_are_at_the_nodes(graphs: Graphs) -> None:
    found = nodes(graphs)
    dot = attributes(found["stablehlo.dot %0"])
    assert dot["sharding"] == '[{"y"}, {}]'
    assert dot['dimension 0 on "y"'] == (
        "from argument %a at p.mlir:4:5\n1 step, the last through stablehlo.dot at p.mlir:6:8, factor i"
    )
    assert dot['dimension 0 on "y", from'] == {"type": "node_ids", "nodeIds": [found["argument 0 %a"]["id"]]}
    assert dot["collective 1"].startswith("all_reduce on x=2 (")
    assert "partial sum" in dot["collective 1"]
    (overlays,) = graphs.data[0]["tasksData"]["edgeOverlaysDataListLeftPane"]
    along = {one["name"]: one["edges"] for one in overlays["overlays"]}
    assert list(along) == ["along y"]
    assert {
        "sourceNodeId": found["argument 0 %a"]["id"],
        "targetNodeId": found["stablehlo.dot %0"]["id"],
        "label": "i",
    } in along["along y"]


def test_collectives_are_at_their_op_among_those_of_one_place() -> None:
    """A collective is at its own op although the ops of all torch modules of one class share a location."""
    dot = 'stablehlo.dot {} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("linear.py":1:1)'
    module = mlir_shard.parse(
        f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}},
                %c: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<8x8xf32> {{
  %0 = {dot.format("%a, %b")}
  %1 = {dot.format("%0, %c")}
  return %1 : tensor<8x8xf32>
}}""",
    )
    graphs = Graphs(explain(module))
    first, second = (one["id"] for one in graphs.data[0]["nodes"] if one["label"].startswith("stablehlo.dot"))
    assert first not in graphs.collectives
    assert {one.collective.communication.kind.value for one in graphs.collectives[second]} == {"all_reduce"}


def test_node_data(graphs: Graphs) -> None:
    data = NodeData(graphs)
    found = {label: node["id"] for label, node in nodes(graphs).items()}
    received, times, shards = (values(data.of(kind, "@main")) for kind in KINDS if kind != "Sharding")
    shardings = data.of("Sharding", "@main")["results"]
    (dot,) = graphs.explanation.collectives
    assert received == {found["stablehlo.dot %0"]: dot.collective.communication.bytes_received}
    assert times == {found["stablehlo.dot %0"]: dot.collective.time * 1e6}
    assert shards[found["argument 0 %a"]] == 8 * 16 * 4 // 4
    assert shards[found["argument 1 %b"]] == 16 * 4 * 4 // 2
    # The only value is also the largest one.
    assert (
        data.of("Bytes received for collectives", "@main")["results"][found["stablehlo.dot %0"]]["bgColor"] == "#f28b82"
    )
    colors = {shardings[found[label]]["bgColor"] for label in ("stablehlo.dot %0", "argument 0 %a", "argument 1 %b")}
    assert len(colors) == 3
    assert shardings[found["argument 1 %b"]]["value"] == '[{"x"}, {}]'
    with pytest.raises(KeyError):
        data.of("Sharding", "@absent")


def test_the_local_program(graphs: Graphs) -> None:
    local = LocalGraphs(graphs.explanation)
    (graph,) = local.data
    assert graph["id"] == "@main (local)"
    found = {one["label"]: one for one in graph["nodes"]}
    reduced = found["shard.all_reduce"]
    assert attributes(reduced)["collective"].startswith("all_reduce on x=2 (")
    assert attributes(reduced)["cause"].startswith("partial sum: 'stablehlo.dot' at p.mlir:6:8 ")
    assert attributes(reduced)["place"] == attributes(found["stablehlo.dot"])["place"] == "p.mlir:6:8"
    assert reduced["style"]["borderColor"]
    assert [one["sourceNodeId"] for one in reduced["incomingEdges"]] == [found["stablehlo.dot"]["id"]]
    assert reduced["outputsMetadata"][0]["attrs"] == [{"key": "shape", "value": "tensor<4x4xf32>"}]
    assert found["stablehlo.tanh"]["namespace"] == "jit(step)/layer_0(a∕b)"
    assert [one["sourceNodeId"] for one in found["result 0"]["incomingEdges"]] == [found["stablehlo.while"]["id"]]
    ids = [one["id"] for one in graph["nodes"]]
    assert len(set(ids)) == len(ids)
    assert {edge["sourceNodeId"] for one in graph["nodes"] for edge in one["incomingEdges"]} <= set(ids)

    data = NodeData(graphs, local)
    (collective,) = graphs.explanation.collectives
    received = values(data.of("Bytes received for collectives", "@main (local)"))
    assert received == {reduced["id"]: collective.collective.communication.bytes_received}
    times = values(data.of("Predicted time of collectives (µs)", "@main (local)"))
    assert times == {reduced["id"]: collective.collective.time * 1e6}
    held = values(data.of("Bytes of a shard", "@main (local)"))
    assert held[reduced["id"]] == 4 * 4 * 4
    assert set(held) <= set(ids)
    assert data.of("Sharding", "@main (local)") == {"results": {}}
    with pytest.raises(KeyError):
        data.of("Bytes of a shard", "@absent (local)")


def test_model_explorer_reads_the_graphs(tmp_path: Path) -> None:
    """Model Explorer reads the graphs by the calls that its server makes."""
    pytest.importorskip("model_explorer", reason="`pip install --no-deps ai-edge-model-explorer` installs it")
    from model_explorer.extension_manager import ExtensionManager

    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    manager = ExtensionManager(["mlir_shard.tools.model_explorer"])
    manager.load_extensions()
    mine = [one for one in manager.get_extensions_metadata() if one["id"].startswith("mlir_shard")]
    assert [one["type"] for one in mine] == ["adapter", *["node_data_provider"] * len(KINDS)]
    assert mine[0]["fileExts"] == ["mlir", "mlirbc"]

    command = {"extensionId": "mlir_shard", "cmdId": "convert", "modelPath": str(path), "settings": {}}
    graph, local = json.loads(json.dumps(manager.run_cmd(command)))["graphs"]
    assert (graph["id"], local["id"]) == ("@main", "@main (local)")
    dot = next(one for one in graph["nodes"] if one["label"] == "stablehlo.dot %0")
    assert attributes(dot)['dimension 0 on "y"'].startswith("from argument %a at p.mlir:4:5")

    for one, shown in product(mine[1:], (graph, local)):
        command = {"extensionId": one["id"], "cmdId": "get_config_editors", "modelPath": str(path)}
        assert manager.run_cmd(command) == {"configEditors": [], "error": ""}
        command = {**command, "cmdId": "run", "graphId": shown["id"], "configValues": {}, "graph": shown}
        found = manager.run_cmd(command)
        assert found["error"] == ""
        assert one["name"] == f"mlir-shard: {found['result']['name']}"
        assert set(found["result"]["results"]) <= {node["id"] for node in shown["nodes"]}

    path.write_text("func.func @f(\n")
    with pytest.raises(ValueError, match=r"p\.mlir:1:14: error: "):
        manager.run_cmd({"extensionId": "mlir_shard", "cmdId": "convert", "modelPath": str(path), "settings": {}})
