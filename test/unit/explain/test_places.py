# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of call stacks of JAX in locations: texts contain one frame, and data contains all frames."""

from __future__ import annotations

from typing import Any

import pytest

import mlir_shard
from mlir_shard.explain.places import place_of
from mlir_shard.passes import diagnostic

LIBRARY = "/venv/lib/python3.11/site-packages/jax/_src/nn/functions.py"
CALL = '"program.mlir":9:3'
PARTS = '"layer"("model.py":7:11) at callsite("step"("model.py":10:30 to :35) at "<module>"("<stdin>":1:0))'


def location(text: str) -> Any:
    module = f"module {{\n  func.func private @f() loc({text})\n}}"
    parsed = mlir_shard.parse(module, mlir_shard.create_context())
    return next(iter(parsed.body.operations)).location


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f'"jit(step)/dot"(callsite({PARTS}))', 'model.py:7:11 "jit(step)/dot"', id="the innermost frame"),
        pytest.param(
            f'"jit(step)/max"(callsite("softmax"("{LIBRARY}":5:2) at callsite({PARTS})))',
            'model.py:7:11 "jit(step)/max"',
            id="the innermost frame that is not in JAX",
        ),
        pytest.param(f'"tanh"("{LIBRARY}":5:2)', f'{LIBRARY}:5:2 "tanh"', id="frames of JAX alone"),
        pytest.param(
            f"callsite({CALL} at {CALL})", "program.mlir:9:3, called from program.mlir:9:3", id="an inlined call"
        ),
    ],
)
def test_text_has_one_frame(text: str, expected: str) -> None:
    found = location(text)
    place = place_of(found)
    assert str(place) == expected

    position = diagnostic.at("error", "no", found).position
    assert position is not None
    assert expected.startswith(f"{position.file}:{position.line}:{position.column}")


def test_places_know_all_frames() -> None:
    place = place_of(location(f'"jit(step)/dot"(callsite({PARTS}))'))
    assert place.called_from is not None and place.called_from.called_from is not None
    assert [place.called_from.name, place.called_from.called_from.name] == ["step", "<module>"]


def test_only_inlined_calls_have_notes() -> None:
    assert not diagnostic.at("error", "no", location(f"callsite({PARTS})")).notes
    (note,) = diagnostic.at("error", "no", location(f"callsite({CALL} at {CALL})")).notes
    assert note.heading == "program.mlir:9:3: note: called from"
