# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for tests that run passes on many programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlir_shard

_FOLDER = Path(__file__).parents[2] / "transforms"


def modules(context: Any) -> Iterator[tuple[str, Any]]:
    """Yields the stage and the module of each program in the lit tests of passes that can be parsed."""
    for file in sorted(_FOLDER.rglob("*.mlir")):
        for text in file.read_text(encoding="utf-8").split("// -----"):
            try:
                yield file.relative_to(_FOLDER).parts[0], mlir_shard.parse(text, context)
            except mlir_shard.ParseError:
                continue
