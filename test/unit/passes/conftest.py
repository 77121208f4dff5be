# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of passes share."""

from __future__ import annotations

import pytest

from mlir_shard.passes import registry


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets after each test what it registered."""
    # A module registers its passes when it is first imported: one first imported in a test would be forgotten for good.
    registry.search("mlir_shard.transforms")
    registry.registered()
    for name in ("_passes", "_pipelines"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
