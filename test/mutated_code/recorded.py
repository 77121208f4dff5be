# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records the tests that execute each line of the project in pytest's own process, and their durations.

`record` runs tests with this module as a plugin of pytest. It needs coverage.py.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest

from mutated_code.areas import ROOT

_FOLDER = "MUTATED_CODE_RECORDING"
_LINES, _SECONDS = "lines", "seconds.json"
# A test with a fitting name or folder may come after many others, so the number of tests is limited.
_MOST_TESTS = 200
_MOST_LINES_BEFORE = 12

_recorder = pytest.StashKey["_Recorder"]()


def record(folder: Path, tests: Sequence[str]) -> int:
    """Runs tests and adds the lines that they execute to a folder; returns pytest's exit status.

    A function that caches its results is only executed by the first test that calls it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    environment = {
        **os.environ,
        _FOLDER: str(folder.resolve()),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT / "test"), os.environ.get("PYTHONPATH", "")]),
    }
    return subprocess.run([*command, "-p", __name__, *tests], cwd=ROOT, env=environment).returncode


class Recording:
    """The recording in a folder."""

    def __init__(self, folder: Path) -> None:
        self._data = coverage.CoverageData(str(folder / _LINES))
        self._data.read()
        self._seconds: dict[str, float] = json.loads((folder / _SECONDS).read_text(encoding="utf-8"))
        self._files = {test.partition("::")[0] for test in self._seconds}

    def without(self, test: str) -> list[str]:
        """Returns the files of tests in a folder, or the file itself, that have not been recorded."""
        path = ROOT / test
        files = sorted([*path.rglob("test_*.py"), *path.rglob("*.mlir")]) if path.is_dir() else [path]
        names = [str(file.relative_to(ROOT)) for file in files if "Inputs" not in file.parts]
        return [name for name in names if name not in self._files]

    def tests(self, path: Path, line: int) -> list[tuple[str, float]]:
        """Returns tests that execute a line and their seconds, the quickest first. The first cases of all functions
        precede the second case of any function."""
        timed = sorted((self._seconds[test], test) for test in self._known(path, line) if test in self._seconds)
        turns: dict[str, int] = {}
        ranked = []
        for seconds, test in timed:
            function = test.partition("[")[0]
            turns[function] = turns.get(function, -1) + 1
            ranked.append((turns[function], seconds, test))
        return [(test, seconds) for _, seconds, test in sorted(ranked)[:_MOST_TESTS]]

    def _known(self, path: Path, line: int) -> set[str]:
        """Returns the tests that execute a line; for a line outside of functions, which an import executes, all tests
        of the file.

        For a statement of several lines, only some lines may be recorded, so preceding lines are also searched.
        """
        by_line = self._data.contexts_by_lineno(str(ROOT / path))
        if not is_in_function(path, line):
            return set().union(*by_line.values())
        lines = range(line, max(0, line - _MOST_LINES_BEFORE), -1)
        return set(next((by_line[one] for one in lines if any(by_line.get(one, ()))), ()))


def is_in_function(path: Path, line: int) -> bool:
    """Returns True if a line is in the body of a function, and is not executed when the file is imported."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return any(one.body[0].lineno <= line <= (one.end_lineno or line) for one in functions)


@dataclass
class _Recorder:
    folder: Path
    coverage: coverage.Coverage
    seconds: dict[str, float]


def pytest_configure(config: pytest.Config) -> None:
    """Begins to record."""
    folder = Path(os.environ[_FOLDER])
    lines = coverage.Coverage(
        data_file=str(folder / _LINES), config_file=False, source=[str(ROOT / "python" / "mlir_shard")]
    )
    lines.load()
    lines.start()
    config.stash[_recorder] = _Recorder(folder, lines, {})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Records for this test."""
    item.config.stash[_recorder].coverage.switch_context(item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Records the duration of a test with its fixtures; a test that fails or is skipped catches nothing."""
    report = yield
    seconds = item.config.stash[_recorder].seconds
    seconds[item.nodeid] = seconds.get(item.nodeid, 0.0) + call.duration
    if report.outcome != "passed":
        seconds[item.nodeid] = float("inf")
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Adds the results to the stored ones."""
    recorder = session.config.stash[_recorder]
    recorder.coverage.stop()
    recorder.coverage.save()
    path = recorder.folder / _SECONDS
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found = {test: seconds for test, seconds in recorder.seconds.items() if seconds != float("inf")}
    path.write_text(json.dumps({**known, **found}), encoding="utf-8")
