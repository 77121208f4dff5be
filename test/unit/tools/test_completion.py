# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the completion of the command lines of all commands in bash."""

from __future__ import annotations

import importlib
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hang_guard import SECONDS

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = dict(re.findall(r'^(shard-[\w-]+) = "([\w.]+):main"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
# The script ignores how bash splits words, because the user may configure the characters at which it splits.
COMPLETE = """
source "$1"
COMP_WORDBREAKS=$3 COMP_LINE=$2 COMP_POINT=${#2}
"$(complete -p "${2%% *}" | sed 's/.*-F \\([^ ]*\\) .*/\\1/')"
[[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\\n' "${COMPREPLY[@]}"
"""
WITH_EQUALS, WITHOUT_EQUALS = " \t\n\"'><=;|&(:", " \t\n"

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Complete:
    (tmp_path / "folder").mkdir()
    (tmp_path / "my program.mlir").touch()
    monkeypatch.chdir(tmp_path / "folder")
    (tmp_path / "folder" / "a.mlir").touch()
    (tmp_path / "folder" / "b c.mlir").touch()

    def completed(line: str, breaks: str = WITH_EQUALS) -> list[str]:
        command = line.split(" ")[0]
        script = tmp_path / command
        if not script.exists():
            try:
                status = importlib.import_module(COMMANDS[command]).main(["--print-completion=bash"])
            except SystemExit as ended:
                status = ended.code or 0
            assert status == 0
            script.write_text(capsys.readouterr().out)
        done = subprocess.run(
            ["bash", "--norc", "-c", COMPLETE, "bash", script, line, breaks],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    return completed


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command(complete: Complete, command: str) -> None:
    assert complete(f"{command} --vers") == ["--version"]
    assert complete(f"{command} --print-completion=b") == ["bash"]
    assert complete(f"{command} --no-such") == []


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("shard-opt --spmd-p", ["--spmd-pipeline"]),
        ("shard-opt a.mlir --stablehlo-legalize-to-v", ["--stablehlo-legalize-to-vhlo"]),
        ("shard-opt --spmdize=coll", ["collectives="]),
        ("shard-opt --spmdize=collectives=s", ["shard", "stablehlo"]),
        ("shard-opt --spmdize=verify-repetition=", ["true", "false"]),
        ("shard-opt --inline=max", ["max-iterations="]),
        ("shard-opt --verify-diagnostics=o", ["only-expected"]),
        ("shard-opt --help spmd", ["spmd-pipeline", "spmdize"]),
        ("shard-opt --help=spmd", ["spmd-pipeline", "spmdize"]),
        ("shard-opt --mlir-print-ir-after=cs", ["cse"]),
        ("shard-opt --spmdize ", ["a.mlir", "b c.mlir"]),
        ("shard-opt --load=a", ["a.mlir"]),
        ("shard-opt -o b", ["b c.mlir"]),
        ("shard-run --engine ", ["mpi", "pjrt"]),
        ("shard-run --engine=pj", ["pjrt"]),
        ("shard-run --ra", ["--ranks"]),
        ("shard-run --show b", ["b c.mlir"]),
        ("shard-reshard --objective b", ["bytes"]),
        ("shard-reshard --no-d", ["--no-direct-exchange"]),
    ],
)
def test_flags_and_values(complete: Complete, line: str, completed: list[str]) -> None:
    assert sorted(complete(line)) == sorted(completed)


def test_words_that_are_not_split_at_equals_signs(complete: Complete) -> None:
    line = "shard-opt --spmdize=collectives=s"
    expected = ["--spmdize=collectives=shard", "--spmdize=collectives=stablehlo"]
    assert complete(line, WITHOUT_EQUALS) == expected
    assert complete("shard-opt --spmdize=coll", WITHOUT_EQUALS) == ["--spmdize=collectives="]
