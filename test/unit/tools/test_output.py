# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that an output is written entirely or not at all."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from mlir_shard.tools import output
from mlir_shard.tools.command_line import UsageError


def test_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mask = os.umask(0o027)
    try:
        output.check("new")
        output.write("new", "text\n")
    finally:
        os.umask(mask)
    assert (tmp_path / "new").read_text() == "text\n"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["new"]


def test_a_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_text("long old text")
    path.chmod(0o604)
    with open(path) as reader:
        output.write(str(path), "new")
        # A reader that has the old file open can still read it.
        assert reader.read() == "long old text"
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_link_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(target)
    output.write(str(link), "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    output.write(str(path), "text")
    reader.join()
    assert read == ["text"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_failure_leaves_the_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old"
    path.write_text("old")

    def refuse(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UsageError, match=r"cannot open output file '.*old': No space left on device"):
        output.write(str(path), "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["old"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [("missing/out", "No such file or directory"), ("file/out", "Not a directory"), ("", "Is a directory")],
)
def test_check(path: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=reason):
        output.check(f"{tmp_path}/{path}")


def test_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: os.fspath(path) != os.fspath(tmp_path))
    with pytest.raises(UsageError, match="Permission denied"):
        output.check(str(tmp_path / "new"))
