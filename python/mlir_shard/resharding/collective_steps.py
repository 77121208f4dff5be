# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What collectives do to a sharding, each as the op of sdy that does it."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.axes import Axes


@dataclass(frozen=True, slots=True)
class SliceAlong:
    """Shards each dimension further along axes that become its minor-most; `sharding` is the one after it."""

    axes_per_dim: tuple[Axes, ...]
    sharding: TensorSharding


@dataclass(frozen=True, slots=True)
class GatherAlong:
    """Shards each dimension no longer along its minor-most axes; `sharding` is the one after it."""

    axes_per_dim: tuple[Axes, ...]
    sharding: TensorSharding


@dataclass(frozen=True, slots=True)
class MoveAxes:
    """Takes the minor-most axes of one dimension to be those of another; `sharding` is the one after it."""

    axes: Axes
    src_dim: int
    tgt_dim: int
    sharding: TensorSharding


@dataclass(frozen=True, slots=True)
class ExchangeShards:
    """Sends each device's shard to another device; every dimension is in as many blocks as before."""

    sharding: TensorSharding


CollectiveStep = SliceAlong | GatherAlong | MoveAxes | ExchangeShards
