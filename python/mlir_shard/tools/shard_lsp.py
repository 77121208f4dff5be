# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-lsp: a language server for .mlir files, which editors start."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

from mlir_shard.tools.argument_parser import ArgumentParser
from mlir_shard.tools.command_line import UsageError, exit_status

TOOL = "shard-lsp"
_DESCRIPTION = """\
Serves the Language Server Protocol on standard input and output: editors show errors of parsing, verification and
partitioning while a program is written, and the sharding of each value with its causes. docs/editors.md describes the
setup of editors."""


def _parser() -> ArgumentParser:
    parser = ArgumentParser(TOOL, _DESCRIPTION)
    add = parser.add_argument
    add("--load", metavar="FILE", action="append", default=[], help="run a Python file that registers rules")
    add(
        "--stdio",
        action="store_true",
        help="accepted for clients that pass it; the server always uses standard input and output",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs shard-lsp; returns its exit status: 0, 1 for any error, 130 if interrupted."""
    given = sys.argv[1:] if argv is None else argv
    return exit_status(TOOL, lambda: _drive(given))


def _drive(argv: Sequence[str]) -> int:
    files: list[str] = _parser().parse_args(argv).load
    if importlib.util.find_spec("pygls") is None:
        raise UsageError("pygls is not installed: `pip install 'mlir-shard[editor]'` installs it")
    from mlir_shard.tools.language_server.server import serve

    serve(files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
