# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A context for many programs, because loading the dialects takes as long as partitioning a small program."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from mlir_shard import create_context

# A context keeps every type and attribute that was used in it.
_MOST_MODULES = 200
_modules = itertools.count()


def context() -> Any:
    """Returns a context with all dialects, for one more module."""
    return _context(next(_modules) // _MOST_MODULES)


@functools.lru_cache(maxsize=1)
def _context(_: int) -> Any:
    return create_context()
