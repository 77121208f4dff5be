# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of arith, math, complex, chlo, sdy and others, whose ops are elementwise on tensors or have no rule.

Also the partition rules of ops that are the same op on local types, and of constants.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.op_names import op_names
from mlir_shard.rules.builder import RuleBuilder, ordered_along_last, shape_of
from mlir_shard.rules.elementwise import is_elementwise, register_elementwise
from mlir_shard.rules.partition import Blocks, count_once, neutral_initial_values, partition_rule, set_result_types
from mlir_shard.rules.registry import RuleOptions, sharding_rule, without_rule
from mlir_shard.sharding.rule import OpShardingRule

register_elementwise("arith.*")
without_rule("arith.constant", because="it has no operands: its users determine its sharding")
register_elementwise("math.*")
register_elementwise("complex.*")
without_rule("complex.constant", because="it has no operands: its users determine its sharding")
without_rule("ml_program.*", because="it reads or writes a global, or contains code, and does not relate tensors")
without_rule("shape.*", because="its tensors are extents of shapes, which every device needs entirely")
without_rule("bufferization.*", because="it operates on memory, which is not sharded")


@sharding_rule("bufferization.alloc_tensor", "bufferization.materialize_in_destination")
def same_shape(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns a rule by which all tensors correspond; None if the destination is memory or nothing is copied."""
    if not len(op.results) or not any(isinstance(value.type, ir.RankedTensorType) for value in op.operands):
        return None
    return RuleBuilder.for_op(op).add_pointwise(shape_of(op.results[0].type)).build()


partition_rule("bufferization.materialize_in_destination", allows_uneven=True, pure=True)(set_result_types)


register_elementwise(
    *op_names(
        "chlo",
        "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf "
        "lgamma mulhi next_after polygamma sinh square tan zeta",
    ),
)
without_rule("chlo.constant", because="it has no operands: its users determine its sharding")


@sharding_rule(
    *op_names(
        "chlo",
        "broadcast_add broadcast_and broadcast_atan2 broadcast_compare broadcast_complex broadcast_divide "
        "broadcast_maximum broadcast_minimum broadcast_multiply broadcast_next_after broadcast_or broadcast_polygamma "
        "broadcast_power broadcast_remainder broadcast_select broadcast_shift_left broadcast_shift_right_arithmetic "
        "broadcast_shift_right_logical broadcast_subtract broadcast_xor broadcast_zeta",
    ),
)
def broadcasting(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns a rule with a factor for each result dimension, mapped to the operands that are not stretched along it.

    Operands are aligned at their last dimensions; if `broadcast_dimensions` is given, it has the result dimensions of
    the smaller operand.
    """
    result = shape_of(op.results[0].type)
    shapes = [shape_of(operand.type) for operand in op.operands]
    given = elements(op.attributes["broadcast_dimensions"]) if "broadcast_dimensions" in op.attributes else None
    builder = RuleBuilder.for_op(op)
    followed = []
    for shape in shapes:
        aligned = range(len(result) - len(shape), len(result))
        along = given if given is not None and len(shape) < len(result) else aligned
        followed.append({result_dim: dim for dim, result_dim in enumerate(along) if shape[dim] == result[result_dim]})
    for result_dim, size in enumerate(result):
        builder.add_factor([of_operand.get(result_dim) for of_operand in followed], [result_dim], size)
    return builder.build()


@sharding_rule("chlo.top_k")
def top_k(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a top-k: the last dimension, of which the largest elements are taken, must be replicated."""
    return ordered_along_last(op)


register_elementwise("sdy.sharding_constraint")
without_rule(
    *op_names(
        "sdy",
        "data_flow_edge func_data_flow_edge manual_computation named_computation propagation_barrier return "
        "sharding_group",
    ),
    because="propagation handles it without a rule",
)
without_rule(
    *op_names(
        "sdy",
        "all_gather all_reduce all_slice all_to_all collective_permute reduce_scatter replicated_to_unreduced reshard "
        "sharded_to_unreduced",
    ),
    because="it changes the sharding of its operand to a given one",
)
without_rule("sdy.constant", "sdy.mesh", because="it has no operand")
# Their shapes are only in their types.
partition_rule(
    *("linalg.softmax", *op_names("stablehlo", "dot dot_general reshape transpose")),
    when=lambda op: is_elementwise(op.name),
    allows_uneven=True,
    pure=True,
)(set_result_types)
partition_rule(
    "stablehlo.broadcast_in_dim", "tensor.empty", "tensor.splat", makes_elements=True, allows_uneven=True, pure=True
)(set_result_types)


@partition_rule("stablehlo.reduce", allows_uneven=True, pure=True)
def reduce(op: Any, blocks: Blocks) -> None:
    """Makes a reduction local: the same reduction on shards; along a sharded dimension its result is partial.

    A sum begins with its initial value on one device and with zero on the others, so that the value counts once;
    likewise for other reductions whose result changes if the initial value is repeated.
    """
    set_result_types(op, blocks)
    axes = blocks.reduction_axes
    if axes:
        count_once(op, neutral_initial_values(op, len(op.results)), axes, blocks)


@partition_rule("arith.constant", "stablehlo.constant", allows_uneven=True, pure=True)
def constant(op: Any, blocks: Blocks) -> bool:
    """Makes a constant local: a splat becomes a smaller splat; any other constant stays entire."""
    smaller = smaller_splat(op.attributes["value"], blocks.result_types[0])
    if smaller is None:
        return False
    op.attributes["value"] = smaller
    set_result_types(op, blocks)
    return True


def smaller_splat(value: Any, type_: Any) -> Any | None:
    """Returns the same splat for another type; None if the attribute is not a splat of a number.

    If the type has no elements, the attribute need not be a splat.
    """
    if not isinstance(value, ir.DenseElementsAttr):
        return None
    if 0 in type_.shape:
        return ir.Attribute.parse(f"dense<> : {type_}")
    if not value.is_splat:
        return None
    if not isinstance(type_.element_type, ir.IntegerType | ir.FloatType | ir.IndexType):
        return None
    return ir.DenseElementsAttr.get_splat(type_, value.get_splat_value())
