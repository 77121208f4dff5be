# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs headless Chromium if the machine has it.

If the environment variable MLIR_SHARD_REQUIRE lists `chromium`, tests fail without it; otherwise they are skipped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

REQUIRED = "MLIR_SHARD_REQUIRE"


@contextmanager
def chromium() -> Iterator[Any]:
    """Starts headless Chromium of Debian's package; skips the test if it is not installed."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        _absent("Chromium (install chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _absent("Playwright (pip install playwright)")
    with sync_playwright() as playwright:
        # Chromium does not start as root with its sandbox.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def expect(locator: Any) -> Any:
    """Returns Playwright's assertions on a locator, which wait for the page to handle an event."""
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)
    return expect(locator)


def _absent(what: str) -> NoReturn:
    if "chromium" in os.environ.get(REQUIRED, "").split(","):
        pytest.fail(f"{REQUIRED} lists chromium, and there is no {what}", pytrace=False)
    pytest.skip(what)
