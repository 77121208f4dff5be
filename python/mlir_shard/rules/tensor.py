# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of tensor: reshapes, slices, pads and ops that join tensors; also the ops without rules, with the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.array_elements import elements
from mlir_shard.rules.builder import RuleBuilder, rank_of, resized, shape_of, without_ones
from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.partition import Blocks, partition_rule, set_result_types
from mlir_shard.rules.registry import RuleFunction, RuleOptions, sharding_rule, without_rule
from mlir_shard.rules.stablehlo.layout import reshape as reshape_factors
from mlir_shard.rules.windows import dim_of, moving_windows
from mlir_shard.sharding.rule import FactorType, OpShardingRule, TensorMapping

register_elementwise("tensor.bitcast", "tensor.cast")
without_rule("tensor.empty", "tensor.splat", because="it has no tensor operands: its users determine its sharding")
without_rule(
    "tensor.from_elements", "tensor.generate", because=("it has no tensor operands: its users determine its sharding")
)
without_rule("tensor.extract", because="its result is one element, which has no dimension to shard")
without_rule("tensor.dim", "tensor.rank", because="its result is a size, which has no dimension to shard")
without_rule("tensor.parallel_insert_slice", because="it has no results: it is in the terminator of a loop")
without_rule("tensor.yield", because="it is a terminator")


