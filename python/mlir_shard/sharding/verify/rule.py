# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invariants of sharding rules and propagation edges, alone and against their ops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.propagation_edges import AxisToPropagationDetails, EdgeNodeType, EdgeValueRef, PropagationEdges
from mlir_shard.sharding.rule import DimMapping, FactorType, OpShardingRule, TensorMapping, factor_symbol
from mlir_shard.sharding.verify.tensor import NoShape, Shape, value_name


def check_op_sharding_rule(
    rule: OpShardingRule, operand_shapes: Sequence[Shape], result_shapes: Sequence[Shape]
) -> str | None:
    """Checks that the rule is consistent and fits the shapes of the op's operands and results."""
    for factor, size in enumerate(rule.factor_sizes):
        if size < 0:
            return f"factor {factor_symbol(factor)} has the negative size {size}"
    return (
        _check_mappings(rule, rule.operand_mappings, operand_shapes, "operand")
        or _check_mappings(rule, rule.result_mappings, result_shapes, "result")
        or _check_all_used(rule)
        or _check_special_factors(rule)
        or _check_reduction_factors(rule)
    )


def check_factor_sizes(
    rule: OpShardingRule, operand_shapes: Sequence[Sequence[int]], result_shapes: Sequence[Sequence[int]]
) -> str | None:
    """Checks that the size of a dimension whose factors all pass through is the product of their sizes.

    Other factors correspond to sizes in other ways: a factor that a window slides along, for example, has the size of
    one side. Rules that are attached to ops may ignore sizes, so this is not an invariant of those.
    """
    shapes = (*operand_shapes, *result_shapes)
    for index, (mapping, shape) in enumerate(zip(rule.tensor_mappings, shapes, strict=True)):
        for dim, (of, size) in enumerate(zip(mapping.dim_mappings, shape, strict=True)):
            made = math.prod(rule.factor_sizes[factor] for factor in of.factor_indices)
            if made not in (1, size) and all(_passes_through(rule, factor) for factor in of.factor_indices):
                inputs = len(operand_shapes)
                name = f"operand {index}" if index < inputs else f"result {index - inputs}"
                factors = " x ".join(f"{factor_symbol(one)}={rule.factor_sizes[one]}" for one in of.factor_indices)
                return f"dim {dim} of {name} has size {size}, but the rule requires {factors}"
    return None


def _passes_through(rule: OpShardingRule, factor: int) -> bool:
    return rule.factor_type(factor) is FactorType.PASS_THROUGH and not rule.is_blocked(factor)


def _check_mappings(
    rule: OpShardingRule, mappings: Sequence[TensorMapping], shapes: Sequence[Shape], kind: str
) -> str | None:
    if len(mappings) != len(shapes):
        return f"the rule maps {len(mappings)} {kind}s, but the op has {len(shapes)}"
    if not mappings:
        return f"the rule maps no {kind}s, but must map operands and results"
    for index, (mapping, shape) in enumerate(zip(mappings, shapes, strict=True)):
        violation = _check_static(shape) or _check_mapping(rule, mapping, shape)
        if violation:
            return f"{value_name(kind, index, len(shapes))}: {violation}"
    return None


def _check_static(shape: Shape) -> str | None:
    if isinstance(shape, NoShape):
        return f"a rule requires tensors with a static shape, but this is {shape.value}"
    if None in shape:
        return f"a rule requires tensors with a static shape, but dim {list(shape).index(None)} is dynamic"
    return None


def _check_mapping(rule: OpShardingRule, mapping: TensorMapping, shape: Shape) -> str | None:
    if not isinstance(shape, NoShape) and mapping.rank != len(shape):
        return f"the mapping {mapping} has {mapping.rank} dimensions, but the tensor has {len(shape)}"
    first_dim: dict[int, int] = {}
    for dim, of in enumerate(mapping.dim_mappings):
        if violation := _check_dim_mapping(rule, of):
            return f"dim {dim}: {violation}"
        for factor in of.factor_indices:
            if factor in first_dim:
                return f"dim {dim}: factor {factor_symbol(factor)} is already in dim {first_dim[factor]} of this tensor"
            first_dim[factor] = dim
    return None


def _check_dim_mapping(rule: OpShardingRule, dim: DimMapping) -> str | None:
    if not dim.factor_indices:
        return "the dimension must be mapped to at least one factor"
    for factor in dim.factor_indices:
        if not 0 <= factor < rule.num_factors:
            return f"{_unknown(factor)}: the rule has {rule.num_factors} factors"
        if rule.factor_sizes[factor] == 1 and len(dim.factor_indices) > 1:
            return f"factor {factor_symbol(factor)} of size 1 cannot be one of several factors of a dimension"
    if len(set(dim.factor_indices)) < len(dim.factor_indices):
        return f"'{dim}' has a factor twice"
    return None


