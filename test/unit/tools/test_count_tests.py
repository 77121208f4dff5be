# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the last line that tools/run-tests prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[3] / "tools" / "count_tests.py"
FIRST = """<testsuites><testsuite>
  <testcase name="a"/>
  <testcase name="b"><skipped type="pytest.skip" message="Open MPI (install openmpi-bin)">b.py:1</skipped></testcase>
  <testcase name="c"><skipped type="pytest.skip" message="Slurm (install slurm-wlm)">c.py:1</skipped></testcase>
  <testcase name="d"><skipped type="pytest.skip" message="Open MPI (install openmpi-bin)">d.py:1</skipped></testcase>
</testsuite></testsuites>"""
SECOND = '<testsuite><testcase name="e"/><testcase name="f"><failure message="x"/></testcase></testsuite>'


def count(folder: Path, *texts: str) -> subprocess.CompletedProcess[str]:
    paths = [folder / f"{number}.xml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return subprocess.run([sys.executable, TOOL, *paths], capture_output=True, text=True)


def test_what_is_not_run_is_said_once(tmp_path: Path) -> None:
    ended = count(tmp_path, FIRST)
    assert ended.returncode == 0
    assert ended.stdout == (
        "1 passed, 0 failed, 3 skipped\nnot run: Open MPI (install openmpi-bin), Slurm (install slurm-wlm)\n"
    )


def test_failures_of_any_file_count(tmp_path: Path) -> None:
    ended = count(tmp_path, FIRST, SECOND)
    assert ended.returncode == 1
    assert ended.stdout.startswith("2 passed, 1 failed, 3 skipped\n")


def test_a_file_without_tests_is_an_error(tmp_path: Path) -> None:
    ended = count(tmp_path, FIRST, "<testsuite/>")
    assert ended.returncode == 1
    assert ended.stderr == f"error: {tmp_path / '1.xml'}: no test ran\n"
