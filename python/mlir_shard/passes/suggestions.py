# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names near a misspelt one, worded for a diagnostic."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """At most `limit` of the `known` names that resemble `name`, the nearest first; none much less than the nearest."""
    close = difflib.get_close_matches(name, list(known), n=limit, cutoff=0.6)
    alike = {one: difflib.SequenceMatcher(None, one, name).ratio() for one in close}
    return tuple(one for one in close if alike[one] > alike[close[0]] - 0.1)


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """`; did you mean 'a' or 'b'?`, each name behind `prefix`, or nothing where no known name is near."""
    names = [f"'{prefix}{one}'" for one in near(name, known)]
    if not names:
        return ""
    return f"; did you mean {alternatives(names)}?"


def alternatives(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
