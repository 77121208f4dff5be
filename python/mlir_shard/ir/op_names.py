# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of operations, as they are written in tables of a dialect."""

from __future__ import annotations


def op_names(dialect: str, names: str) -> tuple[str, ...]:
    """Returns the full names of operations of `dialect`; `names` has spaces between them."""
    return tuple(f"{dialect}.{name}" for name in names.split())
