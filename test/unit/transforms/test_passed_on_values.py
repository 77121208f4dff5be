# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of placements of operands that are sources of data-flow edges, also of edges that share a value."""

from __future__ import annotations

from typing import Any

import pytest
from rules.modules import ops

from mlir_shard.dialects.data_flow_edges import DataFlowEdge, edge_holders, edges_of, source_operands
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.steps import Placement
from mlir_shard.transforms.partition.regions import passed_on

WHOLE, FIRST, SECOND = Placement(((),)), Placement(((0,),)), Placement(((1,),))


def whole(value: Any) -> Placement:
    return WHOLE


def test_each_edge_takes_an_operand_of_its_own() -> None:
    loop, _ = ops("""(%a: tensor<4xf32>, %n: index) {
        %0:2 = scf.for %i = %n to %n step %n iter_args(%x = %a, %y = %a) -> (tensor<4xf32>, tensor<4xf32>) {
          scf.yield %x, %x : tensor<4xf32>, tensor<4xf32>
        }
        return
      }""")
    placements = passed_on(loop, edges_of(loop), [FIRST, SECOND], whole)
    assert placements == [[WHOLE] * 3 + [FIRST, SECOND], [FIRST, SECOND]]


def test_edges_that_take_one_operand_agree() -> None:
    op, _ = ops("""(%a: tensor<4xf32>) {
        %0:2 = "test.both"(%a) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
        return
      }""")
    edges = [DataFlowEdge(result, (op.operands[0],)) for result in op.results]
    assert passed_on(op, edges, [FIRST, FIRST], whole)[0] == [FIRST]
    with pytest.raises(PassFailure, match=r"with different shardings share operand 0 of 'test\.both' as a source"):
        passed_on(op, edges, [FIRST, SECOND], whole)


def test_operands_of_one_value_are_taken_in_order() -> None:
    op, _ = ops("""(%a: tensor<4xf32>, %b: tensor<4xf32>) {
        %0:3 = "test.three"(%b, %a, %b) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
          -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
        return
      }""")
    edges = [DataFlowEdge(result, (op.operands[0],)) for result in op.results]
    assert list(source_operands(edge_holders(op), edges)) == [[(0, 0)], [(0, 2)], [(0, 0)]]


def test_sources_of_other_ops_have_no_operand() -> None:
    op, other, _ = ops("""(%a: tensor<4xf32>, %b: tensor<4xf32>) {
        %0 = "test.one"(%a) : (tensor<4xf32>) -> tensor<4xf32>
        %1 = "test.one"(%b) : (tensor<4xf32>) -> tensor<4xf32>
        return
      }""")
    edge = DataFlowEdge(op.results[0], (other.operands[0],))
    assert list(source_operands(edge_holders(op), [edge])) == [[]]
    assert passed_on(op, [edge], [FIRST], whole) == [[WHOLE]]
