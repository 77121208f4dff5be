# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the representations of programs, shardings, bills and plans in notebooks."""

from xml.etree import ElementTree

import pytest
from rich import console

import mlir_shard as ms
from mlir_shard import P
from mlir_shard.frontend.display import program_html
from mlir_shard.passes.fitted_table import FittedTable

TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>} loc("<script>"),
                %b: tensor<64x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot %a, %b : (tensor<8x64xf32>, tensor<64x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def parsed(html: str) -> ElementTree.Element:
    """Parses HTML in which every element has an end tag."""
    return ElementTree.fromstring(f"<body>{html}</body>")


def cells(html: str, tag: str = "td") -> list[str]:
    """Returns the texts of the cells of a table."""
    return [one.text or "" for one in parsed(html).iter(tag)]


def test_programs() -> None:
    program = ms.Program(ms.parse(TEXT))
    assert "".join(parsed(program._repr_html_()).itertext()).startswith("Program @main(<script>: tensor<8x64xf32>, ")
    shown = "".join(parsed(program.partition()._repr_html_()).itertext())
    assert "collectives: 1, by which a device receives 256 B" in shown
    assert "shard.all_reduce" in shown


def test_long_programs_are_cut() -> None:
    (pre,) = parsed(program_html("@f", "a\n" * 1000)).iter("pre")
    assert (pre.text or "").splitlines() == ["a"] * 400 + ["… and 600 more lines"]


def test_tables() -> None:
    program = ms.Program(ms.parse(TEXT))
    shown = cells(program.shardings()._repr_html_())
    assert shown[:4] == ["argument", "<script>", "tensor<8x64xf32>", '<@mesh, [{}, {"x"}]>']
    bill = program.partition().communication._repr_html_()
    assert cells(bill)[:4] == ["all_reduce", "x=2", "1", "256 B"]
    assert cells(bill, "th")[-8] == "1 collective"
    assert 'text-align: right; white-space: nowrap">256 B' in bill


def test_texts_in_notebooks_are_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ms.Program(ms.parse(TEXT))
    plan = ms.plan_reshard(ms.Mesh({"x": 2}), (8, 4), "f32", P("x"), P(None, "x"))
    made = [
        lambda: str(program.shardings()),
        lambda: str(program.partition().communication),
        lambda: str(program.diff(program.partition())),
        lambda: str(plan),
    ]
    expected = [one() for one in made]
    monkeypatch.setattr(console, "_is_jupyter", lambda: True)
    assert [one() for one in made] == expected


def test_a_bill_without_collectives() -> None:
    local = ms.Program(ms.parse(TEXT.replace('[{}, {"x"}]', '[{"x"}, {}]'))).partition()
    assert local.communication._repr_html_() == "no collectives: devices receive nothing"


def test_cells_are_text() -> None:
    assert cells(FittedTable(("a",), [("<b>&",)])._repr_html_()) == ["<b>&"]


def test_explanations_are_pages_in_frames() -> None:
    (frame,) = parsed(ms.Program(ms.parse(TEXT)).explain()._repr_html_()).iter("iframe")
    assert "allow-same-origin" not in frame.attrib["sandbox"]
    assert frame.attrib["srcdoc"].lower().startswith("<!doctype html>")


def test_plans_are_pictures() -> None:
    plan = ms.plan_reshard(ms.Mesh({"x": 2}), (8, 4), "f32", P("x"), P(None, "x"))
    assert ElementTree.fromstring(plan._repr_svg_()).tag == "{http://www.w3.org/2000/svg}svg"
