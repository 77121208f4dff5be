# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-check: proves by a certificate and lemmas that a local program computes the results of the global program."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlir_shard.tools.argument_parser import ArgumentParser
from mlir_shard.tools.command_line import UsageError, complain, exit_status

if TYPE_CHECKING:
    from mlir_shard.tools.source import Console

TOOL = "shard-check"

_DESCRIPTION = """\
Proves that a local program is equivalent to a global program for all arguments: if its arguments are shards of the
global arguments, in the layouts of a certificate, then so are its results. The programs are not run. The exit status
is 0 if the program is proved, and 1 if it is not or an error occurs; a program that is not proved may be correct."""
_EPILOGUE = """\
shard-opt --spmd-pipeline='certificate=FILE' writes a certificate. docs/certificates.md lists the lemmas."""


@dataclasses.dataclass(frozen=True, slots=True)
class CheckArguments:
    """The arguments of the command line; `-` is standard input."""

    whole: str
    local: str
    certificate: str


def parse(argv: Sequence[str]) -> CheckArguments:
    """Parses a command line; raises UsageError if it is invalid. Prints and exits for --help and --version."""
    arguments = CheckArguments(**vars(_parser().parse_args(argv)))
    if arguments.whole == arguments.local == "-":
        raise UsageError("standard input holds a single program: specify a file for the other one")
    return arguments


def _parser() -> ArgumentParser:
    parser = ArgumentParser(TOOL, _DESCRIPTION, _EPILOGUE)
    parser.add_argument("whole", metavar="GLOBAL", help="the global program, with or without annotations")
    parser.add_argument("local", metavar="LOCAL", help="the local program, with its collectives")
    parser.add_argument("certificate", metavar="CERTIFICATE", help="the certificate of the local program, in JSON")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs shard-check; returns its exit status: 0 if the program is proved, 1 otherwise, 130 if interrupted."""
    given = sys.argv[1:] if argv is None else argv
    return exit_status(TOOL, lambda: _drive(parse(given)))


def _drive(arguments: CheckArguments) -> int:
    from mlir_shard.check.checker import Certificate, CertificateError, check
    from mlir_shard.dialects.contexts import create_context
    from mlir_shard.tools import modules
    from mlir_shard.tools.certified import diagnostics, summary
    from mlir_shard.tools.source import Console

    console = Console(sys.stderr)
    try:
        certificate = Certificate.read(_text(arguments.certificate))
        context = create_context()
        whole, local = (_module(path, context, console) for path in (arguments.whole, arguments.local))
        verdict = check(whole, local, certificate)
    except modules.Reported:
        return 1
    except CertificateError as error:
        return complain(TOOL, f"{arguments.certificate}: {error}")
    for one in diagnostics(verdict):
        console.report(one)
    print(summary(verdict), flush=True)
    return 0 if verdict.is_proved else 1


def _text(path: str) -> str:
    from mlir_shard.tools import source

    text = source.read(path).text
    return text if isinstance(text, str) else text.decode(errors="replace")


def _module(path: str, context: Any, console: Console) -> Any:
    from mlir_shard.tools import modules

    return modules.read_module(path, context, console)


if __name__ == "__main__":
    sys.exit(main())
