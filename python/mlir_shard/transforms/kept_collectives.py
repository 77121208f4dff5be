# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeps collectives of sdy valid while shardings change, as each is valid only for its original shardings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.verifiers import operations as verifiers
from mlir_shard.dialects.verifiers.checks import Violation
from mlir_shard.host import ir
from mlir_shard.passes.analyses import held_operations
from mlir_shard.resharding.sharding_steps import Reshard
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.insertion import apply, put_after
from mlir_shard.transforms.named_ops import COLLECTIVES

_OUT = "out_sharding"


@contextmanager
def kept_collectives(module: Any) -> Iterator[list[Any]]:
    """Restores, by reshards, the shardings of operands and results of collectives that change in the context.

    Yields a list that has these collectives and the reshards afterwards.
    """
    collectives = held_operations(module, *COLLECTIVES)
    taken = [sharding_of(one.operands[0]) for one in collectives]
    given = [one.attributes[_OUT] for one in collectives]
    changed: list[Any] = []
    yield changed
    for one, before, out in zip(collectives, taken, given, strict=True):
        now = sharding_of(one.operands[0])
        known = before or now
        if known is not None and not _open_like(before, known).is_equivalent(now):
            with ir.InsertionPoint(one), one.location:
                one.operands[0] = apply(one.operands[0], (Reshard(_open_like(before, known)),))
            changed += [one, one.operands[0].owner]
        wanted = one.attributes[_OUT]
        if wanted == out or _is_valid(one):
            continue
        one.attributes[_OUT] = out
        with one.location:
            changed += [one, put_after(one, one.results[0], (Reshard(wanted.value),)).owner]


def _is_valid(collective: Any) -> bool:
    try:
        verifiers.COLLECTIVES[collective.name](collective)
    except Violation:
        return False
    return True


def _open_like(sharding: TensorSharding | None, known: TensorSharding) -> TensorSharding:
    return sharding or TensorSharding.fully_open(known.rank, known.mesh_or_ref)
