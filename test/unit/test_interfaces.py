# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the registrations with which a dialect takes part in sharding, and of their errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documents.blocks import blocks
from rules.modules import ops, spelled

import mlir_shard
from mlir_shard import interfaces
from mlir_shard.dialects import contexts, data_flow_edges
from mlir_shard.dialects.contexts import DialectError
from mlir_shard.rules import RuleCache, constants, lowering, registry
from mlir_shard.rules import elementwise as elementwise_ops

ROOT = Path(__file__).parents[2]
MATMUL = """(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) {
    %0 = "test.matmul"(%a, %b) : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    return
  }"""
TABLES = (
    (registry, "_by_name"),
    (registry, "_by_dialect"),
    (lowering, "_by_name"),
    (data_flow_edges, "_entries"),
    (contexts, "_loaders"),
    (constants, "CONSTANTS"),
    (constants, "CONSTANT_OPS"),
    (constants, "CONSTANTS_OF_CONSTANTS"),
    (elementwise_ops, "_names"),
    (registry, "_order"),
)


@pytest.fixture(autouse=True)
def own_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restores the registrations after each test."""
    for module, name in TABLES:
        monkeypatch.setattr(module, name, type(getattr(module, name))(getattr(module, name)))


def test_text_and_builder() -> None:
    interfaces.sharding_rule("test.matmul", text="i k, k j -> i j")
    matmul, _ = ops(MATMUL)
    assert spelled(matmul) == "([i, k], [k, j])->([i, j]) {i=4, j=2, k=8} reduction=k"

    @interfaces.sharding_rule("test.*")
    def whole(op: Any, options: interfaces.RuleOptions) -> interfaces.OpShardingRule:
        builder = interfaces.RuleBuilder.for_op(op)
        return builder.add_factor([0, None], [0], 4, interfaces.FactorType.NEED_REPLICATION).build()

    assert spelled(matmul).endswith("reduction=k")
    interfaces.sharding_rule("test.matmul")(whole)
    assert spelled(matmul).endswith("need_replication=i")


def test_a_registration_counts_at_once() -> None:
    matmul, _ = ops(MATMUL)
    cache = RuleCache()
    assert cache.rule_for(matmul) is None
    interfaces.sharding_rule("test.matmul", text="i k, k j -> i j")
    assert cache.rule_for(matmul) is not None


def test_marks() -> None:
    interfaces.elementwise("test.scale")
    interfaces.constant_like("test.iota")
    interfaces.constant_op("test.constant")
    interfaces.constant_foldable("test.slice")
    assert elementwise_ops.is_elementwise("test.scale")
    assert {"test.iota", "test.constant"} <= constants.CONSTANTS
    assert "test.iota" not in constants.CONSTANT_OPS
    assert "test.constant" in constants.CONSTANT_OPS
    slice_, scale, _ = ops("""(%a: tensor<4xf32>) {
        %0 = "test.slice"(%a) : (tensor<4xf32>) -> tensor<4xf32>
        %1 = "test.scale"(%a) : (tensor<4xf32>) -> tensor<4xf32>
        return
      }""")
    assert constants.is_constant_of_constants(slice_)
    assert constants.is_constant_of_constants(scale)


def test_priorities_move_to_where_they_are_given_last() -> None:
    interfaces.op_priorities("test.a", ("test.b", "test.c"))
    interfaces.op_priorities("test.b", "other.*")
    assert registry.op_priorities() == (("test.a",), ("test.c",), ("test.b",), ("other.*",))


def test_dialects_of_irdl_text_and_of_functions() -> None:
    seen = []
    interfaces.register_dialect("irdl.dialect @texted {\n  irdl.operation @op {}\n}")

    @interfaces.register_dialect
    def loader(context: Any) -> None:
        seen.append(context)

    context = mlir_shard.create_context()
    mlir_shard.parse('"texted.op"() : () -> ()', context)
    assert len(seen) == 1


def test_a_dialect_that_cannot_be_loaded() -> None:
    @interfaces.register_dialect
    def loader(context: Any) -> None:
        raise OSError("no such library")

    with pytest.raises(DialectError, match=r"loader' cannot be loaded: no such library"):
        mlir_shard.create_context()


@pytest.mark.parametrize(
    ("registration", "message"),
    [
        (lambda: interfaces.sharding_rule("scores", text="i -> i"), r"'scores' is not an op name: expected 'dialect"),
        (lambda: interfaces.sharding_rule("a.b", "i -> i"), r"'i -> i' is not an op name"),
        (lambda: interfaces.sharding_rule(), r"must name at least one op, or have a predicate `when`"),
        (lambda: interfaces.sharding_rule("a.b", text="i -> j ="), r"the sharding rule of 'a.b': invalid rule"),
        (
            lambda: interfaces.sharding_rule("a.b", text="i -> i", sizes={"h": 2}),
            r"a size is given for 'h', which is not a factor",
        ),
        (
            lambda: interfaces.sharding_rule("a.b", text="i -> i", sizes={"i": 0}),
            r"must have a positive integer size, got 0",
        ),
        (lambda: interfaces.sharding_rule("a.b", sizes={"i": 2}), r"specify the `text` too"),
        (lambda: interfaces.sharding_rule("a.b", text="i -> i", when=bool), r"are for functions"),
        (
            lambda: interfaces.sharding_rule("a.b")(lambda op: None),
            r"function of \(op, options\), but has the signature \(op\)",
        ),
        (lambda: interfaces.sharding_rule("a.b")("i -> i"), r"function of \(op, options\), got 'i -> i'"),
        (lambda: interfaces.elementwise("scale"), r"'scale' is not an op name"),
        (lambda: interfaces.constant_op("a.*"), r"'a.\*' is not an op name: expected 'dialect.name'$"),
        (lambda: interfaces.op_priorities("a.b", "a.b"), r"'a.b' is given twice"),
        (lambda: interfaces.op_priorities(()), r"must not be empty"),
        (lambda: interfaces.data_flow_edges("a.b")(lambda: []), r"function of \(op\), but has the signature \(\)"),
        (lambda: interfaces.data_flow_edges("a.b", get_argument_shardings=list), r"must be registered together"),
        (lambda: interfaces.register_dialect(7), r"7 is not a dialect"),
    ],
)
def test_what_cannot_be_registered(registration: Callable[[], Any], message: str) -> None:
    with pytest.raises(interfaces.RegistrationError, match=message):
        registration()


def test_the_document_shows_the_example() -> None:
    example = (ROOT / "docs/examples/attention_dialect.py").read_text()
    shown = [block.text for block in blocks(ROOT / "docs/user-dialects.md") if block.text in example]
    assert len(shown) >= 9
    places = [example.index(text) for text in shown]
    assert places == sorted(places)
