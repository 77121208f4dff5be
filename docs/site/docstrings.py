# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Docstrings for Sphinx.

They are reStructuredText with sections, but for examples, which are indented behind a blank line without `::`, and for
letters right behind code, as in `P`s.
"""

import re

_SECTION = re.compile(r"(?:Args|Attributes|Raises|Returns|Yields):$")
_LETTERS_BEHIND_CODE = re.compile(r"(`[^`]+`)([a-z])?")


def as_restructured_text(lines: list[str]) -> list[str]:
    """Returns the lines of a docstring in reStructuredText, but for its sections."""
    found: list[str] = []
    last, in_section = "", False
    for number, line in enumerate(lines):
        if line.strip() and not line.startswith(" "):
            in_section = _SECTION.match(line) is not None
        line = _LETTERS_BEHIND_CODE.sub(lambda found: found[1] + (f"\\ {found[2]}" if found[2] else ""), line)
        begins = line.startswith("    ") and not last.startswith(" ") and number and not lines[number - 1].strip()
        if begins and not in_section:
            found += ["::", ""]
        found.append(line)
        last = line if line.strip() else last
    return found
