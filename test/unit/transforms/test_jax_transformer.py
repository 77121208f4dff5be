# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small transformer of JAX through the whole pipeline: right, and with no more bytes than XLA's partitioner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hang_guard import SECONDS

pytest.importorskip("jax", reason="programs come from it")

_BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "jax_transformer.py"
_SMALL = ("--layers", "1", "--sizes", "32", "8", "64", "8", "8")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--engines", "pjrt"), id="pjrt"),
        pytest.param(("--engines", "mpi", "--functions", "forward"), id="mpi"),
        pytest.param(("--only-bytes", "--meshes", "4x2", "8x1", "1x8"), id="other meshes"),
    ],
)
def test_is_right_and_receives_no_more_than_xla(options: tuple[str, ...]) -> None:
    command = [sys.executable, str(_BENCHMARK), *_SMALL, *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "a device receives" in ended.stdout
