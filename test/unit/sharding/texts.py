# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions between shardings and the texts that users write, which make tests easier to read."""

from __future__ import annotations

from mlir_shard import asm
from mlir_shard.dialects.sdy import SHARDING
from mlir_shard.sharding import TensorSharding

_BEGIN, _END = "<@mesh, ", ">"


def sharding(text: str) -> TensorSharding:
    """Returns the sharding on the mesh `@mesh` of a text without the mesh, such as `[{"a"}, {?}]`."""
    value: TensorSharding = asm.parse_value(SHARDING.partition(".")[2], f"{_BEGIN}{text}{_END}")
    return value


def text_of(value: TensorSharding) -> str:
    """Returns the text of a sharding, in the form that `sharding` accepts."""
    return str(value).removeprefix(_BEGIN).removesuffix(_END)
