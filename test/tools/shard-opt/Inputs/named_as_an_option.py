# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pass with the name of an option of shard-opt."""

from __future__ import annotations

from mlir_shard import Pass, register


@register
class Mine(Pass):
    name = "load"

    def run(self, op: object) -> bool:
        return False
