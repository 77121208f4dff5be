# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the code blocks of pages, all of them by default: from `test`, `python -m documents [PAGE...]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from documents.blocks import PageError, pages
from documents.execution import Failure, Page, enter


def run(path: Path, server: str | None) -> int:
    """Runs the blocks of a page and prints their output; returns the exit status."""
    with TemporaryDirectory() as folder:
        try:
            page = Page(path)
            enter(Path(folder), server)
            page.run()
        except (Failure, PageError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    print(page.printed, end="")
    return 0


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", nargs="*", type=Path, help="a file of Markdown; by default, all pages")
    parser.add_argument("--fork-server", metavar="ADDRESS", help="run the project's commands in forks of a server")
    arguments = parser.parse_args()
    chosen = [path.resolve() for path in arguments.page or pages()]
    if len(chosen) == 1:
        return run(chosen[0], arguments.fork_server)
    # Each page runs in a process of its own.
    failed = [path.name for path in chosen if subprocess.run([sys.executable, "-m", "documents", path]).returncode]
    print(f"{len(chosen) - len(failed)} of {len(chosen)} pages are right", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
