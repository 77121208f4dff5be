# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares changed annotations of a value with a program that has them in its text."""

from __future__ import annotations

import pytest
from explained_programs.annotations import annotated_at_random, costs_of_change, costs_of_text

import mlir_shard
from mlir_shard.explain.explanation import explain
from mlir_shard.explain.suggestions import suggest
from mlir_shard.explain.what_if import Change, WhatIfError, what_if

TEXT = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def compare(*changes: str):
    module = mlir_shard.parse(TEXT, filename="a.mlir")
    return what_if(module, map(Change.read, changes), sources={"a.mlir": TEXT})


def test_an_argument_gets_another_sharding() -> None:
    found = compare('%a: [{"x"}, {}]')
    assert found.before.report.bytes_received > 0
    assert found.after.report.bytes_received == 0
    assert {one.name for one, _ in found.changed_shardings()} >= {"%a", "%b"}


def test_an_op_and_a_result_get_shardings() -> None:
    assert compare('%0: [{}, {"x"}]').after.report.bytes_received > 0
    found = compare('result 0: @mesh, [{"y"}, {"x"}]')
    assert found.after.report.bytes_received != found.before.report.bytes_received


def test_several_changes_are_made_together() -> None:
    found = compare("%a: [{}, {}]", "%b: [{}, {}]", "result 0: [{}, {}]")
    assert found.after.report.bytes_received == 0
    assert not found.after.collectives


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("%a", "is not a value and its sharding"),
        ("%q: [{}]", "no tensor matches '%q'"),
        ('%a: [{"z"}, {}]', 'unknown axis "z": the mesh has "x", "y"'),
        ("%a: [{}]", "the sharding has 1 dimensions, but the tensor has 2"),
        ("%a: [{}, {", "is not a sharding"),
        ("%a: @other, [{}, {}]", "unknown mesh '@other': the program defines @mesh"),
    ],
)
def test_what_cannot_be_is_said(change: str, message: str) -> None:
    with pytest.raises(WhatIfError) as error:
        compare(change)
    assert message in str(error.value)


def test_bytes_are_those_of_the_program_with_the_annotation_in_its_text() -> None:
    for number in range(25):
        one, target = annotated_at_random(f"what-if/{number}"), ("shard", "stablehlo")[number % 2]
        assert costs_of_change(one, target) == costs_of_text(one.after, target), one.change


def test_suggestions_are_what_the_pipeline_gives() -> None:
    module = mlir_shard.parse(TEXT, filename="a.mlir")
    sources = {"a.mlir": TEXT}
    explanation = explain(module, sources=sources)
    suggestions = suggest(module, explanation, sources=sources)
    assert suggestions and suggestions[0].bytes == 0
    assert [one.saved for one in suggestions] == sorted((one.saved for one in suggestions), reverse=True)
    assert len({one.tensor.number for one in suggestions}) == len(suggestions)
    for one in suggestions:
        found = what_if(module, [one.change], sources=sources)
        assert found.after.report.bytes_received == one.bytes < explanation.report.bytes_received
