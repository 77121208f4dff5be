# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the data-flow edges of ops with regions, and of edges that a dialect registers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import mlir_shard
from mlir_shard import asm
from mlir_shard.dialects import data_flow_edges as flow
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.data_flow import edge_owner, sharding_of
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import ops_below
from mlir_shard.transforms.reshard.sharded_function import ShardedFunction


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


# One op of each known kind, with values outside of its edges: bounds, induction variables, conditions, a tensor.
KNOWN = """
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @f(%n: index, %c: i1, %i: tensor<i32>, %a: tensor<8xf32>, %b: tensor<8xf32>) {
    %0:2 = stablehlo.optimization_barrier %a, %i : tensor<8xf32>, tensor<i32>
    %1:2 = "stablehlo.case"(%i) ({
      stablehlo.return %a, %i : tensor<8xf32>, tensor<i32>
    }, {
      stablehlo.return %0#0, %0#1 : tensor<8xf32>, tensor<i32>
    }) : (tensor<i32>) -> (tensor<8xf32>, tensor<i32>)
    %2:2 = stablehlo.while(%u = %i, %v = %a) : tensor<i32>, tensor<8xf32>
      attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}]>]>} cond {
      %3 = stablehlo.compare LT, %u, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = stablehlo.add %v, %b : tensor<8xf32>
      stablehlo.return %u, %3 : tensor<i32>, tensor<8xf32>
    }
    %4 = sdy.manual_computation(%b, %a) in_shardings=[<@mesh, [{"x", "y"}]>, <@mesh, [{"y"}], replicated={"x"}>]
        out_shardings=[<@mesh, [{"x", "y"}]>] manual_axes={"x"} (%u: tensor<4xf32>, %v: tensor<8xf32>) {
      sdy.return %u : tensor<4xf32>
    } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %5 = sdy.named_computation<"g">(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"x"}]>]
        (%u: tensor<8xf32>) {
      sdy.return %u : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %6 = scf.for %k = %n to %n step %n iter_args(%u = %a) -> tensor<8xf32> {
      scf.yield %u : tensor<8xf32>
    }
    %7 = scf.forall (%k) in (%n) shared_outs(%u = %a) -> tensor<8xf32> {
      scf.forall.in_parallel {}
    }
    %8:2 = scf.while (%u = %a, %v = %b) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      scf.condition(%c) %v, %u : tensor<8xf32>, tensor<8xf32>
    } do {
    ^bb0(%u: tensor<8xf32>, %v: tensor<8xf32>):
      scf.yield %u, %v : tensor<8xf32>, tensor<8xf32>
    }
    %9 = scf.if %c -> tensor<8xf32> {
      scf.yield %a : tensor<8xf32>
    } else {
      scf.yield %b : tensor<8xf32>
    }
    return
  }
"""


def test_edges_of_known_ops_are_the_same_between_numbers_as_between_values() -> None:
    arrays = ModuleArrays(asm.parse_module(KNOWN, create_context()))
    found = set()
    for number in range(len(arrays)):
        op = arrays.operation(number)
        if not flow.are_known(op.name):
            continue
        found.add(op.name)
        between_values = [
            (
                arrays.number_of(edge.owner),
                *(tuple(map(arrays.number_of, of)) for of in (edge.sources, edge.other_targets)),
            )
            for edge in flow.edges_of(op)
        ]
        between_numbers = flow.known_edges(op.name, flow.Boundary(*arrays.boundary(number)))
        assert between_values == [(edge.owner, edge.sources, edge.other_targets) for edge in between_numbers]
        assert between_values
    assert len(found) == 9


@pytest.mark.parametrize("has_edge_ops", [False, True])
def test_a_function_read_into_arrays_has_the_shardings_around_edges(has_edge_ops: bool) -> None:
    module = asm.parse_module(KNOWN, create_context())
    if has_edge_ops:
        mlir_shard.run(module, "builtin.module(sdy-add-data-flow-edges)")
    (function,) = [op for op in ops_below(module) if op.name == "func.func"]
    read = ShardedFunction(function)
    values = [read.arrays.value(number).maybe_downcast() for number in range(read.arrays.value_count)]
    assert [read.sharding_of(number) for number in range(len(values))] == list(map(sharding_of, values))
