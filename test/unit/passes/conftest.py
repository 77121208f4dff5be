# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures of the tests of passes."""

from __future__ import annotations

import pytest

from mlir_shard.passes import registry


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the passes and pipelines that a test registered after the test."""
    # The first import of a module registers its passes; if that happened in a test, they would be removed for good.
    registry.search("mlir_shard.transforms")
    registry.registered()
    for name in ("_passes", "_pipelines"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
