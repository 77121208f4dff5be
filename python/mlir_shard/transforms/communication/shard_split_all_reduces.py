# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Splits all-reduces into a reduce-scatter and an all-gather, with elementwise ops between the two."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.editing import replace_with
from mlir_shard.ir.op_kinds import OpKinds
from mlir_shard.ir.values import users
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.rules import RuleCache
from mlir_shard.transforms.communication.collective_forms import OnBlock, num_bytes, on_block, scattered
from mlir_shard.transforms.communication.device_uniformity import KnownUniform, UniformValues
from mlir_shard.transforms.shardings import rule_cache

_ALL_REDUCE = "shard.all_reduce"


@register
class SplitAllReduces(ModulePass):
    """Splits an all-reduce of `shard` that only elementwise ops use into a reduce-scatter before them and an all-gather
    after them: devices receive as many bytes as before and compute on shards.

    This is the layout of activations in two-dimensional weight-stationary layers (Pope and others 2022,
    arXiv:2211.05102, section 3.2.2). The all-gather follows the last op whose result has no more bytes than that of the
    all-reduce. The largest divisible dimension is sharded, or the last of several equally large ones. Other operands
    are sliced, and must be uniform across the devices of the reduction.
    """

    name = "shard-split-all-reduces"
    summary = "Splits all-reduces around elementwise ops"
    needs = (_ALL_REDUCE,)

    def run(self, op: Any) -> bool:
        kinds = OpKinds(op, _ALL_REDUCE, neighbours=True)
        if not len(kinds):
            return False
        grids, rules, same = shard.grids(op), rule_cache(), KnownUniform()
        reduces = kinds.where(lambda one: any(_behind(one, dim, rules) for dim in _dims(one, grids)))
        changed = [_split(reduce, grids, rules, same) for reduce in reduces]
        return any(changed)


def _num_blocks(reduce: Any, grids: Mapping[str, tuple[int, ...]]) -> int:
    """Returns the number of devices that would each have a shard; 0 if it is not known."""
    grid = grids.get(reduce.attributes["grid"].value)
    if grid is None or "grid_axes" not in reduce.attributes:
        return 0
    return prod(grid[axis] for axis in shard.grid_axes(reduce))


def _dims(reduce: Any, grids: Mapping[str, tuple[int, ...]]) -> list[int]:
    """Returns the dimensions that shards may be along, the best one first."""
    type_, blocks = reduce.results[0].type, _num_blocks(reduce, grids)
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape or blocks < 2:
        return []
    if type_ != reduce.operands[0].type:
        return []
    dims = [dim for dim, size in enumerate(type_.shape) if size and size % blocks == 0]
    return sorted(dims, key=lambda one: (type_.shape[one], one), reverse=True)


def _split(reduce: Any, grids: Mapping[str, tuple[int, ...]], rules: RuleCache, known: KnownUniform) -> bool:
    # The next op does not depend on the dimension.
    same = known.of(reduce)
    if _next(reduce, reduce.results[0], same) is None:
        return False
    for dim in _dims(reduce, grids):
        if chain := _chain(reduce, dim, rules, same):
            known.forget(one.results[0] for one in (reduce, *(of_chain.op for of_chain in chain)))
            _apply(reduce, dim, chain, list(shard.grid_axes(reduce)), _num_blocks(reduce, grids))
            return True
    return False


def _behind(reduce: Any, dim: int, rules: RuleCache) -> OnBlock | None:
    """Returns the elementwise op that alone uses an all-reduce, whose result has its shape."""
    user = _only_user(reduce, reduce.results[0])
    return None if user is None else on_block(user, reduce.results[0], dim, rules)


def _only_user(reduce: Any, value: Any) -> Any | None:
    """Returns the only op that uses a value if it is in the block of an all-reduce; else None."""
    using = users(value)
    return using[0] if len(using) == 1 and using[0].block == reduce.block else None


def _next(reduce: Any, value: Any, same: UniformValues) -> Any | None:
    """Returns the only op that uses a value behind an all-reduce if all its other operands are uniform; else None."""
    user = _only_user(reduce, value)
    # A device computes shards that others use.
    return user if user and all(one == value or same.has(one) for one in user.operands) else None


def _chain(reduce: Any, dim: int, rules: RuleCache, same: UniformValues) -> list[OnBlock]:
    """Returns the consecutive elementwise ops behind an all-reduce whose results have its shape."""
    found: list[OnBlock] = []
    value = reduce.results[0]
    while (user := _next(reduce, value, same)) is not None:
        behind = on_block(user, value, dim, rules)
        if behind is None or not same.has_captured(user):
            break
        found.append(behind)
        value = user.results[0]
    limit = num_bytes(reduce.results[0].type) or 0
    while found and ((size := num_bytes(found[-1].op.results[0].type)) is None or size > limit):
        found.pop()
    return found


def _apply(reduce: Any, dim: int, chain: list[OnBlock], axes: list[int], blocks: int) -> None:
    grid, location = reduce.attributes["grid"].value, reduce.location
    kept = reduce.results[0]
    shape = list(kept.type.shape)
    shape[dim] //= blocks
    with ir.InsertionPoint(reduce), location:
        value = scattered(reduce, dim, shard.resized(kept.type, shape))
    replace_with(reduce, [value])
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
