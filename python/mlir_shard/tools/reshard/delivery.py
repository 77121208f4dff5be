# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan carried out on NumPy, with a value of its own for every element, to see that it delivers."""

from __future__ import annotations

from math import prod

import numpy as np

from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import Plan
from mlir_shard.resharding.simulation import (
    carry_out,
    check_size,
    exchange,
    place,
    reduce_partials,
    without_padding,
)
from mlir_shard.resharding.steps import DirectExchange


def undelivered(plan: Plan) -> tuple[int, ...]:
    """The devices that do not hold the values of their target boxes after the plan, none where it is right.

    ValueError where the tensor is too large to be simulated.
    """
    # Asked before there is an array of the whole tensor, which is no larger than all local ones.
    check_size(plan.source)
    shape = (plan.source.partials, *plan.source.shape)
    values = np.arange(prod(shape), dtype=np.int64).reshape(shape)
    blocks = place(values, plan.source)
    for step in plan.steps:
        if isinstance(step.move, DirectExchange):
            blocks = exchange(direct_exchange(step.before, step.after), blocks)
        else:
            tensor = GridTensor(step.grid, step.before.shape, plan.element_size)
            blocks = carry_out(step.move, blocks, step.placement, tensor)
    held = without_padding(blocks, plan.target)
    wanted = without_padding(place(reduce_partials(values, plan.source, plan.target), plan.target), plan.target)
    return tuple(device for device in held if not np.array_equal(held[device], wanted[device]))
