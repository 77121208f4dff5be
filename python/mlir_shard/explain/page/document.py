# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The HTML file: its frame, the scripts and the style sheet of the package, and the data of an explanation."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from mlir_shard.explain.page.data import page_data

if TYPE_CHECKING:
    from mlir_shard.explain.explanation import Explanation
    from mlir_shard.explain.suggestions import Suggestion
    from mlir_shard.explain.values import Tensor

# In the order in which they run.
_SCRIPTS = ("model", "elements", "mesh", "tree", "outline", "chains", "details", "bill", "memory", "replicated", "main")

_FRAME = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="$policy">
<title>$title</title>
<style>$style</style>
</head>
<body>
<noscript>This page shows a program with scripts of its own; it loads nothing.</noscript>
<div id="app"></div>
<script type="application/json" id="data">$data</script>
<script>$script</script>
</body>
</html>
""")


def page_html(
    explanation: Explanation, title: str, suggested: Sequence[Suggestion] = (), selected: Tensor | None = None
) -> str:
    """Returns a page that shows an explanation under a title.

    Args:
        explanation: the explanation of the program.
        title: the title of the page.
        suggested: annotations that save bytes.
        selected: the value whose details are shown at first.
    """
    style, script = _assets()
    # The page applies only this style and script, whatever the names in the program are.
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    content = {"title": title, **page_data(explanation, suggested, selected)}
    # A JSON text with escaped `<` cannot end the element that contains it.
    data = json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return _FRAME.substitute(policy=policy, title=html.escape(title), style=style, data=data, script=script)


def write_page(explanation: Explanation, file: str | os.PathLike[str], title: str) -> None:
    """Writes a page that shows an explanation under a title; an existing file is replaced."""
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(page_html(explanation, title))


@cache
def _assets() -> tuple[str, str]:
    """Returns the style sheet, and the scripts as one script in its own scope."""
    folder = resources.files("mlir_shard.explain.page") / "assets"
    style = (folder / "page.css").read_text(encoding="utf-8")
    scripts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return style, '"use strict";\n(() => {\n' + "\n".join(scripts) + "})();\n"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
