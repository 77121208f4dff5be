# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts every page into the contents: in the index, the line `OTHERS` of a toctree stands for those not named there.

Pages in folders are for the contents of other pages.
"""

import re
from typing import Any

LINE = "OTHERS"
_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)


def with_other_pages(text: str, pages: set[str]) -> str:
    """Returns the text of the index with the names of the other pages, sorted, in place of the line."""
    listed = {line for block in _TOCTREE.findall(text) for line in block.splitlines()}
    return text.replace(
        f"\n{LINE}\n", "".join(f"\n{page}" for page in sorted(pages - listed - {"index"}) if "/" not in page) + "\n"
    )


def _read(app: Any, page: str, source: list[str]) -> None:
    if page == "index":
        source[0] = with_other_pages(source[0], app.env.found_docs)


def setup(app: Any) -> dict[str, bool]:
    """Has Sphinx read the index that way."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
