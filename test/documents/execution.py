# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes the blocks of a page, in this process and the current directory."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path

from fork_server import command

from documents.blocks import ROOT, Block, Mark, blocks
from documents.output import missing_line

COMMANDS = {
    "shard-check": "shard_check",
    "shard-diff": "shard_diff",
    "shard-explain": "shard_explain",
    "shard-lsp": "shard_lsp",
    "shard-opt": "shard_opt",
    "shard-reshard": "shard_reshard",
    "shard-run": "shard_run",
}
_IN_REPOSITORY = re.compile(r"(?<![\w./-])(?:benchmarks|docs|test|tools|\.ci)/[\w./-]*\w|(?<=cd test && python -m )\w+")


class Failure(Exception):
    """A block does not behave as stated on the page."""


class Page:
    """A page whose blocks are executed one after the other.

    Attributes:
        printed: The output of all blocks.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.printed = ""
        self._blocks = blocks(path)
        self._last = ""
        # Names have the module of a script, which classes use to resolve their annotations.
        self._main = types.ModuleType("__main__")
        source = path.read_text(encoding="utf-8")
        linecache.cache[self.name] = (len(source), None, source.splitlines(keepends=True), self.name)

    def run(self) -> None:
        """Executes the blocks.

        Raises:
            Failure: A block fails or prints something else.
        """
        sys.modules["__main__"] = self._main
        for block in self._blocks:
            try:
                self._check(block)
            except Failure as failure:
                raise Failure(f"{self.name}:{block.line}: {failure}") from None

    def _check(self, block: Block) -> None:
        if block.mark is Mark.FILE:
            Path(block.detail).write_text(block.text, encoding="utf-8")
        elif block.mark is Mark.OUTPUT:
            _compare(block.text, self._last, whole=False)
        elif block.mark is Mark.NOT_RUN:
            _look_for_files(f"{block.text}\n{block.detail}")
        elif block.language == "python":
            self._print(self._execute(block))
        elif block.language == "mlir":
            _parse("\n" * block.line + block.text, self.name)
        elif block.language == "sh":
            self._print(_shell(block.text, block.mark is Mark.FAILS))
        else:
            for command, expected in _session(block.text):
                self._print(_shell(command, block.mark is Mark.FAILS))
                _compare(expected, self._last, whole=True)

    def _print(self, text: str) -> None:
        self._last = text
        self.printed += text

    def _execute(self, block: Block) -> str:
        printed = io.StringIO()
        # Lines are numbered as in the page.
        code = compile("\n" * block.line + block.text, self.name, "exec", dont_inherit=True)
        try:
            with contextlib.redirect_stdout(printed):
                exec(code, self._main.__dict__)
        except Exception as error:
            # The traceback omits the frame of this method.
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise Failure("".join(traceback.format_exception(error))) from None
        return printed.getvalue()


def _parse(text: str, name: str) -> None:
    import mlir_shard

    try:
        mlir_shard.parse(text, None, name)
    except mlir_shard.ParseError as error:
        raise Failure(str(error)) from None


def _shell(commands: str, fails: bool) -> str:
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if (ended.returncode != 0) != fails:
        raise Failure(f"exit status {ended.returncode}:\n{ended.stdout}")
    return ended.stdout


def _session(text: str) -> Iterator[tuple[str, str]]:
    """Yields the commands in a text of a terminal, each with its output."""
    first, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    if first.strip() or not parts:
        raise Failure("a block of the language console begins with `$`")
    for part in parts:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            continued, _, output = output.partition("\n")
            command = f"{command}\n{continued}"
        yield command, output


def _compare(expected: str, actual: str, *, whole: bool) -> None:
    missing = missing_line(expected, actual, whole=whole)
    if missing is not None:
        raise Failure(f"the output has not:\n{missing}\nbut is:\n{actual}")


def _look_for_files(text: str) -> None:
    for name in _IN_REPOSITORY.findall(text):
        if not (ROOT / name).exists() and not (ROOT / "test" / name).exists():
            raise Failure(f"{name} does not exist")


def enter(folder: Path, server: str | None) -> None:
    """Enters an empty folder, with links to the repository's folders and with the commands of the project.

    server: the address of a fork server that runs the commands; without one they are processes of their own.
    """
    for name in ("docs", "benchmarks", "test", "tools"):
        (folder / name).symlink_to(ROOT / name)
    binaries = folder / ".bin"
    binaries.mkdir()
    python = [sys.executable]
    modules = {name: f"mlir_shard.tools.{module}" for name, module in COMMANDS.items()}
    started = {name: [*python, "-m", one] if server is None else command(server, one) for name, one in modules.items()}
    for name, words in (started | {"python": python, "python3": python}).items():
        launcher = binaries / name
        launcher.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        launcher.chmod(0o755)
    os.environ.update(PATH=f"{binaries}{os.pathsep}{os.environ['PATH']}", JAX_PLATFORMS="cpu", COLUMNS="120")
    os.chdir(folder)
    # Scripts can import the modules in their folder.
    sys.path.insert(0, "")
