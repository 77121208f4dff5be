# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What collectives of sdy take where shardings change: they are valid for those that their operands had alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.resharding.sharding_steps import Reshard
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.insertion import apply
from mlir_shard.transforms.named_ops import COLLECTIVES


@contextmanager
def kept_operands(module: Any) -> Iterator[list[Any]]:
    """Has the collectives in a module take what they did before, by reshards, whose operands are sharded otherwise.

    Yields a list that has these collectives and the reshards afterwards.
    """
    collectives = operations_named(module, *COLLECTIVES)
    taken = [sharding_of(one.operands[0]) for one in collectives]
    changed: list[Any] = []
    yield changed
    for one, before in zip(collectives, taken, strict=True):
        now = sharding_of(one.operands[0])
        known = before or now
        if known is None or _open_like(before, known).is_equivalent(now):
            continue
        with ir.InsertionPoint(one), one.location:
            one.operands[0] = apply(one.operands[0], (Reshard(_open_like(before, known)),))
        changed += [one, one.operands[0].owner]


def _open_like(sharding: TensorSharding | None, known: TensorSharding) -> TensorSharding:
    return sharding or TensorSharding.fully_open(known.rank, known.mesh_or_ref)
