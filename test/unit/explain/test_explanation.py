# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of chains of axes, lost axes and causes of collectives in small programs."""

from __future__ import annotations

import pytest

import mlir_shard
from mlir_shard.explain.explanation import Explanation, explain
from mlir_shard.explain.selection import NothingSelected, select
from mlir_shard.explain.text import grouped, program_text, tensor_text
from mlir_shard.explain.values import AnnotationKind, CauseKind, LossReason, Tensor

LAYER = """sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @layer(
    %x: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}, {?}]>},
    %w: tensor<64x32xf32>) -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {"model"}]> : tensor<16x32xf32>
  %2 = stablehlo.tanh %1 : tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}
"""
CONTRACTION = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def explained(text: str, collectives: str = "shard") -> Explanation:
    return explain(mlir_shard.parse(text, filename="a.mlir"), collectives=collectives, sources={"a.mlir": text})


def one(explanation: Explanation, query: str) -> Tensor:
    (tensor,) = select(explanation.tensors, query)
    return tensor


def test_a_chain_goes_from_the_constraint_through_the_contraction() -> None:
    found = explained(LAYER)
    (chain,) = found.chains(one(found, "%w"))
    assert (str(chain.axis), chain.dim) == ('"model"', 1)
    assert chain.annotation.kind is AnnotationKind.CONSTRAINT
    assert (chain.annotation.place.line, chain.annotation.place.column) == (7, 8)
    (link,) = chain.links
    assert (link.op, link.place.line, link.factor) == ("stablehlo.dot_general", 5, "j")
    assert (link.source_role, link.target_role) == ("result 0", "operand 1")
    assert found.tensor(link.source).name == "%0"


def test_tensors_have_their_own_sizes() -> None:
    """Tensors keep their own sizes although propagation shares its analysis of ops that differ only in sizes."""
    found = explained(
        """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<4x32xf32>)
    -> (tensor<8x16xf32>, tensor<4x32xf32>) {
  %0 = stablehlo.tanh %a : tensor<8x16xf32>
  %1 = stablehlo.tanh %b : tensor<4x32xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<4x32xf32>
}
"""
    )
    assert [(one(found, name).shape, one(found, name).bytes) for name in ("%0", "%1")] == [
        ((8, 16), 512),
        ((4, 32), 512),
    ]


def test_an_axis_of_which_an_annotation_has_a_part_comes_from_where_the_rest_is() -> None:
    text = """sdy.mesh @mesh = <["x"=4]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, ?}]>},
        %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
      %0 = stablehlo.add %a, %b : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    """
    found = explained(text)
    (chain,) = found.chains(one(found, "%a"))
    assert (str(chain.axis), chain.annotation.text) == ('"x"', "argument %b")
    (link,) = chain.links
    assert (link.op, link.source_role, link.target_role) == ("stablehlo.add", "operand 1", "operand 0")


def test_results_of_a_loop_and_arguments_of_a_manual_computation_have_their_own_names() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<4xf32>)
        -> tensor<8xf32> {
      %r:2 = stablehlo.while(%v = %b, %w = %a) : tensor<4xf32>, tensor<8xf32>
      cond {
        %p = stablehlo.constant dense<false> : tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %n = stablehlo.negate %w : tensor<8xf32>
        stablehlo.return %v, %n : tensor<4xf32>, tensor<8xf32>
      }
      %m = sdy.manual_computation(%r#0, %r#1) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>]
          out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%c: tensor<4xf32>, %d: tensor<4xf32>) {
        %s = stablehlo.add %c, %d : tensor<4xf32>
        sdy.return %s : tensor<4xf32>
      } : (tensor<4xf32>, tensor<8xf32>) -> tensor<8xf32>
      return %m : tensor<8xf32>
    }
    """
    found = explained(text)
    named = {one.name: (one.op, one.index) for one in found.tensors}
    assert {named["%r#0"], named["%r#1"]} == {("stablehlo.while", 0), ("stablehlo.while", 1)}
    assert {named["%c"], named["%d"]} == {("sdy.manual_computation", 0), ("sdy.manual_computation", 1)}
    assert named["%m"] == ("sdy.manual_computation", 0)


def test_a_place_that_is_a_name_alone_is_not_said_twice() -> None:
    text = CONTRACTION.replace('[{"x"}, {"y"}]>}', '[{"x"}, {"y"}]>} loc("params")', 1)
    shown = explained(text).value("params")
    assert shown.count("params") == 3 and " at " not in shown


def test_an_annotated_argument_is_its_own_origin() -> None:
    found = explained(LAYER)
    (chain,) = found.chains(one(found, "%x"))
    assert chain.annotation.kind is AnnotationKind.ARGUMENT and not chain.links


def test_axes_of_a_result_of_the_function_come_through_all_ops() -> None:
    found = explained(LAYER)
    chains = {str(chain.axis): chain for chain in found.chains(one(found, "result 0"))}
    assert [link.op for link in chains['"data"'].links] == [
        "stablehlo.dot_general",
        "sdy.sharding_constraint",
        "stablehlo.tanh",
        "func.func",
    ]
    assert chains['"data"'].annotation.text == "argument %x"
    assert chains['"model"'].annotation.text == "constraint"


def test_partial_sums_are_the_cause_of_an_all_reduce() -> None:
    for target in ("shard", "stablehlo"):
        found = explained(CONTRACTION, target)
        (collective,) = found.collectives
        (cause,) = collective.causes
        assert cause.kind is CauseKind.PARTIAL_SUM
        assert cause.op == "stablehlo.dot_general" and cause.place.line == 4
        assert 'reduces factor k, sharded on "y"' in cause.text
        assert cause.tensor == one(found, "%0").number


@pytest.mark.parametrize(
    ("given", "reason", "remedy"),
    [
        ("[{}, {?}]", LossReason.CLOSED, "open dimension 0: {?}"),
        ('[{?}, {?}], replicated={"x"}', LossReason.REPLICATED, "remove the axis from `replicated`"),
        ('[{?}, {"x", ?}]', LossReason.USED, "remove the axis from the argument %b at a.mlir:3:5"),
        ('[{"y", ?}, {?}]', LossReason.OTHER_AXES, 'remove "y" there'),
    ],
)
def test_lost_axes_have_reasons_and_remedies(given: str, reason: LossReason, remedy: str) -> None:
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
    %b: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, {given}>}}) -> tensor<8x16xf32> {{
  %0 = stablehlo.add %a, %b : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}}
"""
    found = explained(text)
    lost = {(str(loss.axis), loss.dim): loss for loss in found.lost(one(found, "%b"))}
    loss = lost['"x"', 0]
    assert loss.reason is reason
    assert loss.remedy.startswith(remedy)
    assert loss.op == "stablehlo.add" and loss.place.line == 4


