# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of shard-lsp as an editor uses it: a process that communicates over its standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hang_guard import SECONDS, wait_until
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from mlir_shard.tools import shard_lsp

LAYER = """\
sdy.mesh @mesh = <["data"=4, "model"=2]>

func.func @layer(
    %x: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}, {?}]>},
    %w: tensor<64x32xf32>) -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {"model"}]> : tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
}
"""
REFUSED = """\
sdy.mesh @mesh = <["x"=2]>

func.func @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @print(%arg0) {has_side_effect = true} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
# Editors encode a space of a path in this way.
URI = "file:///my%20programs/layer.mlir"
UTF16, UTF8 = types.PositionEncodingKind.Utf16, types.PositionEncodingKind.Utf8


class Editor:
    """A client of a server."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self._version = 1

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)

    async def open(self, text: str, uri: str = URI) -> list[types.Diagnostic]:
        """Opens a text and returns its diagnostics."""
        document = types.TextDocumentItem(uri, "mlir", self._version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return await self.diagnostics()

    def replace(self, start: tuple[int, int], end: tuple[int, int], text: str) -> int:
        """Replaces a part of the document and returns the new version."""
        self._version += 1
        document = types.VersionedTextDocumentIdentifier(self._version, URI)
        change = types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return self._version

    async def diagnostics(self, version: int | None = None) -> list[types.Diagnostic]:
        """Returns the next diagnostics, of `version` if it is given. Diagnostics of older versions may precede them."""
        while True:
            params = await self.published.get()
            if version is None or params.version == version:
                return list(params.diagnostics)

    async def hover(self, line: int, character: int, uri: str = URI) -> str:
        """Returns the text of a hover, which is empty if the server has none."""
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        found = await self.client.text_document_hover_async(params)
        return found.contents.value if found else ""

    async def definition(self, line: int, character: int) -> tuple[int, int] | None:
        """Returns the line and character of a definition."""
        params = types.DefinitionParams(types.TextDocumentIdentifier(URI), types.Position(line, character))
        found = await self.client.text_document_definition_async(params)
        return found and (found.range.start.line, found.range.start.character)

    async def references(self, line: int, character: int, declaration: bool = True) -> list[tuple[int, int]]:
        """Returns the lines and characters of references."""
        context = types.ReferenceContext(declaration)
        document, position = types.TextDocumentIdentifier(URI), types.Position(line, character)
        found = await self.client.text_document_references_async(types.ReferenceParams(context, document, position))
        return [(one.range.start.line, one.range.start.character) for one in found or ()]

    async def hints(self, first: int, last: int) -> list[tuple[int, int, Any]]:
        """Returns the lines, characters and texts of the hints in a range of lines."""
        where = types.Range(types.Position(first, 0), types.Position(last, 0))
        params = types.InlayHintParams(types.TextDocumentIdentifier(URI), where)
        found = await self.client.text_document_inlay_hint_async(params)
        return [(one.position.line, one.position.character, one.label) for one in found or ()]

    async def symbols(self) -> Any:
        """Returns the outline."""
        params = types.DocumentSymbolParams(types.TextDocumentIdentifier(URI))
        return await self.client.text_document_document_symbol_async(params)


@contextlib.asynccontextmanager
async def editing(*arguments: str, encodings: list[types.PositionEncodingKind] | None = None) -> AsyncIterator[Editor]:
    """Provides an editor with a server. Requires that the server ends by itself."""
    client = LanguageClient("test", "1")
    editor = Editor(client)
    await client.start_io(sys.executable, "-m", "mlir_shard.tools.shard_lsp", *arguments)
    general = types.GeneralClientCapabilities(position_encodings=encodings)
    capabilities = types.ClientCapabilities(general=general)
    await client.initialize_async(types.InitializeParams(capabilities))
    client.initialized(types.InitializedParams())
    try:
        yield editor
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
        assert client._server is not None
        assert client._server.returncode == 0
    finally:
        if client._server is not None and client._server.returncode is None:
            client._server.kill()


def run(script: Coroutine[Any, Any, None]) -> None:
    """Runs the actions of an editor."""
    asyncio.run(asyncio.wait_for(script, SECONDS))


def lines(markdown: str) -> list[str]:
    return [line for line in markdown.splitlines() if not line.startswith("```")]


def test_valid_program() -> None:
    async def script() -> None:
        async with editing("--stdio") as editor:
            assert await editor.open(LAYER) == []
            chain = [
                "%w: tensor<64x32xf32>",
                'sharded as <@mesh, [{}, {"model"}]>',
                'dimension 1 on "model":',
                '  from constraint at layer.mlir:8:8: <@mesh, [{?}, {"model"}]>',
                "  → stablehlo.dot_general at 6:8, factor j: result 0 %0 to operand 1 %w",
            ]
            assert lines(await editor.hover(4, 5)) == chain
            assert lines(await editor.hover(5, 34)) == chain
            assert lines(await editor.hover(5, 10))[:2] == [
                "%0: tensor<16x32xf32>",
                'sharded as <@mesh, [{"data"}, {"model"}]>',
            ]
            assert lines(await editor.hover(7, 36)) == ['sdy.mesh @mesh = <["data"=4, "model"=2]>']
            assert await editor.hover(1, 0) == ""

            assert await editor.hints(4, 5) == [
                (4, 6, '[{}, {"model"}]'),
                (5, 4, '[{"data"}, {"model"}]'),
            ]
            assert await editor.hints(8, 9) == []

            assert await editor.definition(5, 34) == (4, 4)
            assert await editor.definition(7, 36) == (0, 9)
            assert await editor.definition(5, 10) is None
            assert await editor.references(7, 32) == [(5, 2), (7, 31)]
            assert await editor.references(7, 32, declaration=False) == [(7, 31)]
            assert await editor.references(0, 12) == [(0, 9), (3, 56), (7, 35)]

            mesh, function = await editor.symbols()
            assert (mesh.name, mesh.kind, mesh.detail) == ("@mesh", types.SymbolKind.Variable, "sdy.mesh")
            assert (function.name, function.kind) == ("@layer", types.SymbolKind.Function)
            assert (function.range.start.line, function.range.end.line) == (2, 9)
            assert (function.selection_range.start.line, function.selection_range.start.character) == (2, 10)

    run(script())


ERRORS = [
    ("stablehlo.dot_general %x, %w", "stablehlo.dot_general %x %w", (5, 31, 32), "expected ','"),
    ("return %1 :", "return %7 :", (8, 9, 11), "use of undeclared SSA value name"),
    ('{"model"}', '{"modle"}', (7, 49, 56), 'unknown axis "modle"'),
    ("<@mesh, [{?}", "<@mash, [{?}", (7, 35, 40), "unknown mesh @mash"),
    ("-> tensor<16x32xf32> {", "-> tensor<16x33xf32> {", (8, 2, 8), "type of return operand 0"),
    ("%1 = sdy.sharding_constraint", "%1 = sdy.no_such_op", (7, 7, 21), "custom op 'sdy.no_such_op' is unknown"),
]


def test_errors() -> None:
    async def script() -> None:
        async with editing() as editor:
            for before, after, (line, start, end), message in ERRORS:
                text = LAYER.replace(before, after)
                assert text != LAYER
                found = (await editor.open(text))[0]
                assert message in found.message
                assert found.severity == types.DiagnosticSeverity.Error
                assert found.source == "shard-lsp"
                assert found.range == types.Range(types.Position(line, start), types.Position(line, end))
                assert await editor.hover(4, 5) == ""
                assert await editor.definition(5, 34) is None
                assert await editor.hints(0, 10) == []
                assert list(await editor.symbols()) == []

    run(script())


def test_error_of_a_pass() -> None:
    async def script() -> None:
        async with editing() as editor:
            found = await editor.open(REFUSED)
            assert [one.range.start.line for one in found] == [3]
            assert "cannot be partitioned" in found[0].message
            # The text is valid, so everything except the sharding is known.
            assert lines(await editor.hover(3, 3)) == ["%0: tensor<8xf32>"]
            assert await editor.definition(4, 10) == (3, 2)

    run(script())


def test_changes() -> None:
    async def script() -> None:
        async with editing() as editor:
            assert await editor.open(LAYER) == []
            # Each change arrives before the server has read the previous text, so it has to read only the last one.
            for typed in "abc":
                version = editor.replace((8, 10), (8, 11), typed)
            assert "undeclared" in (await editor.diagnostics(version))[0].message
            # A request that follows a change refers to the text after the change.
            version = editor.replace((8, 10), (8, 11), "0")
            assert lines(await editor.hover(8, 10))[0] == "%0: tensor<16x32xf32>"
            assert await editor.diagnostics(version) == []
            document = types.TextDocumentIdentifier(URI)
            editor.client.text_document_did_save(types.DidSaveTextDocumentParams(document))
            assert await editor.diagnostics(version) == []
            editor.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
            assert await editor.diagnostics() == []
            assert await editor.hover(8, 10) == ""

    run(script())


def test_many_documents() -> None:
    async def script() -> None:
        async with editing() as editor:
            for number in range(6):
                text = LAYER.replace('"model"=2', f'"model"={2**number}').replace('{"model"}', "{}")
                assert await editor.open(text, f"file:///programs/{number}.mlir") == []
            # The processes of the first documents have ended, and are started again.
            for number in range(6):
                assert f'"model"={2**number}]' in await editor.hover(0, 10, f"file:///programs/{number}.mlir")

    run(script())


@pytest.mark.parametrize("encoding", [UTF16, UTF8])
def test_columns(encoding: types.PositionEncodingKind) -> None:
    async def script() -> None:
        async with editing(encodings=[encoding]) as editor:
            names = 'stablehlo.custom_call @"\U0001f600é"(%x)'
            text = LAYER.replace("%0 =", f"%5 = {names} : (tensor<16x64xf32>) -> tensor<16x64xf32> %0 =")
            assert await editor.open(text) == []
            before = text.splitlines()[5].split("(%x)")[0] + "("
            column = len(before.encode()) if encoding == UTF8 else len(before) + 1
            assert lines(await editor.hover(5, column + 1))[0] == "%x: tensor<16x64xf32>"
            assert (5, column) in await editor.references(3, 5)
            found = await editor.open(text.replace("(%x)", "(%y)"))
            assert found[0].range.start == types.Position(5, column)

    run(script())


CRASHING = """\
import os

from mlir_shard.tools.language_server import document

parse = document.parse


def crash(text, *rest):
    if b"crash" in text:
        os.write(2, b"why it crashed")
        os.abort()
    return parse(text, *rest)


document.parse = crash
"""


def test_crash(tmp_path: Path) -> None:
    file = tmp_path / "crashing.py"
    file.write_text(CRASHING)

    async def script() -> None:
        async with editing(f"--load={file}") as editor:
            (found,) = await editor.open("// crash\n" + LAYER)
            assert found.message == "the process that analyzes this text was terminated by SIGABRT: why it crashed"
            assert found.severity == types.DiagnosticSeverity.Error
            assert await editor.hover(5, 5) == ""
            assert list(await editor.symbols()) == []
            version = editor.replace((0, 0), (1, 0), "")
            assert await editor.diagnostics(version) == []
            assert lines(await editor.hover(4, 5))[0] == "%w: tensor<64x32xf32>"

    run(script())


def test_file_that_cannot_be_loaded(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("1 / 0\n")

    async def script() -> None:
        async with editing("--load", str(file)) as editor:
            (found,) = await editor.open(LAYER)
            assert "wrong.py:1:1: error: " in found.message
            assert "ZeroDivisionError" in found.message
            assert lines(await editor.hover(4, 5))[0] == "%w: tensor<64x32xf32>"

    run(script())


def test_processes_end_with_the_client(tmp_path: Path) -> None:
    file = tmp_path / "pids.py"
    pids = tmp_path / "pids"
    file.write_text(f"import os\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n")

    async def script() -> None:
        client = LanguageClient("test", "1")
        editor = Editor(client)
        await client.start_io(sys.executable, "-m", "mlir_shard.tools.shard_lsp", f"--load={file}")
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        client.initialized(types.InitializedParams())
        await editor.open(LAYER)
        server = client._server
        assert server is not None
        assert server.stdin is not None
        # The same happens when the editor crashes.
        server.stdin.close()
        await server.wait()
        await client.stop()

    run(script())
    for pid in pids.read_text().split():
        wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists())


def test_without_pygls(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    assert shard_lsp.main([]) == 1
    assert "pip install 'mlir-shard[editor]'" in capsys.readouterr().err
