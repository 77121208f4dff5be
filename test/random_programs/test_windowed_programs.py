# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of ops over windows along sharded dimensions, in a few programs of `random_programs.windowed_programs`."""

from __future__ import annotations

import pytest
from runtime.local_program import needs_jax, needs_mpich

from random_programs import routes, windowed_programs
from random_programs.execution import RIGHT
from random_programs.routes import Setting

SEED, PROGRAMS = 8, 5


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(Setting((routes.SHARD,), routes.RANKS), marks=needs_mpich, id="shard"),
        pytest.param(Setting((routes.STABLEHLO,), routes.PJRT), marks=needs_jax, id="stablehlo"),
    ],
)
def test_on_devices(setting: Setting) -> None:
    kinds, wrong = windowed_programs.run(setting, SEED, PROGRAMS)
    assert kinds == {RIGHT: PROGRAMS}, "\n".join(wrong)
