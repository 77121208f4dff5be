# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of tools whose standard streams are closed or full."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
"""
FULL = "cannot write to standard output: No space left on device"
CLOSED = "cannot write to standard output: Bad file descriptor"
TOOLS = {
    "shard_opt": [["program.mlir"], ["--help"], ["--version"], ["--show-dialects"]],
    "shard_explain": [["program.mlir"], ["--help"]],
    "shard_diff": [["program.mlir", "program.mlir"], ["--version"]],
    "shard_reshard": [["--mesh", "x=2", "--shape", "8xf32", '[{"x"}]', "[{}]"], ["--print-completion", "bash"]],
    "shard_run": [["--engine=pjrt", "program.mlir"], ["--help"]],
}
CASES = [(tool, arguments) for tool, several in TOOLS.items() for arguments in several]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    return tmp_path


def run(folder: Path, redirected: str, tool: str, *arguments: str) -> tuple[int, str]:
    """Returns the exit status and the standard error of a tool with a standard stream redirected."""
    start = ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", f"mlir_shard.tools.{tool}"]
    ended = subprocess.run([*start, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(("redirected", "reason"), [(">/dev/full", FULL), (">&-", CLOSED)])
@pytest.mark.parametrize(("tool", "arguments"), CASES)
def test_output_that_cannot_be_written(
    folder: Path, tool: str, arguments: list[str], redirected: str, reason: str
) -> None:
    status, said = run(folder, redirected, tool, *arguments)
    assert status == (2 if tool == "shard_diff" else 1)
    assert said.splitlines()[-1] == f"{tool.replace('_', '-')}: error: {reason}"
    assert "raceback" not in said
    assert "internal" not in said


def test_nothing_is_written_to_a_closed_output_that_is_not_used(folder: Path) -> None:
    assert run(folder, ">&- <&-", "shard_opt", "program.mlir", "-o", "out.mlir") == (0, "")
    assert "func.func @main" in (folder / "out.mlir").read_text()


@pytest.mark.parametrize("tool", ["shard_opt", "shard_explain", "shard_run"])
def test_closed_input(folder: Path, tool: str) -> None:
    status, said = run(folder, "<&-", tool, "-")
    assert status == 1
    assert said == f"{tool.replace('_', '-')}: error: cannot read standard input: Bad file descriptor\n"


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full"])
def test_errors_that_cannot_be_shown(folder: Path, redirected: str) -> None:
    (folder / "wrong.mlir").write_text("func.func @f(")
    assert run(folder, redirected, "shard_opt", "wrong.mlir") == (1, "")
    assert run(folder, redirected, "shard_opt", "--no-such-pass") == (1, "")
