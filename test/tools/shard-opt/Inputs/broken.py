# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A file of passes that cannot be loaded."""

from __future__ import annotations

raise RuntimeError("not today")
