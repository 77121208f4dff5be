# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables are printed as paragraphs if their columns do not fit."""

from __future__ import annotations

import pytest
from rich.columns import Columns

from mlir_shard.passes.fitted_table import FirstThatFits, FittedTable, as_text

TABLE = FittedTable(
    ("name", "x  y", "sharding", "bytes"),
    [("first", "0  1", '[{"x"}, {"y"}]', "12 B"), ("second", "", "[{}, {}]", "1,234 B")],
    right=(3,),
    footer=("2 tensors", "", "", "1,246 B"),
    has_line=True,
)
WIDE = """
 name        x  y   sharding           bytes
 ───────────────────────────────────────────
 first       0  1   [{"x"}, {"y"}]      12 B
 second             [{}, {}]         1,234 B

 2 tensors                           1,246 B
"""
NARROW = """\
name first
  x y 0  1; sharding [{"x"}, {"y"}]
  bytes 12 B
name second
  sharding [{}, {}]; bytes 1,234 B
2 tensors
  bytes 1,246 B"""


@pytest.mark.parametrize(("width", "text"), [(1000, WIDE), (46, WIDE), (43, NARROW), (36, NARROW)])
def test_a_table_or_paragraphs(width: int, text: str) -> None:
    assert as_text(TABLE, width) == text


@pytest.mark.parametrize("width", range(20, 60))
def test_no_line_is_wider(width: int) -> None:
    assert max(map(len, as_text(TABLE, width).splitlines())) <= width


def test_without_lines() -> None:
    table = FittedTable(("a", "b"), [("1", "two words")])
    assert as_text(table, 20) == "a  b\n1  two words"
    assert as_text(table, 11) == "a 1\n  b two\n  words"


def test_the_first_that_fits() -> None:
    forms = FirstThatFits(["a long line of text", "a line", "-"])
    assert [as_text(forms, width) for width in (40, 10, 1)] == ["a long line of text", "a line", "-"]
    assert as_text(Columns([forms, "next to it"]), 40) == "a long line of text next to it"
