# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of signals that end a tool inside MLIR."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CRASH = Path(__file__).parents[2] / "tools/shard-opt/Inputs/crash.py"
# The verifier of StableHLO divides by the number of devices in a group.
DIVIDES_BY_ZERO = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_to_all"(%a) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,
    replica_groups = dense<> : tensor<0x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def run(tool: str, *arguments: str | Path, interpreter: tuple[str, ...] = ()) -> tuple[int, str]:
    command = [sys.executable, *interpreter, "-m", f"mlir_shard.tools.{tool}", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n")
    return path


@pytest.mark.parametrize("number", ["SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT"])
def test_a_signal_in_a_pass(program: Path, number: str) -> None:
    status, said = run("shard_opt", program, "--load", CRASH, f"--crash=number={number}")
    assert status == 1
    assert said.startswith(f"{program}:1:1: error: MLIR was ended by {number} (")
    assert said.endswith(") in pass 'crash' on this 'func.func'\n")


@pytest.mark.parametrize(("tool", "failure"), [("shard_opt", 1), ("shard_explain", 1), ("shard_run", 1)])
def test_a_signal_in_the_parser(tmp_path: Path, tool: str, failure: int) -> None:
    path = tmp_path / "groups.mlir"
    path.write_text(DIVIDES_BY_ZERO)
    status, said = run(tool, path)
    assert status == failure
    assert said.startswith(f"{path}:")
    assert "error: " in said
    assert "raceback" not in said


def test_a_signal_in_a_pipeline_of_shard_run(program: Path) -> None:
    status, said = run("shard_run", program, "--load", CRASH, "--pipeline", "func.func(crash);cse")
    assert status == 1
    assert said == (
        f"{program}:1:1: error: MLIR was ended by SIGSEGV (segmentation fault) in pass 'crash' on this 'func.func'\n"
    )


def test_faulthandler_shows_more(program: Path) -> None:
    status, said = run("shard_opt", program, "--load", CRASH, "--crash", interpreter=("-X", "faulthandler"))
    assert status < 0
    assert "Current thread" in said
