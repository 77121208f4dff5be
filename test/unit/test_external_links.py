# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks external links of the documentation without a network; `tools/build-docs --check-external` follows them."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from documents.blocks import ROOT
from markdown_it import MarkdownIt
from markdown_it.token import Token

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb"))]
PAGES += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
# The characters that RFC 3986 allows in a host name, a path, a query and a fragment.
HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}")
REST = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")


def markdown(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def inline(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield from token.children or ()


def links(text: str) -> list[str]:
    found = [str(token.attrs["href"]) for token in inline(text) if token.type == "link_open"]
    return [link for link in found if "//" in link or ":" in link.partition("#")[0]]


def mistake(link: str) -> str | None:
    """Returns the mistake in a link to another site, or None."""
    try:
        parts = urlsplit(link)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme != "https":
        return "it is not https"
    if not HOST.fullmatch(parts.netloc) or port is not None:
        return "its host is not a name"
    if not all(map(REST.fullmatch, (parts.path, parts.query, parts.fragment))):
        return "it has characters that are not of an address"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_are_well_formed(page: Path) -> None:
    found = links(markdown(page))
    assert [(link, wrong) for link in found if (wrong := mistake(link))] == []
    assert [link for link, count in Counter(found).items() if count > 1] == []
    bare = [token.content for token in inline(markdown(page)) if token.type == "text" and "://" in token.content]
    assert bare == []


def test_links_to_one_place_are_spelled_in_one_way() -> None:
    spellings: defaultdict[str, set[str]] = defaultdict(set)
    for page in PAGES:
        for link in links(markdown(page)):
            spellings[link.removesuffix("/").replace("://www.", "://").lower()].add(link)
    assert [found for found in spellings.values() if len(found) > 1] == []
    assert len(spellings) > 40


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("https://arxiv.org/abs/2105.04663", None),
        ("https://marketplace.visualstudio.com/items?itemName=a.b", None),
        ("http://arxiv.org/abs/2105.04663", "it is not https"),
        ("ftp://a.org", "it is not https"),
        ("https://arxiv/abs", "its host is not a name"),
        ("https://user@arxiv.org", "its host is not a name"),
        ("https://a.org:80/b", "its host is not a name"),
        ("https://a.org:x/b", "Port could not be cast to integer value as 'x'"),
        ("https://a.org/b c", "it has characters that are not of an address"),
        ("https://a.org/%zz", "it has characters that are not of an address"),
    ],
)
def test_mistakes(link: str, wrong: str | None) -> None:
    assert mistake(link) == wrong
