# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a few programs of `python -m random_programs.whole_programs` by LLVM with XLA."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from runtime.local_program import needs_jax

from mlir_shard.runtime.program import Lowered
from random_programs import ranks_engine
from random_programs.execution import INVALID, MISMATCH, RIGHT
from random_programs.generate import SMALL_AXES, Scale
from random_programs.whole_programs import outcome, program, random_values, reference

# For the values that programs have, which are between -4 and 4 in narrow types.
NEUTRAL = {
    *("0.0", "1.0", "-1.0e38", "1.0e38", "(0.0, 0.0)", "0", "-1", "255", str(-(2**31)), str(2**31 - 1)),
    *("true", "false", "-4", "4", "-4.0", "4.0"),
}

PROGRAM = """
func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {
  %1 = stablehlo.abs %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


@needs_jax
@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
def test_programs_by_llvm_and_by_xla(is_large: bool) -> None:
    scale = Scale.of(1, SMALL_AXES, is_large=is_large)
    cases = [program(0, number, scale) for number in range(8)]
    with reference() as xla:
        kinds = [outcome(one.text(), random_values(one.seed), xla).kind for one in cases]
    assert set(kinds) <= {RIGHT, INVALID}
    assert kinds.count(RIGHT) >= 6


def test_reductions_begin_with_neutral_values() -> None:
    reductions = re.compile(r'"stablehlo\.reduce(?:_window)?"\(%\w+, (%\w+)\)')
    for number in range(60):
        text = program(0, number).text()
        for initial in reductions.findall(text):
            constant = re.search(rf'{initial} = "stablehlo\.constant"\(\) <\{{value = dense<([^>]+)>', text)
            assert constant is not None
            assert constant[1] in NEUTRAL


@needs_jax
def test_a_wrong_lowering_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def lower_wrongly(modules: Sequence[str], entry: str) -> list[Lowered]:
        return lower([text.replace("stablehlo.abs", "stablehlo.sine") for text in modules], entry)

    lower = ranks_engine.lower
    monkeypatch.setattr(ranks_engine, "lower", lower_wrongly)
    with reference() as xla:
        assert outcome(PROGRAM, random_values(0), xla).kind == MISMATCH
