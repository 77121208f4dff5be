# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The argument parser of all commands but shard-opt, and readers of the values of options."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mlir_shard import __version__
from mlir_shard.passes.options import did_you_mean
from mlir_shard.tools.command_line import SHELLS, UsageError

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class _PrintCompletion(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **given: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, default=argparse.SUPPRESS, **given)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from mlir_shard.tools import completion

        sys.stdout.write(completion.script(parser.prog, completion.of_parser(parser)))
        parser.exit()


class ArgumentParser(argparse.ArgumentParser):
    """A parser without abbreviations, with --version and --print-completion, that raises UsageError."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog, allow_abbrev=False)
        self.add_argument("--version", action="version", version=f"mlir-shard {__version__}")
        self.add_argument(
            "--print-completion",
            action=_PrintCompletion,
            choices=SHELLS,
            help="print a script that completes the command line in this shell, and exit",
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses arguments, for all methods that parse; raises UsageError with similar names for an unknown option."""
        # argparse reports missing arguments first, and takes the value of an unknown option for an argument.
        self._check_flags(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def _check_flags(self, argv: Sequence[str]) -> None:
        known = self._option_string_actions
        for argument in argv:
            if argument == "--":
                return
            flag = argument.partition("=")[0]
            if not flag.startswith("-") or flag in known or _NUMBER.fullmatch(argument) or argument == "-":
                continue
            if not flag.startswith("--") and flag[:2] in known:
                # The value follows a short option without a space.
                continue
            hint = did_you_mean(flag.lstrip("-"), [name.lstrip("-") for name in known if name[:2] == "--"], prefix="--")
            raise UsageError(f"unknown option '{flag}'{hint or '; --help lists the options'}")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse ignores errors of writing to a stream.
        print(message, end="", file=sys.stderr if file is None else file, flush=True)

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(message)


@dataclasses.dataclass(frozen=True)
class OneOf:
    """A reader that accepts one of `names`; the error for other text is the text, `complaint` and a hint."""

    names: Sequence[str]
    complaint: str

    def __call__(self, text: str) -> str:
        if text not in self.names:
            hint = did_you_mean(text, self.names) or f": expected {' or '.join(self.names)}"
            raise argparse.ArgumentTypeError(f"'{text}' {self.complaint}{hint}")
        return text


def number(complaint: str, least: int = 0, end: float = float("inf")) -> Callable[[str], int]:
    """Returns a reader of an integer in [`least`, `end`); the error for other text is the text and `complaint`."""

    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) < end:
            raise argparse.ArgumentTypeError(f"'{text}' {complaint}")
        return int(text)

    return read
