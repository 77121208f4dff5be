# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the information about positions in a text."""

from __future__ import annotations

import pytest

from mlir_shard.passes import registry
from mlir_shard.tools.language_server.document import Document
from mlir_shard.tools.language_server.words import without_locations

registry.search("mlir_shard.transforms")

REGIONS = """\
#map = affine_map<(d0) -> (d0)>

func.func private @pair(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi32>)

func.func @regions(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0:2 = func.call @pair(%a) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi32>)
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%0#0 : tensor<8xf32>) outs(%b : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.negf %in : f32
    linalg.yield %2 : f32
  } -> tensor<8xf32>
  %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%1 : tensor<8xf32>) outs(%b : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.addf %in, %out : f32
    linalg.yield %2 : f32
  } -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

func.func @blocks(%a: i1) -> i1 {
  cf.cond_br %a, ^end(%a : i1), ^other  // ^end %a
^other:
  cf.br ^end(%a : i1) {note = "%a"}
^end(%b: i1):
  return %b : i1
}
"""


def find(text: str, word: str, number: int = 0) -> tuple[int, int]:
    """Returns the line and column of an occurrence of a word."""
    offset = -1
    for _ in range(number + 1):
        offset = text.index(word, offset + 1)
    return text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset) - 1


@pytest.fixture(scope="module")
def regions() -> Document:
    document = Document("regions.mlir", REGIONS)
    assert document.diagnostics() == []
    return document


@pytest.mark.parametrize(
    ("used", "defined"),
    [
        (("%0#0", 0), ("%0:2", 0)),
        (("%in : f32", 0), ("%in: f32", 0)),
        (("%in, %out :", 0), ("%in: f32", 1)),
        (("%2 : f32", 0), ("%2 =", 0)),
        (("%2 : f32", 1), ("%2 =", 1)),
        (("%out :", 0), ("%out: f32", 1)),
        (("%b : tensor", 1), ("%b: tensor", 0)),
        (("%a, ^end", 0), ("%a: i1", 0)),
        (("%b : i1", 0), ("%b: i1", 0)),
        (("^end(%a", 0), ("^end(%b", 0)),
        (("^other ", 0), ("^other:", 0)),
        (("#map, #map", 1), ("#map =", 0)),
        (("@pair(%a) :", 0), ("@pair(%a:", 0)),
    ],
)
def test_definitions(regions: Document, used: tuple[str, int], defined: tuple[str, int]) -> None:
    found = regions.definition(*find(REGIONS, *used))
    assert found is not None
    assert (found.line, found.start) == find(REGIONS, *defined)


def test_references_stay_in_their_function_and_out_of_comments(regions: Document) -> None:
    found = regions.references(*find(REGIONS, "%a: i1"))
    expected = [("%a: i1", 0), ("%a, ^end", 0), ("%a : i1)", 0), ("%a : i1)", 1)]
    assert [(one.line, one.start) for one in found] == [find(REGIONS, *one) for one in expected]
    assert len(regions.references(*find(REGIONS, "#map"))) == 5
    assert regions.references(*find(REGIONS, "arith.negf")) == []


@pytest.mark.parametrize(
    ("word", "number", "shown"),
    [
        ("%0#0", 0, ["%0: tensor<8xf32>"]),
        ("%0:2", 0, ["%0: tensor<8xf32>", "%0#1: tensor<8xi32>"]),
        ("func.call", 0, ["%0: tensor<8xf32>", "%0#1: tensor<8xi32>"]),
        ("%in : f32", 0, ["%in: f32"]),
        ("arith.addf", 0, ["%2: f32"]),
        ("#map, #map", 0, ["#map = affine_map<(d0) -> (d0)>"]),
        ("@pair(%a) :", 0, ["func.func private @pair(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi32>)"]),
    ],
)
def test_hovers(regions: Document, word: str, number: int, shown: list[str]) -> None:
    found = regions.hover(*find(REGIONS, word, number))
    assert found is not None
    assert [line for line in found.markdown.splitlines() if line and not line.startswith("```")] == shown


