# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that a module has the same output in every process, independently of the seed of Python's string hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def _results(hash_seed: str, programs: int) -> bytes:
    folder = str(Path(__file__).parents[1])
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    command = [sys.executable, "-m", "differential.print_results", str(programs)]
    return subprocess.run(command, env=environment, check=True, capture_output=True).stdout


def test_hashing_does_not_change_results() -> None:
    one, other = _results("1", 12), _results("2", 12)
    assert one.count(b"module {") > 100
    assert one == other
