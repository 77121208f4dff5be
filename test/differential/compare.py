# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program through both sides, pass by pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from difflib import ndiff

from differential.sides import Here, Outcome, Shardy
from differential.stages import CHAINS, REMOVAL_OF_DEAD_CODE, WHOLE, Stage, pipeline


@dataclass(frozen=True, slots=True)
class Difference:
    """A pass, its input module, and the outcomes of both sides; `stage` is the number of its stage."""

    stage: int
    name: str
    before: str
    shardy: Outcome
    here: Outcome

    def lines(self) -> list[str]:
        """Returns the differing lines: Shardy's with a minus, those of this project with a plus."""
        if self.shardy.text is None or self.here.text is None:
            return [f"- {self.shardy.error or 'accepted'}", f"+ {self.here.error or 'accepted'}"]
        return [line for line in ndiff(self.shardy.lines, self.here.lines) if line[0] in "+-"]


@dataclass
class Tally:
    """The numbers of comparisons so far."""

    programs: int = 0
    invalid: int = 0
    passes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


class Comparison:
    """Both sides, and the numbers of their comparisons."""

    def __init__(self, shardy: Shardy, here: Here) -> None:
        self.shardy = shardy
        self.here = here
        self.tally = Tally()

    def difference(self, stage: int, name: str, before: str) -> tuple[Outcome, Difference | None]:
        """Returns Shardy's outcome of a pass, and its difference from this project's. A refusal is an outcome."""
        # The sides run at the same time, in different processes.
        shardy = self.shardy.begin(before, pipeline(name))
        ours = self.here.run(before, pipeline(name))
        theirs = shardy()
        if theirs.error.startswith("invalid"):
            return theirs, None
        self.tally.passes[name] += 1
        if theirs.text is None:
            self.tally.refused[name] += 1
        same = theirs.lines == ours.lines and (theirs.text is None) == (ours.text is None)
        return theirs, None if same else Difference(stage, name, before, theirs, ours)

    def program(self, text: str, *, functions_stay: bool) -> list[Difference]:
        """Returns all differences of a program: each pass runs on Shardy's output of the previous one."""
        self.tally.programs += 1
        found = []
        for number, stage in enumerate(CHAINS[functions_stay]):
            before = self._before(stage, text)
            for name in stage.passes:
                after, difference = self.difference(number, name, before)
                if after.error.startswith("invalid"):
                    self.tally.invalid += 1
                    return []
                found.append(difference)
            if stage.is_aside:
                continue
            if after.text is None:
                break
            text = after.text
        return [difference for difference in found if difference is not None]

    def whole(self, text: str, *, functions_stay: bool) -> tuple[Outcome, Difference | None]:
        """Returns Shardy's outcome of the whole pipeline on a program, and its difference from this project's."""
        number, stage = next(
            (number, stage) for number, stage in enumerate(CHAINS[functions_stay]) if stage.passes[0].startswith(WHOLE)
        )
        return self.difference(number, stage.passes[0], text)

    def same_place(self, text: str, place: Difference, *, functions_stay: bool) -> Difference | None:
        """Returns the difference of a program at the stage and pass of another difference, and runs nothing else."""
        stages = CHAINS[functions_stay]
        for stage in stages[: place.stage]:
            if not stage.is_aside:
                after = self.shardy.run(self._before(stage, text), pipeline(stage.passes[-1]))
                if after.text is None:
                    return None
                text = after.text
        return self.difference(place.stage, place.name, self._before(stages[place.stage], text))[1]

    def _before(self, stage: Stage, text: str) -> str:
        return self.shardy.run(text, pipeline(REMOVAL_OF_DEAD_CODE)).text or text if stage.live else text
