# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings in canonical text are read and printed as by their assembly format."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mlir_shard.asm import SYNTAXES, AsmSyntaxError, Cursor, as_bytes, parse_value, plain_shardings, print_value
from mlir_shard.asm.attributes import AttributeReader, DialectSyntax
from mlir_shard.dialects import sdy
from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, ReductionOp, TensorSharding


def by_format() -> DialectSyntax:
    return replace(SYNTAXES[sdy.DIALECT.name], plain={})


def axes(choose: Random) -> tuple[AxisRef, ...]:
    names = choose.sample(["x", "data", "a.b", "x-y", "_0", "a b", 'q"'], choose.choice([0, 0, 1, 1, 2, 4]))
    return tuple(
        AxisRef.sub(one, choose.choice([1, 2, 12]), 2) if choose.random() < 0.3 else AxisRef(one) for one in names
    )


def sharding(choose: Random) -> TensorSharding:
    dims = tuple(
        DimensionSharding(axes(choose), choose.random() < 0.7, choose.choice([None, None, 0, 3, 120]))
        for _ in range(choose.randrange(5))
    )
    return TensorSharding(
        choose.choice(["mesh", "a.b$c", "0", "with space", Mesh({"x": 2})]),
        dims,
        axes(choose) if choose.random() < 0.3 else (),
        axes(choose) if choose.random() < 0.3 else (),
        choose.choice([ReductionOp.SUM, ReductionOp.MAX]),
    )


def test_random_shardings() -> None:
    choose, plain = Random(0), 0
    for _ in range(2000):
        given = sharding(choose)
        text = by_format().print("sharding", given)
        assert print_value(given) == text
        expected = replace(given, reduction_op=given.reduction_op if given.unreduced_axes else ReductionOp.SUM)
        assert parse_value("sharding", text) == expected
        plain += plain_shardings.read(text, 0) is not None
    assert plain > 200


@pytest.mark.parametrize(
    "text",
    [
        '<@mesh,[{"x"}]>',
        '<@mesh, [{ "x" }]>',
        '<@mesh, [{"x"}]> ',
        '<@mesh, [{"x"}], unreduced={"y"}, replicated={"z"}>',
        '<@mesh, [{"x"}], replicated={}>',
        '<@mesh, [{"x":(01)2}]>',
        '<@mesh, [{"x"}p01]>',
        '<@mesh, [{"x"}p9999999999999999999]>',
        '<@mesh, [{"x",}]>',
        '<@mesh, [{?, "x"}]>',
        '<@mesh, [{"x"},]>',
        '<@mesh, [{"\u00e9"}]>',
        '<@mesh, [{"x"}]',
        '<@m-n, [{"x"}]>',
        "<@mesh, []>",
        '<mesh<["x"=2]>, [{"x"}]>',
    ],
)
def test_other_texts_are_left_to_the_format(text: str) -> None:
    def read(syntax: DialectSyntax) -> object:
        cursor = Cursor(as_bytes(text))
        try:
            return AttributeReader(syntax, cursor, None).attribute("sharding"), cursor.position
        except AsmSyntaxError as error:
            return error.offset, error.message

    assert read(SYNTAXES[sdy.DIALECT.name]) == read(by_format())
