# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pass with the name of a built-in pipeline."""

from __future__ import annotations

from mlir_shard import Pass, register


@register
class Mine(Pass):
    name = "spmd-pipeline"

    def run(self, op: object) -> bool:
        return False
