# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that runs programs, and is replaced if it crashes or hangs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from mortal_process import Begin, MortalProcess

from random_programs.execution import CRASH, HANG, INVALID, WITHOUT_SHARDING, Outcome, outcome
from random_programs.routes import Setting

_Request = tuple[str, int]
_LINES_SHOWN = 12


class Worker(MortalProcess[_Request, Outcome]):
    """Runs programs, one after the other, each within `timeout` seconds. Use as a context manager."""

    def __init__(self, setting: Setting, timeout: float) -> None:
        super().__init__(functools.partial(_runner, setting), timeout)

    def run(self, text: str, seed: int) -> Outcome:
        """Returns the outcome of a program."""
        answer = self.answer((text, seed))
        if isinstance(answer, Outcome):
            is_crash = answer.kind == CRASH
            return replace(answer, detail=answer.detail + _shown(self.said())) if is_crash else answer
        if answer.status is None:
            return Outcome(HANG, answer.stage, f"no result after {self.timeout:g} s")
        kind = INVALID if answer.stage in WITHOUT_SHARDING else CRASH
        return Outcome(kind, answer.stage, f"the process ended with status {answer.status}{_shown(answer.said)}")


def _shown(lines: Sequence[str]) -> str:
    """Returns the last lines that the process has written."""
    return "".join(f"\n  {line}" for line in lines[-_LINES_SHOWN:])


def _runner(setting: Setting) -> Callable[[_Request, Begin], Outcome]:
    routes = setting.routes()
    return lambda request, begin: outcome(request[0], routes, request[1], begin)
