# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of linalg: structured ops by their loops, and softmax, packing and Winograd's transforms.

The local op of a structured op is the same loop nest over the shards; indices and initial values are corrected.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.index_arithmetic import add, constant, multiply
from mlir_shard.rules.builder import Dims, RuleBuilder, shape_of, without_ones
from mlir_shard.rules.linalg_loops import Loops, is_structured, loops_of
from mlir_shard.rules.partition import Blocks, count_once, neutral_initial_values, partition_rule, set_result_types
from mlir_shard.rules.registry import RuleOptions, sharding_rule, without_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

without_rule(
    "linalg.index",
    "linalg.yield",
    because="it is in the body of a structured op, whose rule covers it",
)


@sharding_rule(when=is_structured)
def structured(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of a structured op: a factor for each loop, a reduction if the loop indexes no output.

    Returns None on buffers. If a loop moves from window to window, neighbours exchange the overlap, unless a window is
    one element. The loops inside a window must be replicated, as must the loop of a diagonal. A dimension indexed by
    any other expression has its own factor, which cannot be sharded.
    """
    if not len(op.results):
        return None
    loops = loops_of(op)
    shapes = [shape_of(operand.type) for operand in op.operands]
    inputs = len(op.operands) - len(op.results)
    builder = RuleBuilder.for_op(op)
    followed = [_dims_of_loops(loops, operand) for operand in range(len(shapes))]
    for loop in range(loops.count):
        sizes = {shape[dims.index(loop)] for shape, dims in zip(shapes, loops.dims, strict=True) if loop in dims}
        if not sizes:
            continue
        dims = [of_operand.get(loop) for of_operand in followed]
        size = sizes.pop()
        type_ = _factor_type(loops, shapes, loop, size)
        blocked = options.conservative and type_ is FactorType.PERMUTATION
        builder.add_factor(dims, dims[inputs:], size, type_, blocked=blocked)
    for number, of_operand in enumerate(loops.dims):
        for dim in range(len(of_operand)):
            if dim not in followed[number].values():
                own = [dim if other == number else None for other in range(len(shapes))]
                builder.add_factor(own, own[inputs:], shapes[number][dim], FactorType.NEED_REPLICATION)
    return builder.build()


def _dims_of_loops(loops: Loops, operand: int) -> dict[int, int]:
    """Returns for each loop the first dimension of an operand that it indexes, alone or from window to window."""
    found = {loop: dim for dim, loop in loops.windows[operand].items()}
    for dim, loop in reversed(list(enumerate(loops.dims[operand]))):
        if loop is not None:
            found[loop] = dim
    return found


def _factor_type(loops: Loops, shapes: list[tuple[int, ...]], loop: int, size: int) -> FactorType:
    if loop in loops.bound or any(of_operand.count(loop) > 1 for of_operand in loops.dims):
        return FactorType.NEED_REPLICATION
    if loop in loops.reductions:
        return FactorType.REDUCTION
    read = [shapes[number][dim] for number, of in enumerate(loops.windows) for dim, over in of.items() if over == loop]
    return FactorType.PASS_THROUGH if all(one == size for one in read) else FactorType.PERMUTATION


@sharding_rule("linalg.softmax")
def softmax(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of a softmax: the normalized dimension must be replicated, all others are pass-through."""
    if not len(op.results):
        return None
    normalized = (op.attributes["dimension"].value,)
    builder = RuleBuilder.for_op(op)
    return builder.add_pointwise(shape_of(op.results[0].type), normalized, FactorType.NEED_REPLICATION).build()


@sharding_rule("linalg.pack", "linalg.unpack", "tensor.pack", "tensor.unpack")
def pack(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of a pack or unpack: a tiled dimension has a factor for tiles and one for elements in a tile.

    Returns None on buffers. If tiles do not fill a dimension, shards of elements are not shards of tiles, and
    neighbours exchange elements.
    """
    if not len(op.results):
        return None
    # Operand 1 is the destination, with the shape of the result.
    plain, packed = (1, 0) if op.name.endswith(".unpack") else (0, 1)
    shapes = [shape_of(op.operands[number].type) for number in (0, 1)]
    rank = len(shapes[plain])
    tiled = elements(op.attributes["inner_dims_pos"])
    order = elements(op.attributes["outer_dims_perm"]) if "outer_dims_perm" in op.attributes else []
    builder = RuleBuilder.for_op(op)

    def add(plain_dim: int | None, packed_dim: int, size: int, type_: FactorType = FactorType.PASS_THROUGH) -> None:
        dims: list[int | None] = [None] * len(op.operands)
        dims[plain], dims[packed] = plain_dim, packed_dim
        blocked = options.conservative and type_ is FactorType.PERMUTATION
        builder.add_factor(dims, dims[1:2], size, type_, blocked=blocked)

    for dim, size in enumerate(shapes[plain]):
        outer = order.index(dim) if order else dim
        if dim not in tiled:
            add(dim, outer, size)
            continue
        inner = rank + tiled.index(dim)
        tiles, tile = shapes[packed][outer], shapes[packed][inner]
        if tiles * tile == size:
            add(dim, outer, tiles)
            add(dim, inner, tile)
        else:
            add(dim, outer, tiles, FactorType.PERMUTATION)
            add(None, inner, tile, FactorType.NEED_REPLICATION)
    return without_ones(builder.build())


def _inside_tiles(op: Any, rule: OpShardingRule) -> list[int]:
    """Returns the factors inside tiles, as the sizes of tiles are attributes."""
    packed = rule.operand_mappings[0] if op.name.endswith(".unpack") else rule.result_mappings[0]
    tiled = len(elements(op.attributes["inner_dims_pos"]))
    return [factor for mapping in packed.dim_mappings[-tiled:] for factor in mapping.factor_indices]


partition_rule("linalg.pack", "linalg.unpack", unshardable=_inside_tiles, pure=True)(set_result_types)


# Pairs of dimensions of the input and the output: equal ones, and tiles along spatial ones.
_WINOGRAD: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {
    "linalg.winograd_filter_transform": ([(0, 3), (3, 2)], []),
    "linalg.winograd_input_transform": ([(0, 4), (3, 5)], [(1, 2), (2, 3)]),
    "linalg.winograd_output_transform": ([(4, 0), (5, 3)], [(2, 1), (3, 2)]),
}


@sharding_rule(*_WINOGRAD)
def winograd(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of a Winograd transform: batches, channels and filters are pass-through.

    Tiles of the input overlap, tiles of the output do not. The transforms are from (f, h, w, c) to (alpha_h, alpha_w,
    c, f); from (n, h, w, c) to (alpha_h, alpha_w, tile_h, tile_w, n, c); and from (alpha_h, alpha_w, tile_h, tile_w, n,
    f) to (n, h, w, f).
    """
    common, tiles = _WINOGRAD[op.name]
    if not len(op.results):
        return None
    before, after = (shape_of(operand.type) for operand in op.operands)
    builder = RuleBuilder.for_op(op)
    for one, other in common:
        builder.add_factor([one, other], [other], before[one])
    for one, other in tiles:
        number = before[one] if op.name.endswith("output_transform") else after[other]
        in_tile, uneven = divmod(after[other], max(number, 1))
        side_by_side = op.name.endswith("output_transform") and not uneven
        type_ = FactorType.PASS_THROUGH if side_by_side else FactorType.PERMUTATION
        builder.add_factor([one, other], [other], number, type_)
        if side_by_side and in_tile > 1:
            builder.add_factor([None, other], [other], in_tile, FactorType.NEED_REPLICATION)
    pairs = (*common, *tiles)
    rest: list[tuple[Dims, Dims, int]] = []
    rest += [([dim, None], [None], size) for dim, size in enumerate(before) if dim not in [one for one, _ in pairs]]
    rest += [([None, dim], [dim], size) for dim, size in enumerate(after) if dim not in [other for _, other in pairs]]
    for operand_dims, result_dims, size in rest:
        builder.add_factor(operand_dims, result_dims, size, FactorType.NEED_REPLICATION)
    return without_ones(builder.build())


partition_rule(*_WINOGRAD, pure=True)(set_result_types)


@partition_rule(when=is_structured, allows_uneven=True, pure=True)
def partition_structured(op: Any, blocks: Blocks) -> None:
    """Makes a structured op local: the same op on shards.

    If it adds up along a sharded loop, all but the first device of a group begin with zero, so that the initial value
    is counted once; likewise for other reductions whose result changes if the initial value is repeated. The start of
    the shard is added to `linalg.index` of a sharded loop.
    """
    set_result_types(op, blocks)
    axes = blocks.reduction_axes
    if axes:
        count_once(op, neutral_initial_values(op, len(op.operands) - len(op.results)), axes, blocks)
    _offset_indices(op, blocks)


def _offset_indices(op: Any, blocks: Blocks) -> None:
    """Adds the start of this device's shard to each `linalg.index` of a sharded loop."""
    for inner in list(op.regions[0].blocks[0].operations):
        inner = inner.operation
        if inner.name != "linalg.index":
            continue
        axes, size = _axes_and_size(op, inner.attributes["dim"].value, blocks)
        if not axes:
            continue
        with ir.InsertionPoint(op), op.location:
            offset = multiply(blocks.device_index(axes), constant(size))
        with ir.InsertionPoint.after(inner), inner.location:
            shifted = add(inner.results[0], offset)
        inner.results[0].replace_all_uses_except(shifted, [shifted.owner.operation])


def _axes_and_size(op: Any, loop: int, blocks: Blocks) -> tuple[tuple[int, ...], int]:
    """Returns the grid axes that a loop is sharded along, and its number of local iterations."""
    if blocks.rule is not None:
        for operand, mapping, dims in zip(op.operands, blocks.rule.operand_mappings, loops_of(op).dims, strict=True):
            if loop in dims:
                dim = dims.index(loop)
                factor = mapping.dim_mappings[dim].factor_indices[0]
                return blocks.factor_axes[factor], operand.type.shape[dim]
    return (), 0
