# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of splitting an input."""

from __future__ import annotations

import pytest

from mlir_shard.tools.command_line import UsageError
from mlir_shard.tools.source import Source, read, split


def parts(text: str, marker: str = "// -----") -> list[str]:
    return [part.text.decode() for part in split(Source("in.mlir", text.encode()), marker)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a\n", ["a\n"]),
        ("", [""]),
        ("a\n// -----\nb\n", ["a\n", "\n\nb\n"]),
        ("a\n// -----\n// ----- with words\nc", ["a\n", "\n\n", "\n\n\nc"]),
        ("// -----\r\nb\n// -----", ["", "\nb\n", "\n\n"]),
        # Neither of these is a marker line.
        (
            "a // -----\n  // -----\n// -----// IR Dump\n// ------\n",
            ["a // -----\n  // -----\n// -----// IR Dump\n// ------\n"],
        ),
    ],
)
def test_split(text: str, found: list[str]) -> None:
    assert parts(text) == found


def test_lines_keep_their_numbers() -> None:
    text = "".join(f"line {n}\n" if n % 3 else "// -----\n" for n in range(1, 20))
    for part in parts(text):
        for number, line in enumerate(part.split("\n"), start=1):
            assert line in ("", f"line {number}")


def test_another_marker() -> None:
    assert parts("a\n// -----\n#(x)\nb", "#(x)") == ["a\n// -----\n", "\n\n\nb"]


@pytest.mark.parametrize(("path", "reason"), [("missing", "No such file or directory"), ("", "Is a directory")])
def test_unreadable(path: str, reason: str, tmp_path: object) -> None:
    full = f"{tmp_path}/{path}"
    with pytest.raises(UsageError) as refused:
        read(full)
    assert str(refused.value) == f"cannot open input file '{full}': {reason}"


def test_nul_in_a_path() -> None:
    with pytest.raises(UsageError, match="cannot open input file 'a\x00b': embedded null byte"):
        read("a\0b")