@sharding_rule("tensor.collapse_shape", "tensor.expand_shape")
def reassociate(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a reassociation: a collapsed dimension is made of the expanded ones, major to minor."""
    expands = op.name == "tensor.expand_shape"
    expanded = shape_of((op.results if expands else op.operands)[0].type)
    builder = RuleBuilder.for_op(op, 1)
    for whole, parts in enumerate(op.attributes["reassociation"]):
        for part in parts:
            operand_dim, result_dim = (whole, part.value) if expands else (part.value, whole)
            builder.add_factor([operand_dim], [result_dim], expanded[part.value])
    return without_ones(builder.build())


def reshape_beside_whole(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of a reshape of the first operand; other operands, such as sizes, must be replicated."""
    of_tensors = reshape_factors(op, options)
    if of_tensors is None:
        return None
    sizes, mappings = list(of_tensors.factor_sizes), list(of_tensors.operand_mappings)
    for value in list(op.operands)[1:]:
        shape = shape_of(value.type)
        mappings.append(TensorMapping.of(*((len(sizes) + dim,) for dim in range(len(shape)))))
        sizes += shape
    whole = tuple(range(len(of_tensors.factor_sizes), len(sizes)))
    return replace(
        of_tensors, factor_sizes=tuple(sizes), operand_mappings=tuple(mappings), need_replication_factors=whole
    )


sharding_rule("tensor.reshape")(reshape_beside_whole)


def joining(attribute: str) -> RuleFunction:
    """Returns a rule of concatenations: the dimension in an attribute is replicated, all others are pass-through."""

    def rule(op: Any, options: RuleOptions) -> OpShardingRule:
        builder, joined = RuleBuilder.for_op(op), op.attributes[attribute].value
        for dim, size in enumerate(shape_of(op.results[0].type)):
            if dim != joined:
                builder.add_common_factor(dim, size)
            elif not options.conservative:
                builder.add_common_factor(dim, size, FactorType.NEED_REPLICATION)
        return builder.build()

    return rule


sharding_rule("tensor.concat")(joining("dim"))


@sharding_rule("tensor.insert")
def insert(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of an insertion: each device sets the element if it is in its shard."""
    operands = [None, 0, *[None] * (len(op.operands) - 2)]
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.results[0].type)):
        builder.add_factor([dim if operand == 0 else None for operand in operands], [dim], size)
    return builder.build()


@sharding_rule("tensor.gather")
def gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a gather: batches of indices are pass-through; an indexed dimension must be replicated."""
    return _indexed(op, elements(op.attributes["gather_dims"]), FactorType.PASS_THROUGH)


@sharding_rule("tensor.scatter")
def scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a scatter: batches of updates and indexed dimensions must be replicated.

    Every shard needs all updates.
    """
    return _indexed(op, elements(op.attributes["scatter_dims"]), FactorType.NEED_REPLICATION)


def _indexed(op: Any, indexed: list[int], of_batch: FactorType) -> OpShardingRule:
    """Returns the rule that relates a tensor, indices into it, and slices.

    The leading dimensions of the slices are those of the indices without the last. The operands of a gather are
    (tensor, indices), and its result is the slices. The operands of a scatter are (slices, tensor, indices), and its
    result is the updated tensor.
    """
    gathers = op.name == "tensor.gather"
    tensor, indices, slices = (
        (op.operands[0], op.operands[1], op.results[0]) if gathers else (op.operands[1], op.operands[2], op.operands[0])
    )
    builder = RuleBuilder.for_op(op)

    def add(tensor_dim: int | None, indices_dim: int | None, slices_dim: int | None, size: int, type_: Any) -> None:
        if gathers:
            builder.add_factor([tensor_dim, indices_dim], [slices_dim], size, type_)
        else:
            builder.add_factor([slices_dim, tensor_dim, indices_dim], [tensor_dim], size, type_)

    shape, index_shape = shape_of(tensor.type), shape_of(indices.type)
    batch_rank = len(index_shape) - 1
    for dim, size in enumerate(index_shape[:-1]):
        add(None, dim, dim, size, of_batch)
    keeps_indexed = rank_of(slices.type) == batch_rank + len(shape)
    slices_dim = batch_rank
    for dim, size in enumerate(shape):
        if dim in indexed:
            add(dim, None, None, size, FactorType.NEED_REPLICATION)
            slices_dim += keeps_indexed
        else:
            add(dim, None, slices_dim, size, FactorType.PASS_THROUGH)
            slices_dim += 1
    add(None, batch_rank, None, index_shape[-1], FactorType.NEED_REPLICATION)
    return builder.build()


_DYNAMIC = ir.ShapedType.get_dynamic_size()


def _dims_of_slice(sizes: Sequence[int], shape: Sequence[int]) -> list[int | None]:
    """Returns the dimensions of a slice in a tensor of `shape`, which may omit those of size 1; None if omitted."""
    found: list[int | None] = []
    dim = 0
    for size in sizes:
        kept = dim < len(shape) and shape[dim] == size
        found.append(dim if kept else None)
        dim += kept
    return found


def _known_dims(op: Any) -> list[bool]:
    """Returns for each dimension whether the offset and the stride of the slice are constant."""
    pairs = zip(*(elements(op.attributes[f"static_{name}"]) for name in ("offsets", "strides")), strict=True)
    return [_DYNAMIC not in pair for pair in pairs]


@sharding_rule("tensor.extract_slice")
def extract_slice(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a slice: along a resized dimension with known offset and stride neighbours exchange elements.

    If they are not known, or if the result omits the resized dimension, the dimension must be replicated.
    """
    sizes = elements(op.attributes["static_sizes"])
    known = _known_dims(op)
    shape, result = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op, 1)
    for dim, (size, result_dim) in enumerate(zip(shape, _dims_of_slice(sizes, result), strict=True)):
        changed = FactorType.PERMUTATION if known[dim] and result_dim is not None else FactorType.NEED_REPLICATION
        type_ = FactorType.PASS_THROUGH if sizes[dim] == size else changed
        blocked = type_ is FactorType.NEED_REPLICATION or (options.conservative and type_ is FactorType.PERMUTATION)
        builder.add_factor([dim], [result_dim], size, type_, blocked=blocked)
    return builder.build()


@sharding_rule("tensor.insert_slice")
def insert_slice(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule by which every device writes into its shard the part of the slice that falls there.

    Along a dimension where the slice is smaller, the slice must be replicated unless its offset and stride are known.
    """
    sizes = elements(op.attributes["static_sizes"])
    known = _known_dims(op)
    source, shape = (shape_of(operand.type) for operand in list(op.operands)[:2])
    builder = RuleBuilder.for_op(op, 2)
    for dim, (size, source_dim) in enumerate(zip(shape, _dims_of_slice(sizes, source), strict=True)):
        if sizes[dim] == size:
            builder.add_factor([source_dim, dim], [dim], size)
            continue
        builder.add_factor([None, dim], [dim], size)
        if source_dim is not None:
            type_ = FactorType.PASS_THROUGH if known[dim] else FactorType.NEED_REPLICATION
            builder.add_factor([source_dim, None], [None], source[source_dim], type_)
    return builder.build()


@sharding_rule("tensor.pad")
def pad(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a pad: along a resized dimension elements move by the padding; neighbours exchange them."""
    return resized(op, FactorType.PERMUTATION, blocked=options.conservative)


partition_rule("tensor.gather", "tensor.scatter", pure=True)(set_result_types)
partition_rule("tensor.collapse_shape", "tensor.concat", allows_uneven=True, pure=True)(set_result_types)


@partition_rule("tensor.expand_shape", allows_uneven=True, pure=True)
def expand_shape(op: Any, blocks: Blocks) -> None:
    """Makes the op local: the sizes that it expands to are those of the shard."""
    set_result_types(op, blocks)
    op.attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(op.results[0].type.shape))


@partition_rule("tensor.extract_slice", allows_uneven=True, pure=True)
def partition_extract_slice(op: Any, blocks: Blocks) -> None:
    """Makes a slice local: along a sharded dimension it takes the shard, or if elements move, all that were brought."""
    set_result_types(op, blocks)
    _take_blocks(op, op.operands[0])
    if blocks.rule is None:
        return
    sizes, offsets = (elements(op.attributes[f"static_{name}"]) for name in ("sizes", "offsets"))
    for window in moving_windows(op, blocks):
        result_dim = dim_of(window.factor, blocks.rule.result_mappings[0])
        if result_dim is not None:
            offsets[window.dim], sizes[window.dim] = 0, op.results[0].type.shape[result_dim]
    op.attributes["static_sizes"], op.attributes["static_offsets"] = map(ir.DenseI64ArrayAttr.get, (sizes, offsets))


def _written_in_part(op: Any, rule: OpShardingRule) -> list[int]:
    """Returns the factors of dimensions of which a part is written, and those of the slice there."""
    sizes, shape = elements(op.attributes["static_sizes"]), shape_of(op.operands[1].type)
    whole = rule.operand_mappings[1]
    kept = {
        factor
        for dim, of_dim in enumerate(whole.dim_mappings)
        for factor in of_dim.factor_indices
        if sizes[dim] == shape[dim]
    }
    return [factor for factor in range(rule.num_factors) if factor not in kept]


@partition_rule("tensor.insert_slice", unshardable=_written_in_part, allows_uneven=True, pure=True)
def partition_insert_slice(op: Any, blocks: Blocks) -> None:
    """Makes an insertion local: along a sharded dimension the entire shard is written."""
    set_result_types(op, blocks)
    _take_blocks(op, op.operands[1])


def _take_blocks(op: Any, tensor: Any) -> None:
    sizes = [
        min(size, local) for size, local in zip(elements(op.attributes["static_sizes"]), tensor.type.shape, strict=True)
    ]
    op.attributes["static_sizes"] = ir.DenseI64ArrayAttr.get(sizes)
