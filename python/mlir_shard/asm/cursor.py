# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A position in MLIR text, and functions that read tokens there.

This implements the part of MLIR's lexical syntax (https://mlir.llvm.org/docs/LangRef/) that is needed to find the end
of a name, a literal, a type or an attribute. The host parses their contents.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from mlir_shard import _native

T = TypeVar("T")


class AsmSyntaxError(Exception):
    """A text does not have the expected syntax; `offset` is the position of the error in the text."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


SPACE = re.compile(r"(?:\s+|//[^\n]*)*")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w$]*")
_DOTTED_IDENTIFIER = re.compile(r"[A-Za-z_][\w$.]*")
_INTEGER = re.compile(r"-?\d+")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_SYMBOL = re.compile(r'@(?:[A-Za-z_][\w$.]*|"(?:[^"\\\n]|\\.)*")')
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)")
_OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_NO_ESCAPE = re.compile(r'(?:[^\\]|\\(?:[0-9A-Fa-f]{2}|[nt\\"]))*')
_PRINTED = re.compile(r"[ -~]*")
_MOST_DIGITS = 40
_NAMED_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}


def unescape(literal: str) -> str:
    """Returns the bytes of a string literal without its quotes, with one character for each byte."""
    if "\\" not in literal:
        return literal
    return _ESCAPE.sub(_unescaped, literal)


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 16)) if len(escaped) == 2 else _NAMED_ESCAPES.get(escaped, escaped)


def escape(characters: str) -> str:
    """Escapes the characters of a string as MLIR prints them; the inverse of `unescape`."""
    if _PRINTED.fullmatch(characters):
        return characters.replace("\\", "\\\\").replace('"', r"\22")
    return "".join(
        "\\\\" if c == "\\" else c if " " <= c <= "~" and c != '"' else f"\\{ord(c):02X}" for c in characters
    )


def as_bytes(text: str) -> str:
    """Returns the text with one character for each byte of its UTF-8, as MLIR counts columns and escapes strings."""
    return text if text.isascii() else text.encode(errors="surrogateescape").decode("latin-1")


def as_text(characters: str) -> str:
    """Returns the text of characters that stand for bytes of UTF-8, invalid ones as surrogates: `as_bytes` inverted."""
    return characters if characters.isascii() else characters.encode("latin-1").decode(errors="surrogateescape")


def quoted(text: str) -> str:
    """Returns a string literal with the value `text`."""
    return f'"{escape(as_bytes(text))}"'


class Cursor:
    """A position that moves forward in `text`. Each character stands for a byte, so that columns agree with MLIR's."""

    __slots__ = ("position", "text")

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.position = position

    def error(self, message: str, offset: int | None = None) -> AsmSyntaxError:
        """Returns an error at the next token, or at `offset`."""
        return AsmSyntaxError(self._next() if offset is None else offset, message)

    def found(self) -> str:
        """Returns the text at the next token, quoted for a message."""
        start = self._next()
        rest = self.text[start : start + 20].split("\n")[0]
        return f"`{rest}`" if rest else "the end of the text"

    def required(self, token: T | None, expected: str) -> T:
        """Returns the token that has been read. Raises AsmSyntaxError if none exists."""
        if token is None:
            raise self.error(f"expected {expected}, found {self.found()}")
        return token

    def located(self, read: Callable[[], T | None], expected: str) -> tuple[int, T]:
        """Returns the offset of the next token and the result of `read` there. Raises AsmSyntaxError if it is None."""
        self.skip_space()
        return self.position, self.required(read(), expected)

    def _next(self) -> int:
        """Returns the offset of the next token."""
        match = SPACE.match(self.text, self.position)
        return match.end() if match else self.position

    def skip_space(self) -> None:
        """Skips blanks, line ends and comments."""
        self.position = self._next()

    def at(self, literal: str) -> bool:
        """Returns whether `literal` is next; if it is a word, the text must not continue the word."""
        start = self._next()
        if not self.text.startswith(literal, start):
            return False
        if not (literal[-1].isalnum() or literal[-1] == "_"):
            return True
        after = self.text[start + len(literal) : start + len(literal) + 1]
        return not (after.isalnum() or after in ("_", "$"))

    def at_end(self) -> bool:
        """Returns whether only blanks and comments are left."""
        return self._next() >= len(self.text)

    def accept(self, literal: str) -> bool:
        """Skips `literal` if it is next; returns whether it was."""
        if not self.at(literal):
            return False
        self.position = self._next() + len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Skips `literal`. Raises AsmSyntaxError if it is not next."""
        if not self.accept(literal):
            raise self.error(f"expected '{literal}', found {self.found()}")

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self._next())
        if not match:
            return None
        self.position = match.end()
        return match[0]

    def identifier(self) -> str | None:
        """Reads an identifier; returns None if none exists."""
        return self._match(_IDENTIFIER)

    def dotted_identifier(self) -> str | None:
        """Reads an identifier that may contain dots; returns None if none exists."""
        return self._match(_DOTTED_IDENTIFIER)

    def integer(self) -> int | None:
        """Reads an integer; returns None if none exists."""
        start, digits = self._next(), self._match(_INTEGER)
        if digits is not None and len(digits) > _MOST_DIGITS:
            raise self.error(f"an integer of {len(digits)} digits is too large", start)
        return None if digits is None else int(digits)

    def string(self) -> str | None:
        """Reads a string literal and returns its value; None if none exists."""
        start, literal = self._next(), self._match(_STRING)
        return None if literal is None else self._unescape(literal[1:-1], start + 1)

    def _unescape(self, literal: str, start: int) -> str:
        """Returns the value of a string literal without its quotes, which begins at the offset `start`."""
        valid = _NO_ESCAPE.match(literal)
        end = 0 if valid is None else valid.end()
        if end < len(literal):
            raise self.error(f"unknown escape `{literal[end : end + 2]}` in a string literal", start + end)
        return as_text(unescape(literal))

    def symbol(self) -> str | None:
        """Reads a symbol reference and returns it without its `@`; None if none exists."""
        start, literal = self._next(), self._match(_SYMBOL)
        if literal is None:
            return None
        return self._unescape(literal[2:-1], start + 2) if literal.startswith('@"') else literal[1:]

    def value_name(self) -> str | None:
        """Reads the name of an SSA value, such as `%0#1`; returns None if none exists."""
        return self._match(_VALUE)

    def closing(self) -> int:
        """Returns the offset of the bracket that closes the next one. Raises AsmSyntaxError if none exists."""
        self.skip_space()
        close = _native.find_closing(self.text, self.position)
        if close < 0:
            raise self.error(f"'{self.text[self.position]}' is never closed by '{_OPENING[self.text[self.position]]}'")
        return close

    def inside_brackets(self) -> tuple[int, int]:
        """Skips bracketed text; returns the offsets of its start and end, without the brackets."""
        close = self.closing()
        start, self.position = self.position + 1, close + 1
        return start, close

    def skip_bracketed(self) -> str:
        """Skips bracketed text and returns it, brackets included."""
        start, end = self.inside_brackets()
        return self.text[start - 1 : end + 1]

    def skip_type(self) -> str:
        """Skips a type and returns its text."""
        self.skip_space()
        start = self.position
        if self.at("("):
            self.skip_bracketed()
            self.expect("->")
            self.skip_function_results()
            return self.text[start : self.position]
        self.accept("!")
        if self.dotted_identifier() is None:
            raise self.error(f"expected a type, found {self.found()}", start)
        if self.text.startswith("<", self.position):
            self.skip_bracketed()
        return self.text[start : self.position]

    def skip_function_results(self) -> str:
        """Skips the results of a function type, one type or several in parentheses, and returns their text."""
        self.skip_space()
        start = self.position
        if self.at("("):
            self.skip_bracketed()
        else:
            self.skip_type()
        return self.text[start : self.position]

    def separated(self, element: Callable[[], T]) -> list[T]:
        """Reads one or more elements, separated by commas."""
        found = [element()]
        while self.accept(","):
            found.append(element())
        return found

    def type_list(self) -> list[str]:
        """Reads one or more types, separated by commas."""
        return self.separated(self.skip_type)

    def skip_attribute(self) -> str:
        """Skips an attribute, with its type if there is one, and returns its text."""
        self.skip_space()
        start = self.position
        self.skip_untyped_attribute()
        if self.accept(":"):
            self.skip_type()
        return self.text[start : self.position]

    def skip_untyped_attribute(self) -> str:
        """Skips an attribute, without a type that may follow it, and returns its text."""
        self.skip_space()
        start = self.position
        if self.position < len(self.text) and self.text[self.position] in "[{(":
            self.skip_bracketed()
            if self.accept("->"):
                self.skip_function_results()
        elif self.string() is not None or self._match(_NUMBER) is not None:
            pass
        elif self.symbol() is not None:
            while self.accept("::"):
                self.symbol()
        elif self.at("!"):
            self.skip_type()
        else:
            self.accept("#")
            if self.dotted_identifier() is None:
                raise self.error(f"expected an attribute, found {self.found()}")
            while self.text.startswith("<", self.position) or self.text.startswith("(", self.position):
                self.skip_bracketed()
        return self.text[start : self.position]


_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)")
