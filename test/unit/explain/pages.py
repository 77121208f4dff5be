# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose pages are tested, and a parser of pages."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import mlir_shard
from mlir_shard.explain.explanation import Explanation, explain
from mlir_shard.explain.page.document import page_html

EVIL = "</script><script>window.ran=1</script><img src=x onerror=window.ran=1>"

# The program has a constraint in the middle, a contraction of a sharded dimension, and names to replace by scripts.
LAYER = """sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @layer(
    %x: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}, {"model"}]>},
    %w: tensor<64x32xf32>, %closed: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32> loc("step/layer_0/dot_general")
  %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : tensor<16x32xf32>
  %2 = stablehlo.tanh %1 : tensor<16x32xf32> loc("step/layer_0/mlp/tanh")
  %3 = stablehlo.add %2, %closed : tensor<16x32xf32> loc("step/layer_1/add")
  return %3 : tensor<16x32xf32>
}
"""


def explained(text: str, filename: str = "a.mlir") -> Explanation:
    """Explains a program."""
    return explain(mlir_shard.parse(text, filename=filename), sources={filename: text})


def evil_page() -> str:
    """Returns the page of a program whose axis, function, op, file and title have names that contain scripts."""
    text = LAYER.replace("model", EVIL).replace("@layer", f'@"{EVIL}"').replace("step/layer_0/mlp", f"step/{EVIL}")
    return page_html(explained(text, f"{EVIL}.mlir"), EVIL)


def sums(count: int) -> str:
    """Returns a program with `count` additions, one after the other."""
    sharded = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
    lines = [f"  %{n + 1} = stablehlo.add %{n}, %{n} : tensor<8xf32>" for n in range(count)]
    body = "\n".join(["  %0 = stablehlo.tanh %a : tensor<8xf32>", *lines, f"  return %{count} : tensor<8xf32>"])
    head = f"func.func @main(%a: tensor<8xf32> {sharded}) -> tensor<8xf32> {{"
    return f'sdy.mesh @mesh = <["x"=2]>\n{head}\n{body}\n}}\n'


class Page(HTMLParser):
    """The elements of a page, as a browser parses them.

    Attributes:
        tags: the names of all elements.
        attributes: the attributes of all elements.
        texts: the texts in the elements of each name.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open, []).append(data)

    @property
    def data(self) -> dict[str, Any]:
        """The data that the scripts of the page read."""
        return json.loads(self.texts["script"][0])
