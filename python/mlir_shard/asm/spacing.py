# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a declarative assembly format puts spaces, by the rules of MLIR's own printers.

The rules are those of `shouldEmitSpaceBefore` and its callers in mlir/tools/mlir-tblgen (FormatGen, OpFormatGen and
AttrOrTypeFormatGen): a space before every element, but not inside brackets and not before closing punctuation.
"""

from __future__ import annotations


class SpacedText:
    """Text put together element by element."""

    __slots__ = ("_emit_space", "_last_was_punctuation", "_parts")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._emit_space = True
        self._last_was_punctuation = False

    def literal(self, text: str) -> None:
        """Adds a keyword or punctuation of the format."""
        if self._emit_space and self._takes_space(text):
            self._parts.append(" ")
        self._parts.append(text)
        self._emit_space = len(text) != 1 or text not in "<({["
        self._last_was_punctuation = not (text[0] == "_" or text[0].isalpha())

    def _takes_space(self, text: str) -> bool:
        if len(text) != 1 and text != "->":
            return True
        return text not in (">)}]," if self._last_was_punctuation else "<>(){}[],")

    def whitespace(self, text: str) -> None:
        """Adds white space that the format asks for; empty text takes away the space that would follow."""
        self._parts.append(text)
        self._emit_space = False
        self._last_was_punctuation = not text

    def element(self, text: str) -> None:
        """Adds a variable or a directive."""
        if self._emit_space or not self._last_was_punctuation:
            self._parts.append(" ")
        self._parts.append(text)
        self._emit_space = True
        self._last_was_punctuation = False

    def dictionary(self, text: str) -> None:
        """Adds an attribute dictionary, which brings its own space and may be empty."""
        if text:
            self._parts.append(f" {text}")
        self._last_was_punctuation = False

    def __str__(self) -> str:
        return "".join(self._parts)