def _check_all_used(rule: OpShardingRule) -> str | None:
    for factor, size in enumerate(rule.factor_sizes):
        if not any(mapping.contains_factor(factor) for mapping in rule.tensor_mappings):
            return f"factor {factor_symbol(factor)}={size} does not occur in any operand or result"
    return None


def _check_special_factors(rule: OpShardingRule) -> str | None:
    types = {
        "reduction": rule.reduction_factors,
        "need_replication": rule.need_replication_factors,
        "permutation": rule.permutation_factors,
    }
    for name, factors in (*types.items(), ("blocked_propagation", rule.blocked_propagation_factors)):
        if violation := _check_index_set(rule, factors):
            return f"{name} factors: {violation}"
    type_of: dict[int, str] = {}
    for name, factors in types.items():
        for factor in factors:
            if factor in type_of:
                return (
                    f"factor {factor_symbol(factor)} is both a {type_of[factor]} and a {name} factor, but must have "
                    "one type"
                )
            type_of[factor] = name
    return None


def _check_index_set(rule: OpShardingRule, factors: Sequence[int]) -> str | None:
    for factor in factors:
        if not 0 <= factor < rule.num_factors:
            return f"{_unknown(factor)}: the rule has {rule.num_factors} factors"
    if len(set(factors)) < len(factors):
        twice = next(factor for factor in factors if factors.count(factor) > 1)
        return f"{factor_symbol(twice)} is given more than once"
    if list(factors) != sorted(factors):
        return f"must be in ascending order: {', '.join(map(factor_symbol, sorted(factors)))}"
    return None


def _check_reduction_factors(rule: OpShardingRule) -> str | None:
    for factor in rule.reduction_factors:
        for index, mapping in enumerate(rule.result_mappings):
            if mapping.contains_factor(factor):
                name = value_name("result", index, len(rule.result_mappings))
                return f"reduction factor {factor_symbol(factor)} must not occur in {name}"
    return None


def _unknown(factor: int) -> str:
    return f"unknown factor {factor_symbol(factor)}" if factor >= 0 else f"unknown factor {factor}"


def check_propagation_edges(edges: PropagationEdges) -> str | None:
    """Checks that steps have distinct indices of at least 0, and each axis is propagated to other values, once each."""
    seen: set[int] = set()
    for step in edges.value:
        if step.step_index < 0:
            return f"propagation step {step.step_index} is negative"
        if step.step_index in seen:
            return f"propagation step {step.step_index} is given twice"
        seen.add(step.step_index)
        for entry in step.axis_entries:
            if violation := _check_entry(entry):
                return f"propagation step {step.step_index}: {violation}"
    return None


def check_edges_on_op(
    edges: PropagationEdges, mesh: Mesh | None, operands: int | None, results: int | None
) -> str | None:
    """Checks that the axes are in the mesh and the values are among the op's operands and results.

    `mesh` is the one mesh of all shardings that the edges refer to, None if there are several. A count of None is not
    checked: the edges of an op that represents a function's values may refer to any of these.
    """
    if mesh is None:
        return "propagation edges must be between values whose shardings have the same mesh"
    for step in edges.value:
        for entry in step.axis_entries:
            violation = _check_entry_on_op(entry, mesh, operands, results)
            if violation:
                return f"propagation step {step.step_index}: {violation}"
    return None


def _check_entry(entry: AxisToPropagationDetails) -> str | None:
    if entry.source in entry.targets:
        return f"axis {entry.axis_name} propagates from {entry.source} to itself"
    for target in entry.targets:
        if entry.targets.count(target) > 1:
            return f"axis {entry.axis_name} propagates to {target} more than once"
    return None


def _check_entry_on_op(
    entry: AxisToPropagationDetails, mesh: Mesh, operands: int | None, results: int | None
) -> str | None:
    if not mesh.has_axis(entry.axis_name.name):
        return f'unknown axis "{entry.axis_name.name}": it is not in the mesh {mesh}'
    for value in (entry.source, *entry.targets):
        if violation := _check_value(value, operands, results):
            return violation
    return None


def _check_value(value: EdgeValueRef, operands: int | None, results: int | None) -> str | None:
    count = operands if value.type is EdgeNodeType.OPERAND else results
    if count is not None and not 0 <= value.index < count:
        return f"unknown value {value}: the op has {count} {value.type.value}s"
    return None
