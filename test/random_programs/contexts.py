# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A context for many programs: to load the dialects takes as long as to partition a small one."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from mlir_shard import create_context

# A context keeps every type and attribute that it has seen.
_MOST_MODULES = 200
_modules = itertools.count()


def context() -> Any:
    """A context with all dialects, for one module more."""
    return _context(next(_modules) // _MOST_MODULES)


@functools.lru_cache(maxsize=1)
def _context(_: int) -> Any:
    return create_context()
