# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of all exhibits of the museum, and of the page about them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from runtime.local_program import needs_jax

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "museum.md"


def museum(*arguments: str) -> str:
    """Returns the output of the command in a new process, which sets virtual devices before importing JAX."""
    command = [sys.executable, "-m", "museum", *arguments]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_jax
def test_ours_are_right_and_the_page_says_so() -> None:
    """Every exhibit has a correct result on each target and engine, and a row in the page. Ignores jaxlib's results."""
    printed = [line for line in museum("--format", "markdown", "--ours").splitlines() if line.startswith("| [")]
    on_page = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| [")]
    assert len(printed) >= 25
    # The last column of the page is jaxlib's.
    assert printed == [f"{line.rpartition(' | ')[0]} |" for line in on_page]
