# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over windows along sharded dimensions: a few programs of `python -m random_programs.windowed_programs`."""

from __future__ import annotations

import pytest
from runtime.local_program import needs_jax, needs_mpich

from random_programs import routes, windowed_programs
from random_programs.execution import RIGHT

SEED, PROGRAMS = 8, 5


@pytest.mark.parametrize(
    "target", [pytest.param(routes.SHARD, marks=needs_mpich), pytest.param(routes.STABLEHLO, marks=needs_jax)]
)
def test_on_devices(target: str) -> None:
    kinds, wrong = windowed_programs.run(target, SEED, PROGRAMS)
    assert kinds == {RIGHT: PROGRAMS}, "\n".join(wrong)
