# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of custom calls, by the names that JAX and XLA use, of composites, and of collectives over other devices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mlir_shard.dialects.sdy import enclosing_module
from mlir_shard.host import ir
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import functions
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.replica_groups import REPLICA_GROUPS, lists_of
from mlir_shard.ir.stablehlo import call_target
from mlir_shard.rules.builder import Dims, RuleBuilder, ordered_along_last, pointwise, shape_of
from mlir_shard.rules.elementwise import elementwise
from mlir_shard.rules.partition import Blocks, PartitionError, partition_rule, set_result_types
from mlir_shard.rules.registry import RuleFunction, RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_DECOMPOSITION = "decomposition"
CUSTOM_CALL = "stablehlo.custom_call"


def calls_of(*targets: str) -> tuple[str, ...]:
    """Returns the names of custom calls with these targets, as registrations take them."""
    return tuple(f"{CUSTOM_CALL}:{target}" for target in targets)


def _seeds_random_bits(op: Any) -> bool:
    return any(use.owner.name == "stablehlo.rng_bit_generator" for result in op.results for use in result.uses)


sharding_rule(
    *calls_of(
        *("annotate_device_placement", "Cholesky", "CompactWyHelper", "InspectSharding"),
        *("InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular"),
        *("LayoutConstraint", "MoveToDevice", "MoveToHost", "X64SplitHigh", "X64SplitLow"),
        *("_SPMDInternalOp_MultiPad", "_SPMDInternalOp_MultiRotate", "_SPMDInternalOp_MultiSlice"),
        *("_SPMDInternalOp_RotateRight", "_SPMDInternalOp_Wrap"),
        *("mhlo.erf", "xla.megascale.provide_metadata"),
    )
)(elementwise)


@sharding_rule(*calls_of("X64Combine"), context_key=_seeds_random_bits)
def combined_words(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns an elementwise rule; the state of a random generator must be replicated, and propagates no sharding."""
    if not _seeds_random_bits(op):
        return pointwise(op)
    shape = shape_of(op.results[0].type)
    dims = range(len(shape))
    return RuleBuilder.for_op(op).add_pointwise(shape, dims, FactorType.NEED_REPLICATION, blocked=dims).build()


@sharding_rule(*calls_of("Eigh"))
def eigh(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of an eigendecomposition: matrix dimensions correspond; eigenvalues have the last one."""
    if not _is_call(op, 1, 2):
        return None
    shape = shape_of(op.operands[0].type)
    row, column = len(shape) - 2, len(shape) - 1
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(shape[:-2])
        .add_factor([row], [row, None], shape[row])
        .add_factor([column], [column, row], shape[column])
        .build()
    )


