# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long the parts of a run took on each rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Seconds that a rank took for each part, None for one that it has not done.

    load: to have its inputs and its place among the ranks; compile: to machine code; run: from when all ranks have
    compiled to the results.
    """

    load: float | None = None
    compile: float | None = None
    run: float | None = None

    @property
    def parts_done(self) -> int:
        """How many of the three parts are done."""
        return sum(one is not None for one in (self.load, self.compile, self.run))


# Called with the times of all ranks, now and then while they run and once when they have ended.
Observe = Callable[[Sequence[RankTimes]], None]
