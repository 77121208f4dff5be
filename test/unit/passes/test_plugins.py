# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of loading a user's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlir_shard.passes import plugins, registry
from mlir_shard.passes.diagnostic import Position
from mlir_shard.passes.plugins import PluginError


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_load(tmp_path: Path) -> None:
    write(tmp_path / "beside_the_plugin.py", "NAME = 'loaded-pass'\n")
    path = write(
        tmp_path / "plugin.py",
        "from __future__ import annotations\n"
        "from beside_the_plugin import NAME\n"
        "from mlir_shard import Pass, option, register\n"
        "class Kind(str): pass\n"
        "@register\nclass Loaded(Pass):\n    name = NAME\n"
        "    count: int | None = option(None, 'a count')\n"
        "    def run(self, op): pass\n",
    )
    plugins.load_file(path)
    plugins.load_file(path)
    loaded = registry.find_pass("loaded-pass")
    assert loaded is not None
    assert [one.type for one in loaded.options()] == [int | None]


def test_syntax_error(tmp_path: Path) -> None:
    path = write(tmp_path / "wrong.py", "x = 1\ny = (\n")
    with pytest.raises(PluginError) as failed:
        plugins.load_file(path)
    assert failed.value.diagnostic.message == f"cannot load '{path}': '(' was never closed"
    assert failed.value.diagnostic.position == Position(path, 2, 5)


@pytest.mark.parametrize("statement", ["raise ValueError('oh')", "import sys; sys.exit('oh')"])
def test_exception(statement: str, tmp_path: Path) -> None:
    path = write(tmp_path / "raises.py", f"def f():\n    {statement}\nf()\n")
    for _ in range(2):
        with pytest.raises(PluginError) as failed:
            plugins.load_file(path)
        assert failed.value.diagnostic.message.endswith(": oh")
        assert failed.value.diagnostic.position is not None
        assert failed.value.diagnostic.position.line == 2


@pytest.mark.parametrize(("name", "reason"), [("missing.py", "no such file"), ("", "it is a directory")])
def test_no_file(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=reason):
        plugins.load_file(str(tmp_path / name))


def test_no_python(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="it is not a Python file"):
        plugins.load_file(write(tmp_path / "passes.txt", ""))