@sharding_rule(*calls_of("ProductOfElementaryHouseholderReflectors", "Qr", "QrDecompositionBlock"))
def qr(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of a QR decomposition: matrix dimensions and that of the coefficients must be replicated.

    The product of reflectors is the inverse of the decomposition: the coefficients are an operand.
    """
    is_product = call_target(op).startswith("Product")
    operands, results = (2, 1) if is_product else (1, 2)
    if not _is_call(op, operands, results):
        return None
    shape = shape_of(op.operands[0].type)
    row, column = len(shape) - 2, len(shape) - 1
    coefficients = shape_of((op.operands if is_product else op.results)[1].type)[row]
    builder = RuleBuilder.for_op(op).add_pointwise(shape[:-2])
    of_both: list[tuple[Dims, int]] = [([dim, None], shape[dim]) for dim in (row, column)]
    for dims, size in (*of_both, ([None, row], coefficients)):
        builder.add_factor(dims[:operands], dims[:results], size, FactorType.NEED_REPLICATION)
    return builder.build()


@sharding_rule(*calls_of("mhlo.topk"))
def top_k(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of a top-k: the last dimension, of which the largest elements are taken, must be replicated."""
    return ordered_along_last(op) if _is_call(op, 1, 2) else None


@sharding_rule(*calls_of("ApproxTopK", "PartialReduce"))
def partial_reduce(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of a partial reduction of values and their indices.

    Each device may reduce its own elements; a resized dimension of the results must be replicated.
    """
    if not _is_call(op, 4, 2):
        return None
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op)
    for dim, (size, result_size) in enumerate(zip(before, after, strict=True)):
        if size == result_size:
            builder.add_common_factor(dim, size)
        else:
            builder.add_factor([dim, dim, None, None], [None, None], size)
            builder.add_factor([None] * 4, [dim, dim], result_size, FactorType.NEED_REPLICATION, blocked=True)
    return builder.build()


# Their results depend on all elements of a matrix, though the matrix dimensions correspond.
_OF_MATRICES = (
    *("Cholesky", "CompactWyHelper", "Eigh", "InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular"),
)


def _not_local(op: Any, rule: OpShardingRule) -> Collection[int]:
    """Returns the factors along which a call of a known target needs more than its shards."""
    target = call_target(op)
    if rule.is_custom_rule:
        return ()
    if target.startswith("_SPMDInternalOp"):
        return range(rule.num_factors)
    if target == "ApproxTopK" and "mhlo.backend_config" in op.attributes:
        # Without aggregation the reduced dimension may keep its size; each device would select from its own elements.
        dim = op.attributes["mhlo.backend_config"]["reduction_dim"].value
        return rule.operand_mappings[0].dim_mappings[dim].factor_indices
    if target not in _OF_MATRICES:
        return ()
    return [factor for dim in rule.operand_mappings[0].dim_mappings[-2:] for factor in dim.factor_indices]


partition_rule(CUSTOM_CALL, unshardable=_not_local, pure=True)(set_result_types)


def _local_composite(op: Any, blocks: Blocks) -> None:
    """Makes a composite local: the same one on shards; its decomposition is declared for these, without a body."""
    set_result_types(op, blocks)
    module = enclosing_module(op)
    inputs, results = ([value.type for value in values] for values in (op.operands, op.results))
    type_ = ir.TypeAttr.get(ir.FunctionType.get(inputs, results, op.context))
    name, known = op.attributes[_DECOMPOSITION].value, functions(module)
    if known[name].attributes["function_type"] == type_:
        return
    declared = [f"{name}_local{number or ''}" for number in range(len(known) + 1)]
    local = next(one for one in declared if one not in known or known[one].attributes["function_type"] == type_)
    if local not in known:
        attributes = {"sym_name": ir.StringAttr.get(local), "function_type": type_}
        attributes["sym_visibility"] = ir.StringAttr.get("private")
        with ir.InsertionPoint(module.regions[0].blocks[0]):
            ir.Operation.create("func.func", attributes=attributes, regions=1)
    op.attributes[_DECOMPOSITION] = ir.FlatSymbolRefAttr.get(local)


partition_rule("stablehlo.composite")(_local_composite)


def _is_call(op: Any, operands: int, results: int) -> bool:
    """Returns whether the call has the numbers of operands and results that are known for its target."""
    return len(op.operands) == operands and len(op.results) == results


# Devices exchange elements at the same positions of their tensors.
sharding_rule(*op_names("stablehlo", "all_reduce collective_broadcast collective_permute cross-replica-sum"))(
    elementwise
)


def _changing(*attributes: str) -> RuleFunction:
    """Returns a rule of collectives: the dimensions in attributes must be replicated, with a factor for each side."""

    def rule(op: Any, options: RuleOptions) -> OpShardingRule:
        dims = dict.fromkeys(op.attributes[name].value for name in attributes)
        before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
        builder = RuleBuilder.for_op(op)
        for dim, size in enumerate(before):
            if dim not in dims:
                builder.add_common_factor(dim, size)
        for dim in dims:
            builder.add_factors_of_sides(dim, before[dim], after[dim])
        return builder.build()

    return rule


sharding_rule("stablehlo.all_gather")(_changing("all_gather_dim"))
sharding_rule("stablehlo.all_to_all")(_changing("split_dimension", "concat_dimension"))
sharding_rule("stablehlo.reduce_scatter")(_changing("scatter_dimension"))


def _same_on_shards(op: Any, blocks: Blocks) -> None:
    """Makes a collective local. Raises PartitionError if the devices of a group have different shards of an operand."""
    groups: Sequence[Sequence[int]] = ()
    if "source_target_pairs" in op.attributes:
        pairs = elements(op.attributes["source_target_pairs"])
        groups = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    elif isinstance(op.attributes[REPLICA_GROUPS], ir.DenseElementsAttr):
        groups = lists_of(op)
    for tensor in blocks.operands:
        for dim, count in enumerate(tensor.counts):
            numbers = tensor.block_numbers(dim) if count > 1 else ()
            if numbers and any(len({numbers[device] for device in group}) > 1 for group in groups):
                raise PartitionError(f"its devices have different shards along dimension {dim} of an operand")
    set_result_types(op, blocks)


partition_rule(
    *op_names("stablehlo", "all_reduce collective_broadcast collective_permute"), allows_uneven=True, pure=True
)(_same_on_shards)
partition_rule(*op_names("stablehlo", "all_gather all_to_all reduce_scatter"), pure=True)(_same_on_shards)
