# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The argument parser of shard-run and shard-reshard, and readers of the values of options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from mlir_shard import __version__
from mlir_shard.passes.options import did_you_mean
from mlir_shard.tools.command_line import UsageError


class ArgumentParser(argparse.ArgumentParser):
    """One that takes no abbreviations, has --version, and raises UsageError."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog, allow_abbrev=False)
        self.add_argument("--version", action="version", version=f"mlir-shard {__version__}")

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(message)


def one_of(names: Sequence[str], complaint: str) -> Callable[[str], str]:
    """A reader of one of some names; `complaint` follows the text that is none of them."""

    def read(text: str) -> str:
        if text not in names:
            hint = did_you_mean(text, names) or f": they are {' and '.join(names)}"
            raise argparse.ArgumentTypeError(f"'{text}' {complaint}{hint}")
        return text

    return read


def number(complaint: str, least: int = 0, end: float = float("inf")) -> Callable[[str], int]:
    """A reader of an integer of at least `least` and less than `end`; `complaint` follows the text that is none."""

    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) < end:
            raise argparse.ArgumentTypeError(f"'{text}' {complaint}")
        return int(text)

    return read
