# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of formats that parse but do not suit their operation."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlir_shard.ods.reader import read
from mlir_shard.ods.source import OdsError

TEMPLATE = """\
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
def D : Dialect {{ let name = "d"; }}
def A : Op<D, "a", [{traits}]> {{
  let arguments = (ins {arguments});
  let results = (outs {results});
  let regions = (region {regions});
  let assemblyFormat = "{text}";
}}
"""


def define(
    tmp_path: Path, text: str, *, arguments: str = "", results: str = "", regions: str = "", traits: str = ""
) -> None:
    path = tmp_path / "t.td"
    path.write_text(TEMPLATE.format(text=text, arguments=arguments, results=results, regions=regions, traits=traits))
    read(path)


@pytest.mark.parametrize(
    ("text", "parts", "column", "message"),
    [
        ("attr-dict $y", {}, 35, "'A' has no variable 'y'"),
        (
            "attr-dict $inpt",
            {"arguments": "I64Attr:$input"},
            35,
            "'A' has no variable 'inpt'; did you mean 'input'?",
        ),
        ("$x `:` type($x)", {"arguments": "AnyType:$x"}, 25, "the format of 'A' has no 'attr-dict'"),
        ("attr-dict", {"arguments": "I32:$x"}, 25, "the format of 'A' lacks the operand 'x'"),
        ("attr-dict `:` type($x)", {"arguments": "AnyType:$x"}, 25, "the format of 'A' lacks the operand 'x'"),
        ("attr-dict", {"regions": "AnyRegion:$r"}, 25, "the format of 'A' lacks the region 'r'"),
        (
            "$x attr-dict",
            {"arguments": "AnyType:$x"},
            25,
            "the format of 'A' does not specify the type of the operand 'x'",
        ),
        (
            "$x attr-dict `:` type($x)",
            {"arguments": "AnyType:$x", "results": "AnyType:$r"},
            25,
            "the format of 'A' does not specify the type of the result 'r'",
        ),
        (
            "($x^)? attr-dict `:` type($x)",
            {"arguments": "AnyType:$x"},
            26,
            "'x' of 'A' is always present, so it cannot anchor an optional group",
        ),
        (
            "(custom<C>($k)^)? attr-dict",
            {"arguments": "I64Attr:$k"},
            36,
            "'k' of 'A' is always present, so it cannot anchor an optional group",
        ),
    ],
)
def test_operations(tmp_path: Path, text: str, parts: dict[str, str], column: int, message: str) -> None:
    with pytest.raises(OdsError) as caught:
        define(tmp_path, text, **parts)
    assert str(caught.value).startswith(f"{tmp_path / 't.td'}:8:{column}: error: {message}\n")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("attr-dict", {}),
        ("attr-dict-with-keyword", {}),
        ("$x attr-dict", {"arguments": "I32:$x"}),
        ("operands attr-dict `:` type(operands)", {"arguments": "AnyType:$x, Variadic<AnyType>:$y"}),
        ("$x attr-dict `:` functional-type($x, $r)", {"arguments": "AnyType:$x", "results": "AnyType:$r"}),
        (
            "$x attr-dict `:` type($r)",
            {"arguments": "AnyType:$x", "results": "AnyType:$r", "traits": "SameOperandsAndResultType"},
        ),
        (
            "$x $y attr-dict `:` type($y)",
            {"arguments": "AnyType:$x, AnyType:$y", "traits": "SameTypeOperands"},
        ),
        (
            "$x attr-dict `:` type($x)",
            {"arguments": "AnyType:$x", "results": "AnyType:$r", "traits": 'AllTypesMatch<["x", "r"]>'},
        ),
        (
            "$v attr-dict",
            {"arguments": "ElementsAttr:$v", "results": "AnyType:$r", "traits": 'AllTypesMatch<["v", "r"]>'},
        ),
        (
            "$x attr-dict `:` type($x)",
            {
                "arguments": "AnyType:$x",
                "results": "AnyType:$r",
                "traits": 'TypesMatchWith<\\"t\\", \\"x\\", \\"r\\", \\"$_self\\">'.replace("\\", ""),
            },
        ),
        (
            "$x attr-dict `:` type($x)",
            {"arguments": "AnyType:$x", "results": "AnyType:$r", "traits": "InferTypeOpInterface"},
        ),
        ("($k^)? attr-dict", {"arguments": "OptionalAttr<I64Attr>:$k"}),
        ("($k^)? attr-dict", {"arguments": 'DefaultValuedAttr<I64Attr, "3">:$k'}),
        ("($x^ `:` type($x))? attr-dict", {"arguments": "Optional<AnyType>:$x"}),
        ("($r^)? attr-dict", {"regions": "AnyRegion:$r"}),
        ("regions attr-dict", {"regions": "AnyRegion:$r, VariadicRegion<AnyRegion>:$s"}),
    ],
)
def test_operations_that_are_right(tmp_path: Path, text: str, parts: dict[str, str]) -> None:
    define(tmp_path, text, **parts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$x", "the format of 'AAttr' lacks the parameter 'y'"),
        ("$x $z", "'AAttr' has no variable 'z'"),
        ("($x^)? $y", "'x' of 'AAttr' is always present, so it cannot anchor an optional group"),
    ],
)
def test_attributes(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.td"
    path.write_text(
        f"""\
include "mlir/IR/AttrTypeBase.td"
def D : Dialect {{ let name = "d"; }}
def A : AttrDef<D, "A"> {{
  let mnemonic = "a";
  let parameters = (ins "int":$x, OptionalParameter<"int">:$y);
  let assemblyFormat = "{text}";
}}
"""
    )
    with pytest.raises(OdsError) as caught:
        read(path)
    assert caught.value.message == message
    assert caught.value.location is not None and caught.value.location.line == 6
