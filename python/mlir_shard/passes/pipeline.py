# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipeline text, MLIR's: `builtin.module(a,b{x=1 y={p,q}},func.func(c))`, read into elements."""

from __future__ import annotations

import dataclasses
import re

from mlir_shard.passes.options import OptionError, skip_group


class PipelineError(ValueError):
    """A pipeline that cannot be run: malformed text, an unknown name or option, a wrong nesting.

    `text` is the pipeline's text and `offset` where in it the error is, in characters; `text` is empty where there
    is none.
    """

    def __init__(self, message: str, text: str = "", offset: int = 0) -> None:
        super().__init__(f"{message} (at character {offset + 1} of '{text}')" if text else message)
        self.message = message
        self.text = text
        self.offset = offset


@dataclasses.dataclass(frozen=True, slots=True)
class Element:
    """A name in a pipeline: a pass or pipeline with options, or an anchor around `children`."""

    name: str
    offset: int
    options: str = ""
    options_offset: int = 0
    children: tuple[Element, ...] | None = None


_WORD = re.compile(r"[A-Za-z0-9_.$-]+")


def parse(text: str) -> tuple[Element, ...]:
    """The elements of a pipeline.

    Raises:
        PipelineError: the text is none.
    """
    reader = _Reader(text)
    elements = reader.elements()
    if reader.at < len(text):
        raise reader.error(f"unexpected '{text[reader.at]}'")
    return elements


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, message: str) -> PipelineError:
        return PipelineError(message, self.text, self.at)

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, character: str) -> bool:
        self.skip_space()
        if self.text[self.at : self.at + 1] == character:
            self.at += 1
            return True
        return False

    def elements(self) -> tuple[Element, ...]:
        self.skip_space()
        if self.at == len(self.text) or self.text[self.at] == ")":
            return ()
        found = [self.element()]
        while self.take(","):
            found.append(self.element())
        self.skip_space()
        return tuple(found)

    def element(self) -> Element:
        self.skip_space()
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise self.error("expected the name of a pass or of an operation")
        self.at = word.end()
        options, options_offset = "", 0
        if self.text[self.at : self.at + 1] == "{":
            options_offset = self.at + 1
            try:
                self.at = skip_group(self.text, self.at)
            except OptionError as error:
                self.at = error.offset
                raise self.error(error.message) from None
            options = self.text[options_offset : self.at - 1]
        if not self.take("("):
            return Element(word.group(), word.start(), options, options_offset)
        if options:
            self.at = options_offset
            raise self.error(f"'{word.group()}' encloses passes, so it takes no options")
        children = self.elements()
        if not self.take(")"):
            raise self.error(f"expected ')' after the passes of '{word.group()}'")
        return Element(word.group(), word.start(), children=children)
