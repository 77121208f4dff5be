# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of errors of the reader or the host about malformed text, most of it found by `python -m fuzzed_programs`."""

from __future__ import annotations

import re

import pytest

import mlir_shard as ms

MESH = 'sdy.mesh @m = <["x"=2]>\n'
SHARDED = "func.func @f(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@m, [{}]>}}) {{\n  return\n}}"
ODD = {
    "sdy.mesh, x": "1:1: .*",
    "sdy.mesh = x": "1:1: .*",
    'sdy.mesh @m = <["\\zz"=2]>': r"1:18: unknown escape `\\z` in a string literal",
    f'sdy.mesh @m = <["x"={"9" * 5000}]>': "1:21: an integer of 5000 digits is too large",
    MESH + SHARDED.format('{"x"}p' + "9" * 5000): "2:72: the priority of 5000 digits does not fit in 64 bits",
    MESH + SHARDED.format('{"x":(' + "9" * 5000 + ")2}"): "2:73: an integer of 5000 digits is too large",
    'func.func @f() {\n  "sdy.manual_computation"() ({}, ^second) : () -> ()\n}': "2:35: expected '{', found `.*",
    'func.func @f() {\n  "sdy.manual_computation"() (tensor<4xf32>) : () -> ()\n}': "2:31: expected '{', found `.*",
    'func.func @f() {\n  "sdy.manual_computation"() (': "2:31: expected '{', found the end of the text",
    "func.func @f() {\n  \u2028return\n}": "2:3: .*",
    "func.func @f(%a\ufeff: i1) {\n  return\n}": "1:16: .*",
    'sdy.mesh @m = <["x\ufeff"=2, "x\ufeff"=2]>': '1:2\\d: mesh axis "x\ufeff" is given 2 times',
    "func.func @f() {\n  return\n}\n}": "[34]:.*",
}


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_text(text: str) -> None:
    with pytest.raises(ms.ParseError) as caught:
        ms.parse(text, filename="in.mlir")
    first = caught.value.diagnostics[0]
    assert re.fullmatch(ODD[text], f"{first.location.start_line}:{first.location.start_col}: {first.message}")
