# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that reject programs too large to partition, or with dynamic sizes, before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.passes.registry import PassFailure
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.mesh import TooManyDevicesError

MOST_ELEMENTS = 1 << 62
"""The largest number of elements of a tensor: with padding, it still fits an i64."""


def check_devices(module: Any, meshes: Mapping[str, Mesh]) -> None:
    """Raises PassFailure at the first mesh of `module` with too many devices to list."""
    for name, mesh in meshes.items():
        try:
            _ = mesh.listed_size
        except TooManyDevicesError as error:
            raise PassFailure(str(error), _definition(module, name)) from error


def check_sizes(root: Any, representatives: Iterable[Any] | None = None) -> None:
    """Raises PassFailure at the first operation below `root` with a tensor of more than `MOST_ELEMENTS` elements.

    Args:
        root: a module or a function.
        representatives: an operation of each signature in `root`, where these are known.
    """
    known: set[Any] = set()
    for op in ModuleArrays(root).representatives() if representatives is None else representatives:
        for type_ in _types(op):
            if type_ in known:
                continue
            known.add(type_)
            if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
                continue
            count = prod(type_.shape)
            if count > MOST_ELEMENTS:
                raise PassFailure(
                    f"'{op.name}' op has a tensor of type {type_} with {count} elements, more than the "
                    f"{MOST_ELEMENTS} that can be partitioned",
                    op,
                )


def _types(op: Any) -> Iterator[Any]:
    for values in (op.operands, op.results):
        for value in values:
            yield value.type
    if op.name == "func.func":
        signature = op.attributes["function_type"].value
        yield from (*signature.inputs, *signature.results)


def _definition(module: Any, name: str) -> Any:
    """Returns the operation that defines a mesh, or the module if none exists."""
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "sdy.mesh" and op.operation.attributes["sym_name"].value == name:
            return op.operation
    return module


def is_dynamic(type_: Any) -> bool:
    """Returns whether the rank or a size of a type is unknown."""
    return isinstance(type_, ir.ShapedType) and not (type_.has_rank and type_.has_static_shape)


def dynamic_value(op: Any) -> str | None:
    """Returns a description of the first operand or result of dynamic shape, with its type; None if none exists."""
    for kind, values in (("operand", op.operands), ("result", op.results)):
        for number, value in enumerate(values):
            if is_dynamic(value.type):
                return f"{kind} {number} has type {value.type}"
    return None


def is_by_replica(op: Any, replica_count: int, partition_count: int) -> bool:
    """Returns whether devices are told apart by `replica_id`; raises PassFailure if both counts are above 1."""
    if replica_count > 1 and partition_count > 1:
        counts = f"{replica_count} replicas of {partition_count} partitions"
        raise PassFailure(f"{counts} cannot be identified by one id: replica-count or partition-count must be 1", op)
    return replica_count > 1