def test_a_constraint_is_the_cause_of_a_reshard() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %a : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %2 = stablehlo.negate %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""
    found = explained(text)
    causes = [cause for collective in found.collectives for cause in collective.causes]
    assert [cause.kind for cause in causes] == [CauseKind.CONSTRAINT]
    assert "the constraint at a.mlir:4:8" in causes[0].text


def test_windows_are_the_cause_of_halos() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<16xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%a, %0) <{window_dimensions = array<i64: 3>,
      padding = dense<1> : tensor<1x2xi64>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}
"""
    found = explained(text)
    kinds = {cause.kind for collective in found.collectives for cause in collective.causes}
    assert kinds == {CauseKind.HALO}


def test_calls_and_loops_have_chains_through_them() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = func.call @inner(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %1:2 = stablehlo.while(%j = %i, %v = %0) : tensor<i32>, tensor<8x8xf32>
  cond {
    %c = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %k = stablehlo.add %j, %one : tensor<i32>
    %t = stablehlo.tanh %v : tensor<8x8xf32>
    stablehlo.return %k, %t : tensor<i32>, tensor<8x8xf32>
  }
  return %1#1 : tensor<8x8xf32>
}
func.func private @inner(%b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.negate %b : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
    found = explained(text)
    tanh = one(found, "stablehlo.tanh")
    (chain,) = found.chains(tanh)
    assert chain.annotation.text == "argument %a"
    ops = [link.op for link in chain.links]
    assert ops == ["stablehlo.negate", "stablehlo.while"]
    negate = one(found, "stablehlo.negate")
    assert negate.place.line == 19 and negate.place.called_from is not None
    assert negate.place.called_from.line == 3


def test_the_module_stays_as_it_is_and_the_local_program_is_the_same() -> None:
    for text in (LAYER, CONTRACTION):
        module = mlir_shard.parse(text)
        before = mlir_shard.print_module(module)
        found = explain(module)
        assert mlir_shard.print_module(module) == before
        mlir_shard.run(module, "builtin.module(spmd-pipeline)")
        assert mlir_shard.print_module(found.module) == mlir_shard.print_module(module)


def test_queries_select_by_name_line_op_and_number() -> None:
    tensors = explained(LAYER).tensors
    for query in ("%0", "5", "6", "a.mlir:5", "5:8", "stablehlo.dot_general", "@layer:%0"):
        assert [tensor.name for tensor in select(tensors, query)] == ["%0"], query
    assert [tensor.name for tensor in select(tensors, "argument 1")] == ["%w"]
    for query, message in (("%q", "no tensor matches '%q'"), ("@f:%0", "unknown function '@f'"), ("99", "no tensor")):
        with pytest.raises(NothingSelected, match=message):
            select(tensors, query)


def test_text_names_annotations_steps_and_collectives() -> None:
    found = explained(CONTRACTION)
    text = tensor_text(found, one(found, "%0"))
    assert 'dimension 0 on "x":' in text and "from argument %a at a.mlir:2:17" in text
    assert "moved by all_reduce on y=2" in text
    assert "Communication: 1 collective," in program_text(found)


def test_collectives_of_repeated_layers_are_one_group() -> None:
    body = "".join(
        f"""  %h{n} = stablehlo.dot_general %x{n}, %w, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %g{n} = stablehlo.tanh %h{n} : tensor<8x8xf32>
  %x{n + 1} = sdy.sharding_constraint %g{n} <@mesh, [{{}}, {{"x"}}]> : tensor<8x8xf32>
"""
        for n in range(3)
    )
    text = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%x0: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}},
    %w: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<8x8xf32> {{
{body}  return %x3 : tensor<8x8xf32>
}}
"""
    groups = grouped(explained(text).collectives)
    assert sum(group.count for group in groups) == len(explained(text).collectives)
    assert max(group.count for group in groups) == 3
