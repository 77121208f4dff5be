# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The list of versions of the site, for the switch on its pages.

    python docs/site/versions.py FOLDER

reads which versions of the site are in a folder, each in a folder of its name, and writes beside these `versions.js`,
with the names and pages of all, and `index.html`, which leads to the newest one.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>mlir-shard</title>
<meta http-equiv="refresh" content="0; url={name}/index.html">
<p><a href="{name}/index.html">mlir-shard {name}</a>
</html>
"""


def in_order(names: list[str]) -> list[str]:
    """Returns names of versions, the newest first: released ones, those before a release, and others by their names."""

    def key(name: str) -> tuple[bool, list[int], bool, str]:
        found = re.fullmatch(r"v?(\d+(?:\.\d+)*)(.*)", name)
        if found is None:
            return False, [], False, name
        return True, [int(part) for part in found[1].split(".")], not found[2], found[2]

    named = sorted(name for name in names if not key(name)[0])
    return sorted((name for name in names if key(name)[0]), key=key, reverse=True) + named


def write(folder: Path) -> None:
    """Writes the list of the versions in a folder, and the page that leads to the newest one.

    Raises:
        ValueError: the folder has no version.
    """
    names = in_order([path.parent.name for path in folder.glob("*/index.html")])
    if not names:
        raise ValueError(f"no version of the site in {folder}")
    versions = [
        {
            "name": name,
            "pages": sorted(str(page.relative_to(folder / name)) for page in (folder / name).rglob("*.html")),
        }
        for name in names
    ]
    (folder / "versions.js").write_text(f"window.siteVersions = {json.dumps(versions)};\n", encoding="utf-8")
    (folder / "index.html").write_text(_PAGE.format(name=names[0]), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