@pytest.mark.parametrize("word", ["return", "// ^end", "tensor<8xi32>)\n", "^end %a"])
def test_places_of_which_nothing_is_known(regions: Document, word: str) -> None:
    assert regions.hover(*find(REGIONS, word)) is None
    assert regions.hover(1000, 0) is None
    assert regions.hover(0, 1000) is None


PARTS = """\
// RUN: shard-opt %s --split-input-file
func.func @f(%a: i32) -> i32 {
  return %a : i32
}
// -----
func.func @f(%a: i64) -> i64 {
  return %b : i64
}
// -----
module @named {
  sdy.mesh @mesh = <["x"=2]>
  func.func @f(%a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<2xf32> {
    return %a : tensor<2xf32>
  }
}
"""


def test_parts() -> None:
    document = Document("parts.mlir", PARTS)
    (found,) = document.diagnostics()
    assert (found.span.line, found.span.start, found.span.end) == (6, 9, 11)
    first, module = document.outline()
    assert (first.name, first.word.line, first.last.line) == ("@f", 1, 3)
    assert (module.name, module.op, module.last.line) == ("@named", "builtin.module", 14)
    assert [one.name for one in module.children] == ["@mesh", "@f"]
    assert [(one.line, one.start) for one in document.references(1, 10)] == [(1, 10)]
    hover = document.hover(12, 12)
    assert hover is not None
    assert "from argument %a at parts.mlir:12:16" in hover.markdown


LOCATED = """\
#loc = loc(unknown)
#loc1 = loc("model.py":3:4 to :12)
#loc2 = loc("jit(f)/tanh (1)"(#loc1))
sdy.mesh @mesh = <["x"=2]> loc(#loc)
func.func @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} loc("x")) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32> loc(#loc2)
  return %0 : tensor<8xf32> loc(callsite(#loc1 at fused["a)"]["b.py":1:2, #loc2]))
} loc(#loc)
"""


def test_ops_are_where_they_stand_in_the_text() -> None:
    plain = without_locations(LOCATED)
    assert "loc" not in plain
    assert [len(line) for line in plain.split("\n")] == [len(line) for line in LOCATED.split("\n")]
    assert without_locations('"a.loc(x)" #loc %loc(') == '"a.loc(x)" #loc %loc('
    document = Document("located.mlir", LOCATED)
    assert document.diagnostics() == []
    hover = document.hover(5, 4)
    assert hover is not None
    assert "stablehlo.tanh at 6:8, factor i" in hover.markdown


def test_programs_that_are_not_to_be_partitioned() -> None:
    local = """\
shard.grid @mesh(shape = 2x2)
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = shard.all_reduce %a on @mesh grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
    assert Document("local.mlir", local).diagnostics() == []
    # The program is not partitioned because it has no mesh.
    assert Document("a.mlir", PRINTING).diagnostics() == []
    (warning, found) = Document("a.mlir", f'sdy.mesh @mesh = <["x"=2]>\n{PRINTING}').diagnostics()
    assert (warning.severity, warning.span.line) == ("warning", 0)
    assert warning.message.startswith("nothing is sharded")
    assert not warning.message.endswith("(at a.mlir)")
    assert "cannot be partitioned" in found.message
    assert found.span.line == 2


PRINTING = """\
func.func @f(%a: tensor<4xf32>) {
  stablehlo.custom_call @print(%a) {has_side_effect = true} : (tensor<4xf32>) -> ()
  return
}
"""


def test_notes() -> None:
    (found,) = Document("a.mlir", "func.func @f() {\n  return\n}\nfunc.func @f() {\n  return\n}\n").diagnostics()
    assert found.span.line == 3
    assert [(one.message, one.file, one.span and one.span.line) for one in found.notes][1:] == [
        ("see existing symbol definition here", "", 0)
    ]
