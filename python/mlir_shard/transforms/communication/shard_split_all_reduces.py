# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All-reduces as a reduce-scatter and an all-gather, with what works element by element between the two."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.ir.values import users
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.rules import RuleCache
from mlir_shard.transforms.communication.collective_forms import OnBlock, num_bytes, on_block
from mlir_shard.transforms.communication.device_uniformity import KnownUniform
from mlir_shard.transforms.shardings import rule_cache


@register
class SplitAllReduces(ModulePass):
    """Splits an all-reduce of `shard` that only elementwise ops use into a reduce-scatter in front of them and an
    all-gather behind them: devices receive as many bytes and compute on shards.

    That is the layout of activations in two-dimensional weight-stationary layers (Pope and others 2022,
    arXiv:2211.05102, section 3.2.2). The all-gather is behind the last op whose elements are as small as those of the
    all-reduce. Shards are along the largest dimension that is divisible, the last of several. Other operands are
    sliced, and must be uniform across the devices of the reduction.
    """

    name = "shard-split-all-reduces"
    summary = "Splits all-reduces around elementwise ops"

    def run(self, op: Any) -> bool:
        grids, rules, same = shard.grids(op), rule_cache(), KnownUniform()
        changed = [_split(reduce, grids, rules, same) for reduce in operations_named(op, "shard.all_reduce")]
        return any(changed)


def _split(reduce: Any, grids: Mapping[str, tuple[int, ...]], rules: RuleCache, known: KnownUniform) -> bool:
    type_, grid = reduce.results[0].type, grids.get(reduce.attributes["grid"].value)
    if grid is None or "grid_axes" not in reduce.attributes:
        return False
    axes = list(shard.grid_axes(reduce))
    blocks = prod(grid[axis] for axis in axes)
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape or blocks < 2:
        return False
    if type_ != reduce.operands[0].type:
        return False
    cuttable = [dim for dim, size in enumerate(type_.shape) if size and size % blocks == 0]
    for dim in sorted(cuttable, key=lambda one: (type_.shape[one], one), reverse=True):
        if chain := _chain(reduce, dim, rules, known):
            known.forget(one.results[0] for one in (reduce, *(of_chain.op for of_chain in chain)))
            _apply(reduce, dim, chain, axes, blocks)
            return True
    return False


def _chain(reduce: Any, dim: int, rules: RuleCache, known: KnownUniform) -> list[OnBlock]:
    """The elementwise ops that come one after the other behind an all-reduce, whose results have its shape."""
    found: list[OnBlock] = []
    value, same = reduce.results[0], known.of(reduce)
    while len(behind := users(value)) == 1:
        next_one = on_block(behind[0], value, dim, rules)
        if next_one is None or behind[0].block != reduce.block:
            break
        # A device computes blocks that others use.
        if not same.has_captured(behind[0]) or not all(one == value or same.has(one) for one in behind[0].operands):
            break
        found.append(next_one)
        value = behind[0].results[0]
    limit = num_bytes(reduce.results[0].type) or 0
    while found and ((size := num_bytes(found[-1].op.results[0].type)) is None or size > limit):
        found.pop()
    return found


def _apply(reduce: Any, dim: int, chain: list[OnBlock], axes: list[int], blocks: int) -> None:
    grid, location = reduce.attributes["grid"].value, reduce.location
    kept = reduce.results[0]
    attributes = {
        name: reduce.attributes[name] for name in ("grid", "grid_axes", "reduction") if name in reduce.attributes
    }
    shape = list(kept.type.shape)
    shape[dim] //= blocks
    attributes["scatter_dim"] = ir.IntegerAttr.get(ir.IndexType.get(reduce.context), dim)
    scattered = ir.Operation.create(
        "shard.reduce_scatter",
        [shard.resized(kept.type, shape)],
        [reduce.operands[0]],
        attributes,
        loc=location,
        ip=ir.InsertionPoint(reduce),
    ).results[0]
    replace_with(reduce, [scattered])
    value = scattered
    for one in chain:
        op = one.op
        for number, at in enumerate(one.operand_dims):
            if at is not None and op.operands[number] != value:
                with ir.InsertionPoint(op), op.location:
                    op.operands[number] = shard.all_slice(grid, op.operands[number], axes, at, blocks)
        value = op.results[0]
        value.set_type(shard.resized(value.type, shape))
    with ir.InsertionPoint.after(value.owner), location:
        gathered = shard.all_gather(grid, value, axes, dim, blocks)
    value.replace_all_uses_except(gathered, gathered.owner.operation)
