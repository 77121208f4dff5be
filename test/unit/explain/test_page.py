# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the page of an explanation: its data, its size, and that names of the program are shown as text only."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from explain.pages import EVIL, LAYER, Page, evil_page, explained, sums

import mlir_shard
from mlir_shard.explain.page.data import page_data
from mlir_shard.explain.page.document import page_html, write_page
from mlir_shard.explain.page.outline import scopes
from mlir_shard.explain.quantities import memory_of
from mlir_shard.explain.suggestions import suggest

LOOP = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%c = %i, %v = %a) : tensor<i32>, tensor<8x8xf32>
  cond {
    %p = stablehlo.compare LT, %c, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %d = stablehlo.add %c, %one : tensor<i32>
    %t = stablehlo.tanh %v : tensor<8x8xf32>
    stablehlo.return %d, %t : tensor<i32>, tensor<8x8xf32>
  }
  return %0#1 : tensor<8x8xf32>
}
"""


def chain(data: dict[str, Any], origin: int) -> list[Any]:
    """Returns the annotation of a chain and the ops and factors of its steps, read as by the scripts."""
    texts, steps = data["texts"], data["steps"]
    found = []
    while origin >= 0:
        op, factor, *_ = data["links"][steps["link"][origin]]
        found.append((texts[op], texts[factor], steps["source"][origin]))
        origin = steps["before"][origin]
    return [texts[data["annotations"][-1 - origin][1]], *reversed(found)]


@pytest.mark.parametrize("program", [LAYER, LOOP, sums(20)])
def test_chains_are_those_of_the_explanation(program: str) -> None:
    explanation = explained(program)
    data = json.loads(json.dumps(page_data(explanation)))
    rows = {tensor.number: row for row, tensor in enumerate(explanation.tensors)}
    count = 0
    for row, tensor in enumerate(explanation.tensors):
        flat = data["origins"][row]
        expected = explanation.chains(tensor)
        assert len(flat) == 3 * len(expected)
        for at, one in enumerate(expected):
            dim, axis, origin = flat[3 * at : 3 * at + 3]
            steps = [(link.op, link.factor, rows.get(link.source, -1)) for link in one.links]
            assert (dim, data["texts"][axis]) == (one.dim, str(one.axis))
            assert chain(data, origin) == [one.annotation.text, *steps]
            count += 1
    assert count


def test_tensors_are_in_the_groups_that_front_ends_name() -> None:
    data = page_data(explained(LAYER))
    labels, parents = data["groups"]["label"], data["groups"]["parent"]

    def path(group: int) -> list[str]:
        return [] if group < 0 else [*path(parents[group]), labels[group]]

    groups = {
        data["texts"][op]: path(group)
        for op, group in zip(data["tensors"]["op"], data["tensors"]["group"], strict=True)
    }
    assert groups["stablehlo.tanh"] == ["@layer", "step", "layer_0", "mlp"]
    assert groups["stablehlo.add"] == ["@layer", "step", "layer_1"]
    assert groups["argument"] == ["@layer", "arguments"]


def test_values_of_a_loop_are_in_a_group_of_it() -> None:
    data = page_data(explained(LOOP))
    assert any(label.startswith("stablehlo.while at line") for label in data["groups"]["label"])


def test_values_of_an_inlined_function_are_in_the_scope_that_it_was_called_in() -> None:
    called = 'loc(callsite("tanh" at callsite("step/layer_0/jit(f)" at "main")))'
    data = page_data(explained(LAYER.replace('loc("step/layer_0/mlp/tanh")', called)))
    labels, parents = data["groups"]["label"], data["groups"]["parent"]
    (group,) = [
        group
        for op, group in zip(data["tensors"]["op"], data["tensors"]["group"], strict=True)
        if data["texts"][op] == "stablehlo.tanh"
    ]
    assert (labels[group], labels[parents[group]]) == ("jit(f)", "layer_0")


def test_scopes_are_split_at_slashes_that_are_in_no_brackets() -> None:
    assert scopes("jit(f)/transpose(jvp(a/b))/dot[x=(1/2)]") == ["jit(f)", "transpose(jvp(a/b))", "dot[x=(1/2)]"]


def test_collectives_lost_axes_and_totals_are_in_the_data() -> None:
    explanation = explained(LAYER)
    data = page_data(explanation)
    assert len(data["collectives"]) == len(explanation.collectives) > 0
    kinds = {data["texts"][data["causes"][cause][0]] for one in data["collectives"] for cause in one[-1]}
    assert "partial sum" in kinds
    assert data["totals"]["bytes_received"] == explanation.report.bytes_received
    (lost,) = [found for row, found in data["lost"].items() if explanation.tensors[row].name == "%closed"]
    assert data["texts"][lost[0][2]] == "closed dimension"


def test_size_is_proportional_to_the_program() -> None:
    small, large = (len(json.dumps(page_data(explained(sums(count))))) for count in (200, 400))
    assert large < 2.2 * small
    # The chain of each value is as long as the number of operations before it.
    assert len(page_data(explained(sums(400)))["steps"]["link"]) < 900


def test_names_of_the_program_make_no_elements() -> None:
    page = evil_page()
    found = Page(page)
    assert [tag for tag in found.tags if tag in ("script", "img")] == ["script", "script"]
    assert found.texts["title"] == [EVIL]
    assert any(EVIL in text for text in found.data["texts"])
    assert not any(name.startswith("on") for name, _ in found.attributes)


def test_nothing_runs_but_the_scripts_of_the_package() -> None:
    page = Page(page_html(explained(LAYER), "a"))
    (policy,) = [value for name, value in page.attributes if name == "content" and "default-src" in (value or "")]
    hashes = {
        kind: base64.b64encode(hashlib.sha256(page.texts[kind][-1].encode()).digest()).decode()
        for kind in ("style", "script")
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'"
    )


def test_the_page_loads_nothing() -> None:
    page = Page(page_html(explained(LAYER), "a"))
    assert not {name for name, _ in page.attributes} & {"src", "href"}
    assert not re.search(
        r"url\(|@import|\bfetch\(|XMLHttpRequest|innerHTML", "".join(page.texts["script"][1:] + page.texts["style"])
    )


def test_a_program_without_shardings_has_a_page(tmp_path: Path) -> None:
    text = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"
    write_page(explained(text), tmp_path / "a.html", "plain")
    data = Page((tmp_path / "a.html").read_text(encoding="utf-8")).data
    assert data["title"] == "plain" and not data["collectives"]


def test_memory_and_suggestions_are_in_the_data() -> None:
    explanation = explained(LAYER)
    module = mlir_shard.parse(LAYER, filename="a.mlir")
    suggested = suggest(module, explanation, sources={"a.mlir": LAYER}, most=1)
    data = page_data(explanation, suggested)
    texts, points = data["texts"], data["memory"]["points"]
    assert data["memory"]["peak"] == memory_of(explanation.module).peak
    assert [texts[op] for op in points["op"]][:1] == ["stablehlo.dot_general"]
    assert all(len(column) == len(points["op"]) for column in points.values())
    (row, sharding, saved, before, _), *others = data["suggestions"]
    assert not others
    assert texts[data["tensors"]["name"][row]] == suggested[0].tensor.name
    assert texts[sharding] == suggested[0].change.sharding
    assert 0 < saved == suggested[0].saved <= before == explanation.report.bytes_received


def test_a_program_of_dynamic_shapes_has_a_page_without_memory() -> None:
    text = LAYER.replace("func.func @layer", "func.func private @other(tensor<?xf32>)\nfunc.func @layer")
    assert "memory" in page_data(explained(text))
    dynamic = "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n  return %a : tensor<?xf32>\n}\n"
    assert "memory" not in page_data(explained(dynamic))
