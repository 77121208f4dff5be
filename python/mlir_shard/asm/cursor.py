# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A place in MLIR text, and the tokens that can be read there.

Only as much of MLIR's lexical syntax is known as is needed to find where a name, a literal, a type or an attribute
ends (https://mlir.llvm.org/docs/LangRef/): what is inside stays the host's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from mlir_shard import _native

T = TypeVar("T")


class AsmSyntaxError(Exception):
    """Text that is not in the syntax expected; `offset` says where in the text."""

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
_MOST_DIGITS = 40
_NAMED_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}


def unescape(literal: str) -> str:
    """The bytes, a character each, that a string literal without its quotes stands for."""
    if "\\" not in literal:
        return literal
    return _ESCAPE.sub(_unescaped, literal)


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 16)) if len(escaped) == 2 else _NAMED_ESCAPES.get(escaped, escaped)


def escape(characters: str) -> str:
    """The inverse of `unescape`, as MLIR prints strings."""
    return "".join(
        "\\\\" if c == "\\" else c if " " <= c <= "~" and c != '"' else f"\\{ord(c):02X}" for c in characters
    )


def as_bytes(text: str) -> str:
    """The text with one character for each byte of its UTF-8, which is how MLIR counts columns and escapes strings."""
    return text if text.isascii() else text.encode(errors="surrogateescape").decode("latin-1")


def as_text(characters: str) -> str:
    """The inverse of `as_bytes`; bytes that are no UTF-8 become surrogates."""
    return characters if characters.isascii() else characters.encode("latin-1").decode(errors="surrogateescape")


def quoted(text: str) -> str:
    """A string literal that stands for `text`."""
    return f'"{escape(as_bytes(text))}"'


class Cursor:
    """A position that moves on through `text`; characters stand for bytes, so that columns are MLIR's."""

    __slots__ = ("position", "text")

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.position = position

    def error(self, message: str, offset: int | None = None) -> AsmSyntaxError:
        """An error at the next token, or at `offset`."""
        return AsmSyntaxError(self._next() if offset is None else offset, message)

    def found(self) -> str:
        """What stands at the next token, for a message."""
        start = self._next()
        rest = self.text[start : start + 20].split("\n")[0]
        return f"`{rest}`" if rest else "the end of the text"

    def required(self, token: T | None, expected: str) -> T:
        """Returns the token that has been read. Raises AsmSyntaxError if there is none."""
        if token is None:
            raise self.error(f"expected {expected}, found {self.found()}")
        return token

    def located(self, read: Callable[[], T | None], expected: str) -> tuple[int, T]:
        """Returns the offset of the next token, and what `read` reads there. Raises AsmSyntaxError."""
        self.skip_space()
        return self.position, self.required(read(), expected)

    def _next(self) -> int:
        """The offset of the next token."""
        match = SPACE.match(self.text, self.position)
        return match.end() if match else self.position

    def skip_space(self) -> None:
        """Moves over blanks, line ends and comments."""
        self.position = self._next()

    def at(self, literal: str) -> bool:
        """Whether `literal` stands next; a word must end where it ends."""
        start = self._next()
        if not self.text.startswith(literal, start):
            return False
        if not (literal[-1].isalnum() or literal[-1] == "_"):
            return True
        after = self.text[start + len(literal) : start + len(literal) + 1]
        return not (after.isalnum() or after in ("_", "$"))

    def at_end(self) -> bool:
        """Whether nothing but blanks is left."""
        return self._next() >= len(self.text)

    def accept(self, literal: str) -> bool:
        """Moves over `literal` if it stands next."""
        if not self.at(literal):
            return False
        self.position = self._next() + len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Moves over `literal`, which must stand next."""
        if not self.accept(literal):
            raise self.error(f"expected '{literal}', found {self.found()}")

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self._next())
        if not match:
            return None
        self.position = match.end()
        return match[0]

    def identifier(self) -> str | None:
        """The identifier that stands next, if any."""
        return self._match(_IDENTIFIER)

    def dotted_identifier(self) -> str | None:
        """The identifier, dots included, that stands next, if any."""
        return self._match(_DOTTED_IDENTIFIER)

    def integer(self) -> int | None:
        """The integer that stands next, if any."""
        start, digits = self._next(), self._match(_INTEGER)
        if digits is not None and len(digits) > _MOST_DIGITS:
            raise self.error(f"an integer of {len(digits)} digits is too large", start)
        return None if digits is None else int(digits)

    def string(self) -> str | None:
        """The string literal that stands next, unescaped, if any."""
        start, literal = self._next(), self._match(_STRING)
        return None if literal is None else self._unescape(literal[1:-1], start + 1)

    def _unescape(self, literal: str, start: int) -> str:
        """What stands between the quotes of a string literal, from an offset on."""
        valid = _NO_ESCAPE.match(literal)
        end = 0 if valid is None else valid.end()
        if end < len(literal):
            raise self.error(f"unknown escape `{literal[end : end + 2]}` in a string literal", start + end)
        return as_text(unescape(literal))

    def symbol(self) -> str | None:
        """The symbol reference that stands next, without its `@`, if any."""
        start, literal = self._next(), self._match(_SYMBOL)
        if literal is None:
            return None
        return self._unescape(literal[2:-1], start + 2) if literal.startswith('@"') else literal[1:]

    def value_name(self) -> str | None:
        """The SSA value that stands next, `%0#1` say, if any."""
        return self._match(_VALUE)

    def closing(self) -> int:
        """The offset of the bracket that closes the one standing next."""
        self.skip_space()
        close = _native.find_closing(self.text, self.position)
        if close < 0:
            raise self.error(f"'{self.text[self.position]}' is never closed by '{_OPENING[self.text[self.position]]}'")
        return close

    def inside_brackets(self) -> tuple[int, int]:
        """Moves over bracketed text; returns where it begins and ends, without the brackets."""
        close = self.closing()
        start, self.position = self.position + 1, close + 1
        return start, close

    def skip_bracketed(self) -> str:
        """The bracketed text that stands next, brackets included."""
        start, end = self.inside_brackets()
        return self.text[start - 1 : end + 1]

    def skip_type(self) -> str:
        """The type that stands next."""
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
        """The results of a function type: one type, or several in parentheses."""
        self.skip_space()
        start = self.position
        if self.at("("):
            self.skip_bracketed()
        else:
            self.skip_type()
        return self.text[start : self.position]

    def separated(self, element: Callable[[], T]) -> list[T]:
        """One or more elements, separated by commas."""
        found = [element()]
        while self.accept(","):
            found.append(element())
        return found

    def type_list(self) -> list[str]:
        """One or more types, separated by commas."""
        return self.separated(self.skip_type)

    def skip_attribute(self) -> str:
        """The attribute that stands next, its type included if it has one."""
        self.skip_space()
        start = self.position
        self.skip_untyped_attribute()
        if self.accept(":"):
            self.skip_type()
        return self.text[start : self.position]

    def skip_untyped_attribute(self) -> str:
        """The attribute that stands next, without a type that may follow it."""
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
