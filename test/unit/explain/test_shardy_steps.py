# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares chains with those that Shardy records; `python -m explained_programs --shardy` compares more."""

from __future__ import annotations

from differential.sides import Shardy
from explained_programs.shardy_steps import OF_FUNCTION, Agreement, agreement
from random_programs.generate import Scale, program


def test_chains_are_made_of_the_steps_that_shardy_records() -> None:
    found = Agreement()
    with Shardy() as shardy:
        # In program 139 a loop swaps values; in program 13 an annotation has a part of an axis that grows.
        for number in (*range(10, 16), 139):
            found += agreement(program(f"5/{number}", scale=Scale.of(1, 4)).write(), shardy)
    assert not found.lines
    assert found.programs == 7 and found.axes > 100
    assert found.same_steps + found.other_steps[OF_FUNCTION] == found.axes
    assert found.same_origins > found.other_origins.total() > 0
