# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that holds a document: `python -m mlir_shard.tools.language_server.analysis [FILE.py...]`.

It registers the passes and rules of plugins and files, and answers requests, each a line of JSON with a method and its
arguments, by a line of JSON with the result. The first request is `open`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import IO, Any

from mlir_shard.passes import plugins, registry
from mlir_shard.passes.diagnostic import of_exception
from mlir_shard.tools.language_server.document import Document, Found
from mlir_shard.tools.language_server.words import Span


class Analysis:
    """The document, and the errors of loading passes before it."""

    def __init__(self, files: Sequence[str]) -> None:
        self._document: Document | None = None
        self._problems: list[str] = []
        try:
            registry.search("mlir_shard.transforms")
            self._problems += map(str, plugins.load_installed())
            for path in files:
                plugins.load_file(path)
        except plugins.PluginError as error:
            self._problems.append(str(error.diagnostic))

    def open(self, name: str, text: str) -> Any:
        """Reads a text; returns its diagnostics and outline."""
        problems = [asdict(Found("error", one, Span(0, 0, 0), ())) for one in self._problems]
        self._document = document = Document(name, text)
        diagnostics = [asdict(one) for one in document.diagnostics()]
        return {"diagnostics": problems + diagnostics, "outline": [asdict(one) for one in document.outline()]}

    def hover(self, line: int, column: int) -> Any:
        """Returns the description of the word at a place."""
        found = self._document and self._document.hover(line, column)
        return found and asdict(found)

    def definition(self, line: int, column: int) -> Any:
        """Returns the span that defines the name at a place."""
        found = self._document and self._document.definition(line, column)
        return found and asdict(found)

    def hints(self, first: int, last: int) -> Any:
        """Returns the shardings of the values that are defined in lines."""
        return [asdict(one) for one in self._document.hints(first, last)] if self._document else []

    def references(self, line: int, column: int) -> Any:
        """Returns the spans of the name at a place."""
        return [asdict(one) for one in self._document.references(line, column)] if self._document else []


def answer(methods: Mapping[str, Callable[..., Any]], line: str) -> dict[str, Any]:
    """Returns the answer to a request: its `result`, or an `error` if it has failed."""
    request = json.loads(line)
    try:
        return {"result": methods[request["method"]](*request["arguments"])}
    except Exception as error:
        found = of_exception(error, "internal error:", None)
        where = f" at {found.position.file}:{found.position.line}" if found.position else ""
        return {"error": f"{found.message}{where}"}


def _serve(requests: IO[str], answers: IO[str], files: Sequence[str]) -> None:
    analysis = Analysis(files)
    answers_to = analysis.open, analysis.hover, analysis.hints, analysis.definition, analysis.references
    methods = {one.__name__: one for one in answers_to}
    for line in requests:
        print(json.dumps(answer(methods, line)), file=answers, flush=True)


def main() -> None:
    """Answers the requests on standard input until its end."""
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError), open(os.dup(1), "w") as answers:
        # The output of passes to standard output must not be among the answers.
        os.dup2(2, 1)
        _serve(sys.stdin, answers, sys.argv[1:])


if __name__ == "__main__":
    main()
