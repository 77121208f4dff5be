# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the pictures of docs/explain.md from a page of shard-explain, in headless Chromium.

cd benchmarks && python explain_page.py -o page.html && python ../tools/draw_explanation.py page.html ../docs/images
"""

from __future__ import annotations

import base64
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

_SIZE = {"width": 1200, "height": 680}
# The browser writes pictures of pages as PNG or JPEG, and canvases also as WebP, which is a quarter as large.
_AS_WEBP = """async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.85).split(",")[1];
}"""


def main(page: Path, folder: Path) -> None:
    """Writes pictures of a page to a folder."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            opened = browser.new_page(viewport=_SIZE, color_scheme=scheme)
            opened.goto(page.absolute().as_uri())
            _select(opened, "dot_general")
            opened.keyboard.press("1" if scheme == "light" else "4")
            png = base64.b64encode(opened.screenshot()).decode()
            webp = browser.new_page().evaluate(_AS_WEBP, png)
            (folder / f"explain-{scheme}.webp").write_bytes(base64.b64decode(webp))
        browser.close()


def _select(page: Page, words: str) -> None:
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    # Closes the search; the value stays selected.
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.press("Escape")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
