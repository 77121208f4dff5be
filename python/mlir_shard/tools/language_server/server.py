# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Language Server Protocol over standard input and output."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from mlir_shard import __version__
from mlir_shard.passes.diagnostic import OPERATION_NOTE
from mlir_shard.tools.language_server.processes import Analyses, Ended

NAME = "shard-lsp"
# The number of seconds without a change after which a text is read.
_DELAY = 0.2
_LONGEST_TYPE = 100
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "remark": types.DiagnosticSeverity.Information,
}
_KINDS = {"builtin.module": types.SymbolKind.Module, "func.func": types.SymbolKind.Function}
_START = types.Range(types.Position(0, 0), types.Position(0, 0))


class _Places:
    """The places in a text, translated between its lines and bytes and the units of the client."""

    def __init__(self, text: str, encoding: types.PositionEncodingKind) -> None:
        self._lines, self._encoding = text.split("\n"), encoding

    def range_of(self, span: Mapping[str, int]) -> types.Range:
        """Returns the range of a `Span` as a dictionary."""
        return types.Range(self._position(span["line"], span["start"]), self._position(span["line"], span["end"]))

    def column(self, position: types.Position) -> int:
        """Returns the column of a position, in bytes."""
        line = self._lines[position.line] if position.line < len(self._lines) else ""
        if self._encoding is types.PositionEncodingKind.Utf8:
            return position.character
        if self._encoding is types.PositionEncodingKind.Utf32:
            return len(_bytes(line[: position.character]))
        return len(_bytes(line.encode("utf-16-le")[: 2 * position.character].decode("utf-16-le", "replace")))

    def _position(self, line: int, column: int) -> types.Position:
        before = _bytes(self._lines[line] if line < len(self._lines) else "")[:column].decode(errors="replace")
        if self._encoding is types.PositionEncodingKind.Utf8:
            return types.Position(line, column)
        if self._encoding is types.PositionEncodingKind.Utf32:
            return types.Position(line, len(before))
        return types.Position(line, len(before.encode("utf-16-le")) // 2)


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")


class Server(LanguageServer):
    """The server of one client.

    Args:
        files: Python files that register passes and rules.
    """

    def __init__(self, files: Sequence[str]) -> None:
        super().__init__(NAME, __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
        self._analyses = Analyses(files)

    def prepare(self) -> None:
        """Starts the process for the first text."""
        self._analyses.prepare()

    async def read(self, uri: str, delay: float = 0) -> None:
        """Reads the text of a document, and publishes its diagnostics."""
        document = self.workspace.get_text_document(uri)
        text, version = document.source, document.version
        self._analyses.open(uri, os.path.basename(document.path), text, delay)
        try:
            result = await self._analyses.result(uri)
        except Ended as ended:
            found = [self._diagnostic(str(ended), _START, types.DiagnosticSeverity.Error)]
        else:
            if result is None:
                return
            places = self._places(text)
            found = [self._found(one, places, uri) for one in result["diagnostics"]]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def close(self, uri: str) -> None:
        """Closes a document and removes its diagnostics."""
        self._analyses.close(uri)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def end(self) -> None:
        """Ends all processes."""
        self._analyses.close_all()

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """Returns the description of the word at a place."""
        places, found = await self._ask("hover", params)
        if found is None:
            return None
        contents = types.MarkupContent(types.MarkupKind.Markdown, found["markdown"])
        return types.Hover(contents, places.range_of(found["span"]))

    async def definition(self, params: types.DefinitionParams) -> types.Location | None:
        """Returns the location that defines the name at a place."""
        places, found = await self._ask("definition", params)
        return None if found is None else types.Location(params.text_document.uri, places.range_of(found))

    async def references(self, params: types.ReferenceParams) -> list[types.Location]:
        """Returns the locations of the name at a place."""
        places, found = await self._ask("references", params)
        ranges = [places.range_of(one) for one in found or ()]
        if not params.context.include_declaration:
            _, defined = await self._ask("definition", params)
            own = defined and places.range_of(defined)
            ranges = [one for one in ranges if one != own]
        return [types.Location(params.text_document.uri, one) for one in ranges]

    async def highlights(self, params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        """Returns the ranges of the name at a place, to be marked."""
        places, found = await self._ask("references", params)
        return [types.DocumentHighlight(places.range_of(one)) for one in found or ()]

    async def hints(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        """Returns the shardings of the values that are defined in a range."""
        uri = params.text_document.uri
        if not self._analyses.has(uri):
            return []
        places = self._places(self.workspace.get_text_document(uri).source)
        found = await self._analyses.ask(uri, "hints", params.range.start.line, params.range.end.line)
        return [
            types.InlayHint(
                places.range_of({"line": one["line"], "start": one["column"], "end": one["column"]}).start,
                one["text"],
                padding_left=True,
            )
            for one in found or ()
        ]

    async def symbols(self, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        """Returns the functions, meshes and modules of a document."""
        uri = params.text_document.uri
        if not self._analyses.has(uri):
            return []
        places = self._places(self.workspace.get_text_document(uri).source)
        try:
            result = await self._analyses.result(uri)
        except Ended:
            return []
        return [_symbol(one, places) for one in result["outline"]] if result else []

    async def _ask(self, method: str, params: Any) -> tuple[_Places, Any]:
        uri, position = params.text_document.uri, params.position
        if not self._analyses.has(uri):
            return self._places(""), None
        places = self._places(self.workspace.get_text_document(uri).source)
        return places, await self._analyses.ask(uri, method, position.line, places.column(position))

    def _places(self, text: str) -> _Places:
        encoding = types.PositionEncodingKind(self.workspace.position_encoding or types.PositionEncodingKind.Utf16)
        return _Places(text, encoding)

    def _found(self, one: Mapping[str, Any], places: _Places, uri: str) -> types.Diagnostic:
        message, related = one["message"], []
        for note in one["notes"]:
            if note["message"].startswith(OPERATION_NOTE):
                # The operation is visible at the place of the error.
                continue
            if note["span"] is None:
                message += f"\n{note['message']}"
                continue
            span = note["span"]
            start = types.Position(span["line"], span["start"])
            where = types.Range(start, start) if note["file"] else places.range_of(span)
            file = uris.from_fs_path(os.path.abspath(note["file"])) if note["file"] else uri
            related.append(types.DiagnosticRelatedInformation(types.Location(file or uri, where), note["message"]))
        return self._diagnostic(message, places.range_of(one["span"]), _SEVERITIES[one["severity"]], related)

    def _diagnostic(
        self,
        message: str,
        where: types.Range,
        severity: types.DiagnosticSeverity,
        related: Sequence[types.DiagnosticRelatedInformation] = (),
    ) -> types.Diagnostic:
        return types.Diagnostic(where, message, severity, source=NAME, related_information=list(related) or None)


def _symbol(entry: Mapping[str, Any], places: _Places) -> types.DocumentSymbol:
    kind = types.SymbolKind.Function if entry["type"] else _KINDS.get(entry["op"], types.SymbolKind.Variable)
    whole = types.Range(places.range_of(entry["first"]).start, places.range_of(entry["last"]).end)
    type_ = entry["type"] if len(entry["type"]) <= _LONGEST_TYPE else ""
    return types.DocumentSymbol(
        entry["name"],
        kind,
        whole,
        places.range_of(entry["word"]),
        detail=type_ or entry["op"],
        children=[_symbol(one, places) for one in entry["children"]],
    )


def make_server(files: Sequence[str]) -> Server:
    """Returns a server with its features; see `Server`."""
    server = Server(files)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        server.prepare()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await server.read(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        await server.read(params.text_document.uri, _DELAY)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        await server.read(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)

    for name, answer in (
        (types.TEXT_DOCUMENT_HOVER, server.hover),
        (types.TEXT_DOCUMENT_INLAY_HINT, server.hints),
        (types.TEXT_DOCUMENT_DEFINITION, server.definition),
        (types.TEXT_DOCUMENT_REFERENCES, server.references),
        (types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, server.highlights),
        (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, server.symbols),
    ):
        server.feature(name)(_feature(answer))
    return server


def _feature(answer: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
    # pygls sets attributes of the functions that it gets, which is not possible for methods.
    async def answered(params: Any) -> Any:
        return await answer(params)

    return answered


def serve(files: Iterable[str]) -> None:
    """Serves the client at standard input and output until it ends the session."""
    server = make_server(list(files))
    try:
        # pygls closes its streams, but the command flushes standard output when it ends.
        with open(os.dup(0), "rb") as given, open(os.dup(1), "wb") as answers:
            server.start_io(given, answers)
    finally:
        server.end()
