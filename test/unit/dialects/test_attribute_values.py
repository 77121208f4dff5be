# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the values of attributes: a text is parsed only if it is not that of a known valid value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlir_shard
from mlir_shard import asm
from mlir_shard.asm.attributes import SYNTAXES, DialectSyntax
from mlir_shard.dialects import sdy
from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, TensorSharding, TensorShardingPerValue


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the texts of attributes that are parsed during a test."""
    texts: list[str] = []

    def parse_value(mnemonic: str, text: str, parse: Callable[[str, str], Any] = asm.parse_value) -> Any:
        texts.append(text)
        return parse(mnemonic, text)

    monkeypatch.setattr(asm, "parse_value", parse_value)
    return texts


def _sharding(*dims: DimensionSharding, mesh: str | Mesh = "mesh") -> TensorSharding:
    return TensorSharding(mesh, dims)


def test_shardings_that_were_made_from_values_are_not_parsed(parsed: list[str]) -> None:
    axes = AxisRef("made_from_values"), AxisRef.sub("made_from_values_too", 2, 4)
    sharding = _sharding(DimensionSharding(axes, True), DimensionSharding((), False, 3))
    with mlir_shard.create_context():
        for value in (sharding, TensorShardingPerValue((sharding, sharding))):
            assert sdy.attribute(value).maybe_downcast().value == value
    assert not parsed


@pytest.mark.parametrize(
    "sharding",
    [
        _sharding(DimensionSharding((AxisRef.sub("x", 1, 2**63),), True)),
        _sharding(DimensionSharding((), False, 2**63)),
        _sharding(DimensionSharding((), True), mesh=Mesh([("x", 0)])),
    ],
)
def test_values_that_cannot_be_read_are_refused(sharding: TensorSharding) -> None:
    with mlir_shard.create_context(), pytest.raises(asm.AsmSyntaxError):
        assert sdy.attribute(sharding).maybe_downcast().value


def test_equal_parts_of_an_attribute_are_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []

    def print_parts(syntax: DialectSyntax, mnemonic: str, value: Any, original: Any = DialectSyntax.print) -> str:
        printed.append(mnemonic)
        text: str = original(syntax, mnemonic, value)
        return text

    monkeypatch.setattr(DialectSyntax, "print", print_parts)
    dim = DimensionSharding((AxisRef("printed once"),), True)
    text = SYNTAXES["sdy"].print("sharding", _sharding(*[dim] * 64))
    assert text.count("printed once") == 64
    assert printed.count("dimension_sharding") == 1
