# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the format of diagnostics."""

from __future__ import annotations

import io
import os
from pathlib import Path

from mlir_shard.passes.diagnostic import Diagnostic, Position
from mlir_shard.tools.source import Console, Source


def shown(diagnostic: Diagnostic, text: bytes = b"first\n\tsecond %x\nthird \xc3\xa4\xc3\xb6 %y\n") -> str:
    stream = io.StringIO()
    console = Console(stream)
    console.add(Source("in.mlir", text))
    console.report(diagnostic)
    return stream.getvalue()


def test_position_and_notes() -> None:
    note = Diagnostic("note", "see here", Position("in.mlir", 1, 1))
    assert shown(Diagnostic("error", "wrong", Position("in.mlir", 2, 9), notes=(note,))) == (
        "in.mlir:2:9: error: wrong\n\tsecond %x\n\t       ^\nin.mlir:1:1: note: see here\nfirst\n^\n"
    )


def test_columns_count_bytes() -> None:
    assert shown(Diagnostic("warning", "odd", Position("in.mlir", 3, 12))) == (
        "in.mlir:3:12: warning: odd\nthird äö %y\n         ^\n"
    )


def test_without_a_line() -> None:
    assert shown(Diagnostic("error", "wrong", Position("in.mlir", 99, 1))) == "in.mlir:99:1: error: wrong\n"
    assert shown(Diagnostic("error", "wrong", Position("no such file", 1, 1))) == "no such file:1:1: error: wrong\n"
    assert shown(Diagnostic("error", "wrong")) == "<unknown>:0: error: wrong\n"
    assert shown(Diagnostic("remark", "so", place='"name"')) == '"name": remark: so\n'


def test_lines_of_python_code_are_read(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_bytes(b"raise X\r\n")
    position = Position(str(other), 1, 7, is_python=True)
    assert shown(Diagnostic("error", "X", position)) == f"{other}:1:7: error: X\nraise X\n      ^\n"


def test_other_files_are_not_read(tmp_path: Path) -> None:
    """A location may name any file, for example another user's file, or a pipe without a writer."""
    other = tmp_path / "other.txt"
    other.write_text("secret\n", encoding="utf-8")
    assert shown(Diagnostic("error", "X", Position(str(other), 1, 1))) == f"{other}:1:1: error: X\n"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert shown(Diagnostic("error", "X", Position(str(pipe), 1, 1))) == f"{pipe}:1:1: error: X\n"


def test_invalid_utf8_is_shown() -> None:
    assert (
        shown(Diagnostic("error", "bad", Position("in.mlir", 1, 3)), b"ab\xff\n")
        == "in.mlir:1:3: error: bad\nab\ufffd\n  ^\n"
    )
