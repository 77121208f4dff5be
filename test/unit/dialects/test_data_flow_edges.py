# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data-flow edges of ops with regions, and those of a dialect that registers its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from mlir_shard import asm
from mlir_shard.dialects import data_flow_edges as flow
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.data_flow import edge_owner
from mlir_shard.ir.editing import ops_below


def find(text: str, name: str) -> Iterator[Any]:
    module = asm.parse_module(text, create_context())
    found = [op for op in ops_below(module) if op.name == name]
    assert found
    yield from found


def test_forall_ties_shared_tensors() -> None:
    text = """
    func.func @f(%n: index, %a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = scf.forall (%i) in (%n) shared_outs(%b = %a) -> tensor<8xf32> {
        scf.forall.in_parallel {}
      }
      return %0 : tensor<8xf32>
    }
    """
    for op in find(text, "scf.forall"):
        (edge,) = flow.edges_of(op)
        assert edge == flow.DataFlowEdge(op.results[0], (op.operands[1],), (op.regions[0].blocks[0].arguments[1],))
        assert edge_owner(edge.other_targets[0]) == op.results[0]


def test_for_leaves_out_bounds_and_induction_variable() -> None:
    text = """
    func.func @f(%n: index, %a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = scf.for %i = %n to %n step %n iter_args(%b = %a) -> tensor<8xf32> {
        %1 = math.exp %b : tensor<8xf32>
        scf.yield %1 : tensor<8xf32>
      }
      return %0 : tensor<8xf32>
    }
    """
    for op in find(text, "scf.for"):
        block = op.regions[0].blocks[0]
        (edge,) = flow.edges_of(op)
        exponential = block.operations[0].results[0]
        assert edge == flow.DataFlowEdge(op.results[0], (op.operands[3], exponential), (block.arguments[1],))
        assert edge_owner(block.arguments[0]) is None


def test_an_op_without_edges_has_none() -> None:
    text = "func.func @f(%a: f32) -> f32 { %0 = math.exp %a : f32 \n return %0 : f32 }"
    for op in find(text, "math.exp"):
        assert not flow.has_edges(op.name)
        assert flow.edges_of(op) == ()


def test_a_dialect_registers_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "_entries", dict(flow._entries))

    @flow.data_flow_edges("math.exp")
    def edges(op: Any) -> Iterable[flow.DataFlowEdge]:
        yield flow.DataFlowEdge(op.results[0], (op.operands[0],))

    text = "func.func @f(%a: f32) -> f32 { %0 = math.exp %a : f32 \n return %0 : f32 }"
    for op in find(text, "math.exp"):
        assert flow.edges_of(op) == (flow.DataFlowEdge(op.results[0], (op.operands[0],)),)
