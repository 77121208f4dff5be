# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings from and to the texts that users write, for tests that are easier to read so."""

from __future__ import annotations

from mlir_shard import asm
from mlir_shard.dialects.sdy import SHARDING
from mlir_shard.sharding import TensorSharding

_BEGIN, _END = "<@mesh, ", ">"


def sharding(text: str) -> TensorSharding:
    """The sharding on the mesh `@mesh` that a text without it says, `[{"a"}, {?}]` for one."""
    value: TensorSharding = asm.parse_value(SHARDING.partition(".")[2], f"{_BEGIN}{text}{_END}")
    return value


def text_of(value: TensorSharding) -> str:
    """The text that `sharding` takes."""
    return str(value).removeprefix(_BEGIN).removesuffix(_END)
