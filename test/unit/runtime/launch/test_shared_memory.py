# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of shared memory are removed if and only if they are unused."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlir_shard.runtime.launch import shared_memory


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Other runs also remove unused files.
    with tempfile.TemporaryDirectory(dir=shared_memory.FOLDER) as folder:
        path = Path(folder, Path(shared_memory.PREFIX).name)
        path.write_bytes(bytes(mmap.PAGESIZE))
        monkeypatch.setattr(shared_memory, "FOLDER", folder)
        monkeypatch.setattr(shared_memory, "PREFIX", str(path))
        yield path


def test_what_nobody_uses_is_removed(file: Path) -> None:
    shared_memory.remove_unused(file.stat().st_mtime)
    assert not file.exists()


def test_what_is_open_stays(file: Path) -> None:
    with file.open("rb"):
        shared_memory.remove_unused(file.stat().st_mtime)
    assert file.exists()


def test_what_is_mapped_stays(file: Path) -> None:
    with file.open("r+b") as opened:
        memory = mmap.mmap(opened.fileno(), mmap.PAGESIZE)
    assert shared_memory.mapped(os.getpid()) == shared_memory.mapped() == [str(file)]
    shared_memory.remove_unused(file.stat().st_mtime)
    assert file.exists()
    memory.close()
    assert str(file) not in shared_memory.mapped()
    shared_memory.remove_unused(file.stat().st_mtime)
    assert not file.exists()


def test_what_is_older_stays(file: Path) -> None:
    shared_memory.remove_unused(file.stat().st_mtime + 1)
    assert file.exists()


def test_a_process_that_has_ended_has_nothing_mapped() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert shared_memory.mapped(child) == []
