# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings at the boundaries of functions that divide the tensors evenly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd
from typing import Any

from mlir_shard.asm.editor import attribute_columns
from mlir_shard.dialects import sdy
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, TensorSharding
from mlir_shard.transforms.call_graph import functions
from mlir_shard.transforms.data_flow_edges import (
    MANUAL,
    argument_owners,
    argument_shardings,
    result_shardings,
    set_argument_shardings,
    set_result_shardings,
)
from mlir_shard.transforms.function_shardings import Side, replace_shardings
from mlir_shard.transforms.operations import operations_named


@register
class UpdateNonDivisibleInputOutputShardings(Pass):
    """Shards arguments and results of functions, calls and manual computations along as many of their axes, from the
    major one on, as divide each dimension evenly: nobody outside has to pad a tensor."""

    name = "sdy-update-non-divisible-input-output-shardings"
    anchor = "builtin.module"
    summary = "Makes the shardings of inputs and outputs divide their dimensions evenly"

    def run(self, op: Any) -> None:
        meshes = sdy.meshes(op)
        for function in functions(op).values():
            for side in Side:
                replace_shardings(function, side, lambda sharding, type_: _even(sharding, shape_of(type_), meshes))
        for one in _with_shardings(op):
            results = result_shardings(one)
            if results is not None:
                even = _evenly(results, [result.type for result in one.results], meshes)
                if even != list(results):
                    set_result_shardings(one, even)
            arguments = argument_shardings(one)
            if arguments is not None:
                types = [argument.type for argument in argument_owners(one)]
                set_argument_shardings(one, _evenly(arguments, types, meshes))


def _with_shardings(module: Any) -> list[Any]:
    """The manual computations, and the calls whose results are sharded at all."""
    ops = operations_named(module, "func.call", MANUAL)
    (shardings,) = attribute_columns(ops, sdy.SHARDING)
    is_even = {attribute: _is_unsharded(attribute) for attribute in set(shardings)}
    return [op for op, attribute in zip(ops, shardings, strict=True) if op.name == MANUAL or not is_even[attribute]]


def _is_unsharded(attribute: Any) -> bool:
    return attribute is None or all(sharding.is_fully_replicated for sharding in attribute.value.shardings)


def _evenly(
    shardings: Sequence[TensorSharding], types: Sequence[Any], meshes: Mapping[str, Mesh]
) -> list[TensorSharding]:
    return [_even(sharding, shape_of(type_), meshes) for sharding, type_ in zip(shardings, types, strict=True)]


def _even(sharding: TensorSharding, shape: Sequence[int], meshes: Mapping[str, Mesh]) -> TensorSharding:
    # Dynamic sizes are negative, and what is no tensor has none.
    if len(shape) != sharding.rank or any(size < 0 for size in shape):
        return sharding
    mesh = sharding.mesh_or_ref if isinstance(sharding.mesh_or_ref, Mesh) else meshes.get(sharding.mesh_or_ref)
    if mesh is None:
        return sharding
    dims = tuple(_even_dim(dim, size, mesh) for dim, size in zip(sharding.dim_shardings, shape, strict=True))
    return sharding if dims == sharding.dim_shardings else replace(sharding, dim_shardings=dims)


def _even_dim(dim: DimensionSharding, size: int, mesh: Mesh) -> DimensionSharding:
    """The longest prefix of the axes, the last of them perhaps a sub-axis, that divides a dimension of that size."""
    if size % dim.sharded_size(mesh) == 0:
        return dim
    axes: list[AxisRef] = []
    for axis in dim.axes:
        whole = axis.size(mesh)
        part = gcd(whole, size)
        if part > 1:
            axes.append(axis if part == whole else AxisRef.sub(axis.name, axis.pre_size, part))
        if part < whole:
            break
        size //= part
    return DimensionSharding(tuple(axes), dim.is_closed)
