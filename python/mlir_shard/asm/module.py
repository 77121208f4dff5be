# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parsing modules into a host context, and printing them, in the custom syntax of their dialects."""

from __future__ import annotations

import io
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from mlir_shard import _native, host
from mlir_shard.asm.attributes import hidden_attributes
from mlir_shard.asm.cursor import AsmSyntaxError, as_bytes, as_text
from mlir_shard.asm.inherent_names import inherent_names
from mlir_shard.asm.to_host import position_of, to_host
from mlir_shard.asm.to_sdy import to_sdy_syntax
from mlir_shard.host import ir

BYTECODE_MAGIC = b"ML\xefR"
MOST_NESTED = 2000
"""The maximum depth of nested brackets, because the host's parser is recursive."""
_PLAIN_NAME = re.compile(r"[\w./<> @:+=-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class ParseDiagnostic:
    """A diagnostic in the user's text, with the attributes of the host's `ir.DiagnosticInfo`."""

    severity: Any
    message: str
    location: Any
    notes: tuple[ParseDiagnostic, ...] = ()


class ParseError(Exception):
    """A text is not a valid module; `diagnostics` contains the errors with their locations."""

    def __init__(self, diagnostics: tuple[ParseDiagnostic, ...]) -> None:
        super().__init__("\n".join(f"{one.location.attr}: {one.message}" for one in diagnostics))
        self.diagnostics = diagnostics


_host_library: _native.HostLibrary | None = None
_making = threading.Lock()


def host_library() -> _native.HostLibrary:
    """Returns the host's C API, which all native code of the process shares.

    Capsules do not own their names, so no thread may create its own library, which could be freed before them.
    """
    global _host_library
    with _making:
        if _host_library is None:
            _host_library = _native.HostLibrary(str(host.capi_library()), host.capsule_prefix(), inherent_names)
        return _host_library


@cache
def native_host() -> _native.Host:
    """Returns the native core, which uses the host's C API."""
    return _native.Host(host_library())


@cache
def _native_assembly() -> _native.Assembly:
    return _native.Assembly(host_library())


def parse_module(text: str | bytes, context: Any, filename: str = "-") -> Any:
    """Parses a module in the custom syntax of its dialects; locations are those of `text` in `filename`.

    MLIR's verifier runs on the module, but `dialects.verification` has to verify discardable attributes. Attributes may
    be of dialects that the context does not have, ops only if the context allows it. Raises ParseError.
    """
    _native.set_at_work(filename, "while it parsed this")
    if isinstance(text, bytes) and text.startswith(BYTECODE_MAGIC):
        return _parse_bytecode(text, context, filename)
    characters = _characters(text, context, filename)
    if "\0" in characters:
        # The host treats it as white space.
        error = AsmSyntaxError(characters.index("\0"), r"NUL character in the text; a string spells it \00")
        raise _syntax_error(error, characters, context, filename)
    if (offset := _native.find_deep_bracket(characters, MOST_NESTED)) is not None:
        error = AsmSyntaxError(offset, f"brackets are nested more than {MOST_NESTED} levels deep")
        raise _syntax_error(error, characters, context, filename)
    try:
        host_text = to_host(characters)
    except AsmSyntaxError as error:
        raise _syntax_error(error, characters, context, filename) from None
    with _buffer(host_text, characters, filename) as buffer:
        source = _Source(buffer, host_text, context, filename)
        try:
            module = source.parse()
        except ParseError as error:
            module = _with_foreign_attributes(source.parse, context, error)
        _native_assembly().move_locations(module.operation._CAPIPtr, buffer, filename, host_text)
    return module


_FOREIGN_ATTRIBUTE = "attribute created with unregistered dialect"
_FOREIGN_OP = (
    "operation being parsed with an unregistered dialect. If this is intended, please use -allow-unregistered-dialect "
    "with the MLIR tool used"
)


def _with_foreign_attributes(parse: Callable[[], Any], context: Any, error: ParseError) -> Any:
    """Parses again with attributes of dialects that the context does not have, if they caused the error.

    Raises ParseError if parsing fails for another reason, or if the module has ops of such dialects too.
    """
    if context.allow_unregistered_dialects or not any(_FOREIGN_ATTRIBUTE in one.message for one in error.diagnostics):
        raise error
    context.allow_unregistered_dialects = True
    try:
        module = parse()
    finally:
        context.allow_unregistered_dialects = False
    capsules = native_host().first_operations(module.operation._CAPIPtr)
    for op in map(ir.Operation._CAPICreate, capsules):
        if not context.is_registered_operation(op.name):
            raise _parse_error(_FOREIGN_OP, op.location)
    return module


def _syntax_error(error: AsmSyntaxError, characters: str, context: Any, filename: str) -> ParseError:
    line, column = position_of(characters, error.offset)
    # A message contains characters of the text, one for each byte, and decoded strings.
    message = as_text("".join(as_bytes(one) if one > "\xff" else one for one in error.message))
    return _parse_error(message, ir.Location.file(filename, line, column, context=context))


def _parse_error(message: str, location: Any) -> ParseError:
    return ParseError((ParseDiagnostic(ir.DiagnosticSeverity.ERROR, message, location),))


def _characters(text: str | bytes, context: Any, filename: str) -> str:
    """Returns the text with one character for each byte. Raises ParseError if the bytes are not valid UTF-8."""
    if isinstance(text, str):
        if text.isascii():
            return text
        text = text.encode(errors="surrogateescape")
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            line, column = position_of(text.decode("latin-1"), error.start)
            location = ir.Location.file(filename, line, column, context=context)
            message = f"the text is not valid UTF-8: byte 0x{text[error.start]:02x}"
            raise _parse_error(message, location) from None
    return text.decode("latin-1")


@contextmanager
def _buffer(host_text: _native.HostText, characters: str, filename: str) -> Iterator[str]:
    """Yields the file name for locations in the host's text: the user's file if no location in the text names it.

    Otherwise this is a temporary file with the text, whose name occurs in no location of the user. Locations in such a
    file use memory as long as the context lives.
    """
    is_plain = _PLAIN_NAME.fullmatch(filename) is not None
    if is_plain and f'"{filename}"' not in characters and _native.is_one_module(characters):
        yield filename
    elif hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("mlir-shard")
        with os.fdopen(descriptor, "wb"):
            host_text.write(descriptor)
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile(prefix="mlir-shard-", suffix=".mlir") as file:
            host_text.write(file.fileno())
            yield file.name


@dataclass(frozen=True)
class _Source:
    """The host's text, with the name `buffer` in locations, and the user's file from which it was translated."""

    buffer: str
    host_text: _native.HostText
    context: Any
    filename: str

    def parse(self) -> Any:
        """Returns the module with locations in the buffer. Raises ParseError with locations in the user's text."""
        errors: list[ParseDiagnostic] = []

        def collect(reported: Any) -> bool:
            if reported.severity != ir.DiagnosticSeverity.ERROR:
                return False
            errors.append(self.in_user_text(reported))
            return True

        emits = self.context.emit_error_diagnostics
        self.context.emit_error_diagnostics = True
        handler = self.context.attach_diagnostic_handler(collect)
        try:
            if self.buffer != self.filename:
                return ir.Module.parseFile(self.buffer, self.context)
            module = _native_assembly().parse(self.host_text, self.context._CAPIPtr, self.filename)
            if module is not None:
                return ir.Module._CAPICreate(module)
        except ir.MLIRError as error:
            errors += [self.in_user_text(one) for one in error.error_diagnostics]
        except MemoryError:
            # For example, a list of affine dimensions or attributes of an excessive length that the text gives.
            errors.append(self._at_start("out of memory while parsing the text"))
        finally:
            handler.detach()
            self.context.emit_error_diagnostics = emits
        if not errors:
            # For some texts the parser emits no error.
            errors.append(self._at_start("the text is not a module: the parser failed without a diagnostic"))
        raise ParseError(tuple(errors))

    def _at_start(self, message: str) -> ParseDiagnostic:
        start = ir.Location.file(self.filename, 1, 1, context=self.context)
        return ParseDiagnostic(ir.DiagnosticSeverity.ERROR, message, start)

    def in_user_text(self, reported: Any) -> ParseDiagnostic:
        """Returns a diagnostic of the host with locations and syntax of the user's text."""
        location = ir.Location.from_attr(reported.location.attr, self.context)
        if isinstance(location, ir.FileLineColLoc) and location.filename == self.buffer:
            line, column = self.host_text.to_user(location.start_line, location.start_col)
            location = ir.Location.file(self.filename, line, column, context=self.context)
        notes = tuple(self.in_user_text(note) for note in reported.notes)
        return ParseDiagnostic(reported.severity, to_sdy_syntax(reported.message), location, notes)


def _parse_bytecode(data: bytes, context: Any, filename: str) -> Any:
    try:
        return ir.Module.parse(data, context)
    except ir.MLIRError as error:
        raise ParseError(tuple(_in_bytecode(one, filename) for one in error.error_diagnostics)) from None


def _in_bytecode(reported: Any, filename: str) -> ParseDiagnostic:
    """Returns a diagnostic of the bytecode reader in the user's file, in place of `-` or the text of an attribute."""
    location = ir.Location.from_attr(reported.location.attr, reported.location.context)
    message = to_sdy_syntax(reported.message)
    if isinstance(location, ir.FileLineColLoc) and (location.filename == "-" or location.filename[:1] in ("#", "!")):
        if location.filename != "-":
            message += f" in `{to_sdy_syntax(location.filename)}`"
        location = ir.Location.file(filename, 0, 0, context=location.context)
    notes = tuple(_in_bytecode(note, filename) for note in reported.notes)
    return ParseDiagnostic(reported.severity, message, location, notes)


def bytecode_of(op: Any) -> bytes:
    """Returns the MLIR bytecode of an operation or module, with its locations; `parse_module` reads it."""
    written = io.BytesIO()
    op.operation.write_bytecode(written)
    return written.getvalue()


def print_operation(
    op: Any,
    *,
    generic: bool = False,
    debug_info: bool = False,
    pretty_debug_info: bool = False,
    local_scope: bool = False,
    large_elements_limit: int | None = None,
    assume_verified: bool = False,
    skip_regions: bool = False,
) -> str:
    """Returns the text of an operation or module in the custom syntax of its dialects.

    The options are those of the bindings' printer.
    """
    text = _native_assembly().print(
        op.operation._CAPIPtr,
        generic,
        debug_info,
        pretty_debug_info,
        local_scope,
        large_elements_limit,
        assume_verified,
        skip_regions,
        hidden_attributes(),
    )
    return to_sdy_syntax(text, generic=generic)
