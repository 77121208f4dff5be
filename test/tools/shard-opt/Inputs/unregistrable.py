# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pass whose declaration is wrong."""

from __future__ import annotations

from mlir_shard import Pass, register


@register
class Unnamed(Pass):
    name = "No Name"
