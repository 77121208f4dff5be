# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What propagation has decided becomes final: every dimension is closed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import DimensionSharding, TensorSharding
from mlir_shard.transforms.sharding_attributes import shardings_in, transform_shardings


@register
class CloseShardings(Pass):
    """Closes every dimension of every sharding, and drops the replicated axes, which a closed sharding need not say."""

    name = "sdy-close-shardings"
    anchor = "builtin.module"
    summary = "Closes tensor shardings and drops replicated axes"

    def run(self, op: Any) -> bool:
        is_open = any(_closed(sharding) != sharding for sharding in shardings_in(op))
        if is_open:
            transform_shardings(op, _closed)
        return is_open


def _closed(sharding: TensorSharding) -> TensorSharding:
    # Where nothing is sharded and nothing can be any more, a priority would say nothing.
    dims = (dim.closed() if dim.axes else DimensionSharding((), is_closed=True) for dim in sharding.dim_shardings)
    return replace(sharding, dim_shardings=tuple(dims), replicated_axes=())
