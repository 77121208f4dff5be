# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of parsing with deferred verifiers, against the host's verification of every operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mlir_shard
from mlir_shard.asm import ParseError, parse_module
from mlir_shard.dialects import verification
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.verified import verified_in
from mlir_shard.dialects.verifiers import checks
from mlir_shard.dialects.verifiers.operations import VERIFIERS

TESTS = Path(__file__).resolve().parents[2]
SPLIT = "// -----"
MESHES = 'sdy.mesh @m = <["x"=2, "y"=2]>\nsdy.mesh @other = <["x"=4]>\n'
GATHER = 'sdy.all_gather [{"x"}] %FROM out_sharding=<@m, [{}]> : tensor<8xf32>'


def is_accepted(text: str, context: Any) -> bool:
    try:
        mlir_shard.parse(text, context)
    except ParseError:
        return False
    return True


def is_accepted_by_the_host(text: str, context: Any) -> bool:
    try:
        module = parse_module(text, context)
    except ParseError:
        return False
    with context.attach_diagnostic_handler(lambda _: True):
        return verification.verify(module.operation)


def test_programs_are_accepted_as_by_the_host() -> None:
    programs = [text for file in sorted(TESTS.rglob("*.mlir")) for text in file.read_text().split(SPLIT)]
    texts = [text for text in programs if "sdy." in text]
    found = []
    for accepts in (is_accepted, is_accepted_by_the_host):
        context = create_context()
        context.allow_unregistered_dialects = True
        found.append([accepts(text, context) for text in texts])
    assert found[0] == found[1]
    assert found[0].count(False) > 100


def sources(sharding: str) -> dict[str, str]:
    """Returns definitions of a value `%v` with a sharding, in a function with arguments `%a` and `%b`, by name."""
    attribute = f"#sdy.sharding_per_value<[<{sharding}>]>"
    return {
        "operation": f"%v = stablehlo.negate %a {{sdy.sharding = {attribute}}} : tensor<8xf32>",
        "sdy": f"%v = sdy.reshard %a <{sharding}> : tensor<8xf32>",
        "edge": f"%e = sdy.data_flow_edge %b sharding=<{sharding}> : tensor<8xf32>\n"
        "%v = stablehlo.optimization_barrier %e : tensor<8xf32>",
        "owner": f"%w = stablehlo.optimization_barrier %a : tensor<8xf32>\n"
        f"%v = sdy.data_flow_edge %w sharding=<{sharding}> : tensor<8xf32>",
        "barrier": f"%w = sdy.reshard %a <{sharding}> : tensor<8xf32>\n"
        "%v = sdy.propagation_barrier %w allowed_direction=NONE : tensor<8xf32>",
    }


def function(name: str, body: str, sharding: str = "@m, [{?}]") -> str:
    return (
        f"func.func @{name}(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<{sharding}>}}, %b: tensor<8xf32>) "
        f"-> tensor<8xf32> {{\n{body}\n  return %r : tensor<8xf32>\n}}\n"
    )


def gathered(name: str, source: str) -> str:
    return function(name, f"{source}\n%r = {GATHER.replace('FROM', 'v')}")


RIGHT, WRONG = '@m, [{"x"}]', '@m, [{"y"}]'


@pytest.mark.parametrize("kind", sources(RIGHT))
def test_a_collective_is_verified_for_each_sharding_of_its_operand(kind: str) -> None:
    right, wrong = gathered("one", sources(RIGHT)[kind]), gathered("two", sources(WRONG)[kind])
    context = create_context()
    assert is_accepted(MESHES + right, context) == is_accepted_by_the_host(MESHES + right, context)
    for text in (MESHES + right + wrong, MESHES + wrong, MESHES + right + right.replace("@one", "@two")):
        assert is_accepted(text, context) == is_accepted_by_the_host(text, context)
    if kind in ("operation", "sdy"):
        assert not is_accepted(MESHES + right + wrong, context)


def test_a_collective_is_verified_for_each_sharding_of_an_argument() -> None:
    body = f"%r = {GATHER.replace('FROM', 'a')}"
    context = create_context()
    assert is_accepted(MESHES + function("one", body, RIGHT) + function("two", body, RIGHT), context)
    assert not is_accepted(MESHES + function("one", body, RIGHT) + function("two", body, WRONG), context)


def test_another_mesh_of_the_name_is_looked_at() -> None:
    text = function("one", '%r = sdy.reshard %a <@m, [{"y"}]> : tensor<8xf32>')
    context = create_context()
    assert is_accepted(MESHES + text, context)
    assert not is_accepted('sdy.mesh @m = <["x"=2]>\n' + text, context)
    assert is_accepted(MESHES + text, context)


INVALID = '%v = sdy.reshard %a <@m, [{"z"}]> : tensor<8xf32>'


@pytest.mark.parametrize(
    "text",
    [
        function(
            "one", f"  cf.br ^bb1\n^bb1:\n{INVALID}\n  cf.br ^bb2\n^bb2:\n  %r = stablehlo.negate %v : tensor<8xf32>"
        ),
        "module @inner {\n" + MESHES + function("one", f"{INVALID}\n%r = stablehlo.negate %v : tensor<8xf32>") + "}\n",
        function(
            "one",
            f'%r = "foreign.op"(%b) ({{\n{INVALID}\n"foreign.end"() : () -> ()\n}}) : (tensor<8xf32>) -> tensor<8xf32>',
        ),
    ],
)
def test_operations_in_what_is_not_known_are_verified(text: str) -> None:
    context = create_context()
    context.allow_unregistered_dialects = True
    assert is_accepted(MESHES + text.replace('"z"', '"x"'), context)
    assert not is_accepted(MESHES + text, context)


def test_what_was_not_valid_is_found_again() -> None:
    text = MESHES + function("one", f"{INVALID}\n%r = stablehlo.negate %v : tensor<8xf32>")
    context = create_context()
    assert not is_accepted(text, context)
    assert not is_accepted(text, context)


def test_operations_that_are_like_each_other_are_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    context = create_context()
    verified = verified_in(context)
    for name in ("sdy.reshard", "sdy.all_gather"):
        monkeypatch.setitem(VERIFIERS, name, lambda op: seen.append(op.name) or True)
    text = MESHES + "".join(gathered(f"f{i}", sources(RIGHT)["sdy"]) for i in range(5))
    module = mlir_shard.parse(text, context)
    assert seen == ["sdy.reshard", "sdy.all_gather"]
    assert verified.verify(module.operation)


def test_verifiers_are_deferred_for_a_time() -> None:
    fails = checks.verifier(_fail)

    class Op:
        operation = None

    with checks.deferred():
        assert fails(Op())
        with checks.deferred():
            pass
        assert fails(Op())
    with pytest.raises(ZeroDivisionError):
        fails(Op())


def _fail(op: Any) -> None:
    raise ZeroDivisionError
