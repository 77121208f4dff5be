# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that runs inputs, and is replaced if it crashes or hangs."""

from __future__ import annotations

import functools
import importlib
import resource
from collections.abc import Callable, Sequence

from mortal_process import Begin, Ended, MortalProcess

from fuzzed_programs.outcome import HANG, HOST_SIGNAL, SIGNAL, Outcome, Runner
from fuzzed_programs.pipelines import own_passes
from mlir_shard import _native

_Request = tuple[bytes, str]
_MOST_BYTES = 8 << 30
_CRASHED = 70


class Worker(MortalProcess[_Request, Outcome]):
    """Runs inputs, one after the other, each within `timeout` seconds. Use as a context manager.

    modules: the names of Python modules with more passes.
    """

    def __init__(self, timeout: float, modules: Sequence[str] = ()) -> None:
        super().__init__(functools.partial(_runner, tuple(modules)), timeout)

    def run(self, text: bytes, pipeline: str) -> Outcome:
        """Returns the outcome of an input."""
        answer = self.answer((text, pipeline))
        if isinstance(answer, Outcome):
            return answer
        if answer.status is None:
            return Outcome(HANG, answer.stage, f"no result after {self.timeout:g} s")
        return _crash(answer)


def _crash(ended: Ended) -> Outcome:
    reports = [line for line in ended.said if ": error: MLIR was ended by " in line]
    if ended.status != _CRASHED or not reports:
        return Outcome(SIGNAL, ended.stage, f"the process ended with status {ended.status}: {list(ended.said[-1:])}")
    return Outcome(HOST_SIGNAL if _is_of_host(reports[-1]) else SIGNAL, ended.stage, reports[-1])


def _is_of_host(report: str) -> bool:
    """Returns True if the report of a crash names upstream's parser or an upstream pass."""
    if "while it parsed this" in report or "while it verified this" in report:
        return True
    return "in pass '" in report and report.partition("in pass '")[2].partition("'")[0] not in own_passes()


def _runner(modules: Sequence[str]) -> Callable[[_Request, Begin], Outcome]:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    _native.report_crashes("fuzzed_programs", _CRASHED)
    for name in modules:
        importlib.import_module(name)
    runner = Runner()
    return lambda request, begin: runner.run(*request, begin)
