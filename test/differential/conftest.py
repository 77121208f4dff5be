# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options for the number and the seed of the programs that the differential test compares."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options, whose defaults make the test short."""
    group = parser.getgroup("differential")
    group.addoption("--programs", type=int, default=40, help="random programs to compare with Shardy (default 40)")
    group.addoption("--seed", type=int, default=0, help="which programs (default 0)")
