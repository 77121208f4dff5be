# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests a few models of the zoo: bytes against XLA's, results, and predicted memory. `python -m model_zoo` runs all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def zoo(*arguments: str) -> None:
    """Runs the table in a process of its own, because virtual devices must be set before JAX is imported."""
    command = [sys.executable, "-m", "model_zoo", *arguments]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_predicted_memory_is_what_compiled_programs_need() -> None:
    zoo("--memory", "histogram", "monte_carlo", "k_means", "kernel_gradient")


def test_bytes_are_not_more_than_those_of_xla_and_results_are_right() -> None:
    zoo("histogram", "torch_sharded_table_tosa")
