# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes in attributes of sdy operations other than shardings, and their conversion to another mesh."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.ir.editing import operations_where, ops_below
from mlir_shard.sharding import (
    AllToAllParamList,
    AxisRef,
    AxisRefList,
    ListOfAxisRefLists,
    ManualAxes,
    TensorSharding,
    TensorShardingPerValue,
)
from mlir_shard.sharding.common_mesh import MeshChange


def ops_with_axes(module: Any) -> Iterator[tuple[Any, TensorSharding]]:
    """Yields the sdy operations with axes outside of shardings, each with a sharding on the mesh of these axes."""
    for op in operations_where(module, lambda name: name.startswith("sdy.")):
        if not any(True for _ in axis_values(op)):
            continue
        for name in ("out_sharding", "in_shardings", "out_shardings"):
            value = op.attributes[name].value if name in op.attributes else None
            shardings = (value,) if isinstance(value, TensorSharding) else tuple(value or ())
            if shardings:
                yield op, shardings[0]
                break


def axis_values(op: Any) -> Iterator[tuple[str, Any]]:
    """Yields the names and values of the attributes of an operation that list axes."""
    for name in op.attributes:
        attribute = op.attributes[name]
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
        if isinstance(value, AxisRefList | ListOfAxisRefLists | AllToAllParamList | ManualAxes):
            yield name, value


def axes_in(op: Any) -> Iterator[AxisRef]:
    """Returns the axes that the attributes of an operation list."""
    found: list[AxisRef] = []

    def note(axes: Iterable[AxisRef]) -> tuple[AxisRef, ...]:
        found.extend(noted := tuple(axes))
        return noted

    for _, value in axis_values(op):
        _changed(value, note)
    return iter(found)


def change_axes(op: Any, change: MeshChange) -> None:
    """Replaces the axes that an operation lists by those of the same devices on another mesh."""
    for name, value in axis_values(op):
        op.attributes[name] = sdy.attribute(_changed(value, change.axes), op.context)


def _changed(value: Any, changed: Callable[[Iterable[AxisRef]], tuple[AxisRef, ...]]) -> Any:
    """Returns the value with each list of axes changed."""
    if isinstance(value, AxisRefList):
        return AxisRefList(changed(value))
    if isinstance(value, ListOfAxisRefLists):
        return ListOfAxisRefLists(tuple(AxisRefList(changed(axes)) for axes in value))
    if isinstance(value, AllToAllParamList):
        return AllToAllParamList(tuple(replace(param, axes=changed(param.axes)) for param in value.value))
    return ManualAxes(tuple(axis.name for axis in changed(map(AxisRef, value))))


def shardings_within(root: Any) -> Iterator[tuple[Any, str, TensorSharding | TensorShardingPerValue]]:
    """Yields the sharding attributes of an operation and of those in its regions: operation, name and value."""
    for op in (root, *ops_below(root)):
        for name in op.attributes:
            attribute = op.attributes[name]
            value = attribute.value if isinstance(attribute, SdyAttribute) else None
            if isinstance(value, TensorSharding | TensorShardingPerValue):
                yield op, name, value
