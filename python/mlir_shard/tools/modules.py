# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that read the modules and passes given to a tool, with diagnostics on its console."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir_shard.tools.source import Console, Source


class Reported(Exception):
    """The error for invalid input whose diagnostics have been printed."""


def load_passes(files: Iterable[str], console: Console) -> None:
    """Registers the passes of the project, of installed plugins and of Python files; raises `Reported` for errors."""
    from mlir_shard.passes import plugins, registry

    try:
        registry.search("mlir_shard.transforms")
        for warning in plugins.load_installed():
            console.report(warning)
        for path in files:
            plugins.load_file(path)
    except plugins.PluginError as error:
        console.report(error.diagnostic)
        raise Reported from error


def read_module(path: str, context: Any, console: Console) -> Any:
    """Returns the module in a file, `-` for standard input; raises `Reported`, or UsageError if it cannot be read."""
    from mlir_shard.tools import source

    return parse_module(source.read(path), context, console)


def parse_module(read: Source, context: Any, console: Console) -> Any:
    """Returns the module of a source, which is added to the console; raises `Reported` if it is invalid."""
    from mlir_shard import asm
    from mlir_shard.dialects.parsing import parse
    from mlir_shard.passes import diagnostic

    def handle(one: Any) -> bool:
        console.report(diagnostic.from_host(one))
        return True

    console.add(read)
    try:
        with diagnostic.handled(context, handle):
            return parse(read.text, context, read.name)
    except asm.ParseError as error:
        for one in error.diagnostics:
            handle(one)
        raise Reported from error
