# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code blocks of a page of Markdown, with their marks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]


class Mark(Enum):
    """The kind of a comment in front of a block."""

    NONE = ""
    FILE = "file"
    OUTPUT = "output"
    FAILS = "fails"
    NOT_RUN = "not run"


BARE = {Mark.OUTPUT, Mark.FAILS}
"""Marks without text after a colon."""

_COMMENT = re.compile(r"<!--\s*(?P<mark>[a-z ]+?)(?:: *(?P<text>[^\n]*?))?\s*-->\s*")
_HIDDEN = re.compile(r"<!--\s*(?P<language>python|sh)\n(?P<text>.*?)\n?-->\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: its language, its text, the line of the page in front of it, its mark and the mark's text."""

    language: str
    text: str
    line: int
    mark: Mark = Mark.NONE
    detail: str = ""


class PageError(Exception):
    """A page has a block that no rule covers, or a comment that marks nothing."""


def pages() -> list[Path]:
    """Returns the pages with code blocks to check: those in `docs` and in the root."""
    return [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def blocks(page: Path) -> list[Block]:
    """Returns the blocks of a page in order, including hidden ones, without the directives of the site.

    Raises:
        PageError: A block is indented, has no language that can be checked and no mark, or a comment is not before a
            block.
    """
    found: list[Block] = []
    mark: tuple[Mark, str] | None = None
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.map is None or token.type == "inline":
            continue
        line = token.map[0] + 1
        if token.type == "html_block" and token.content.startswith("<!--"):
            hidden = _HIDDEN.fullmatch(token.content)
            if hidden:
                found.append(Block(hidden["language"], hidden["text"] + "\n", line, *(mark or (Mark.NONE, ""))))
                mark = None
                continue
            if mark is not None:
                raise PageError(f"{page.name}:{line}: two comments mark one block")
            mark = _marked(token.content, f"{page.name}:{line}")
        elif token.type == "fence" and not token.info.startswith("{"):
            found.append(Block(token.info.strip(), token.content, line, *(mark or (Mark.NONE, ""))))
            mark = None
            _check(found[-1], page.name)
        elif token.type == "code_block":
            raise PageError(f"{page.name}:{line}: a code block is indented: write it as ```LANGUAGE")
        elif mark is not None:
            raise PageError(f"{page.name}:{line}: the comment `{mark[0].value}` is not in front of a code block")
    return found


def _marked(comment: str, place: str) -> tuple[Mark, str]:
    matched = _COMMENT.fullmatch(comment)
    known = {mark.value: mark for mark in Mark if mark is not Mark.NONE}
    if matched is None or matched["mark"] not in known:
        raise PageError(f"{place}: the comment is none of: {', '.join(known)}: {comment.strip()}")
    mark, detail = known[matched["mark"]], matched["text"] or ""
    if (mark in BARE) == bool(detail):
        raise PageError(f"{place}: `{mark.value}` {'has nothing' if detail else 'needs a text'} behind a colon")
    return mark, detail


def _check(block: Block, name: str) -> None:
    if block.mark in (Mark.NONE, Mark.FAILS) and block.language not in ("python", "sh", "console", "mlir"):
        raise PageError(
            f"{name}:{block.line}: how to check a block of the language {block.language!r} is not known:"
            " mark it as a `file`, `output` or `not run: REASON`"
        )
    if block.mark is Mark.FAILS and block.language not in ("sh", "console"):
        raise PageError(f"{name}:{block.line}: only commands can be marked as `fails`")
