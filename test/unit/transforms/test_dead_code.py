# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unused operations do not change the shardings that propagation chooses, wherever they are inserted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlir_shard

TYPE = "tensor<8x8xf32>"
PIPELINES = (
    "builtin.module(shard-propagate)",
    "builtin.module(sdy-basic-propagate)",
    "builtin.module(sdy-user-priority-propagate)",
    "builtin.module(sdy-propagation-pipeline)",
)
SHARDINGS = ("", '[{"x"}, {?}]', '[{?}, {"y"}]', '[{"y", ?}, {"x", ?}]', "[{}, {}]")
# The first two ops have two operands, the others one.
OPS = ("stablehlo.add {}, {}", "arith.mulf {}, {}", "stablehlo.negate {}", "sdy.reshard {} <@mesh, [{{}}, {{}}]>")


@pytest.fixture(scope="module")
def context() -> Any:
    return mlir_shard.create_context()


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    """Draws a program of a few operations, and the same program with dead operations in between."""
    given_shardings = draw(st.lists(st.sampled_from(SHARDINGS), min_size=2, max_size=3))
    names = [f"%a{number}" for number in range(len(given_shardings))]
    live, values = list(names), list(names)
    lines: list[tuple[str, bool]] = []
    for number in range(draw(st.integers(2, 8))):
        is_dead = draw(st.booleans())
        op = draw(st.sampled_from(OPS))
        operands = [draw(st.sampled_from(values if is_dead else live)) for _ in range(2)]
        value = f"%{'dead' if is_dead else 'live'}{number}"
        lines.append((f"  {value} = {op.format(*operands)} : {TYPE}", is_dead))
        values.append(value)
        if not is_dead:
            live.append(value)
    arguments = ", ".join(
        f"{name}: {TYPE}" + (f" {{sdy.sharding = #sdy.sharding<@mesh, {text}>}}" if text else "")
        for name, text in zip(names, given_shardings, strict=True)
    )
    types = ", ".join([TYPE] * len(live))
    head = f'sdy.mesh @mesh = <["x"=2, "y"=2]>\nfunc.func @main({arguments}) -> ({types}) {{'
    tail = f"  return {', '.join(live)} : {types}\n}}"
    return (
        "\n".join([head, *(line for line, is_dead in lines if not is_dead), tail]),
        "\n".join([head, *(line for line, _ in lines), tail]),
    )


def after(text: str, pipeline: str, context: Any) -> str:
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, pipeline)
    return mlir_shard.print_module(module.operation)


@settings(max_examples=60, deadline=None)
@given(both=programs())
def test_dead_code_decides_nothing(both: tuple[str, str], context: Any) -> None:
    without, with_dead_code = both
    for pipeline in PIPELINES:
        assert after(with_dead_code, pipeline, context) == after(without, pipeline, context)


def test_a_long_dead_chain_goes_at_once(context: Any) -> None:
    chain = [f"%{number}" for number in range(200)]
    lines = [f"  {value} = stablehlo.negate {used} : {TYPE}" for used, value in pairwise(["%a", *chain])]
    whole = "<@mesh, [{}, {}]>"
    reshards = [f"  %r{number} = sdy.reshard {value} {whole} : {TYPE}" for number, value in enumerate(chain)]
    head = f'sdy.mesh @mesh = <["x"=2]>\nfunc.func @main(%a: {TYPE}) {{'
    text = "\n".join([head, *lines, *reshards, "  return", "}"])
    assert "negate" not in after(text, "builtin.module(sdy-basic-propagate)", context)
