# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is asked of a collective of upstream's shard dialect before it is lowered: all that would end in a wrong
program, in ranks that abort, or in ranks that wait for ever, as far as the text shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mlir_shard.dialects import shard
from mlir_shard.host import ir
from mlir_shard.passes import diagnostic
from mlir_shard.passes.diagnostic import Diagnostic
from mlir_shard.runtime import device_in_group, mpi_abi
from mlir_shard.runtime.device_group import DeviceGroup
from mlir_shard.runtime.error import RunError

Grids = Mapping[str, tuple[int, ...]]

_NAMED_DEVICES = ("root", "destination", "source")


def error(message: str, op: Any) -> RunError:
    """The error that an operation gives rise to."""
    return errors([diagnostic.at("error", message, op.location)])


def errors(diagnostics: Sequence[Diagnostic]) -> RunError:
    """One error with all `diagnostics`."""
    return RunError("the program cannot be lowered to MPI", diagnostics)


def group_of(op: Any, grids: Grids) -> DeviceGroup:
    """The group along the axes of an operation; RunError where the grid is not defined or its shape not known."""
    grid = op.attributes["grid"].value
    if grid not in grids:
        raise error(f"'{op.name}' is on the grid @{grid}, which the module does not define", op)
    if shard.DYNAMIC in grids[grid]:
        raise error(f"'{op.name}' is on the grid @{grid}, whose shape is not known before the program is run", op)
    return DeviceGroup.along(grid, grids[grid], device_in_group.axes_of(op))


def check(op: Any, group: DeviceGroup) -> None:
    """RunError names what is wrong with an operation on `group`."""
    source, target = op.operands[0].type, op.result.type
    for type_ in (source, target):
        if not isinstance(type_, ir.RankedTensorType):
            raise error(f"'{op.name}' of {type_}: only tensors can be lowered to MPI", op)
        if not type_.has_static_shape:
            raise error(f"'{op.name}' of {type_}: all sizes must be known before the program is run", op)
        if prod(type_.shape) > mpi_abi.MOST_ELEMENTS:
            raise error(f"'{op.name}' of {type_}: MPI counts no more than {mpi_abi.MOST_ELEMENTS} elements", op)
    _check_shape(op, group, list(source.shape), list(target.shape))
    for name in _NAMED_DEVICES:
        _check_device(op, name, group)


def _check_shape(op: Any, group: DeviceGroup, shape: list[int], result: list[int]) -> None:
    for name, divides in (("split_axis", True), ("slice_axis", True), ("scatter_dim", True), ("gather_axis", False)):
        if name in op.attributes:
            dim = op.attributes[name].value
            if dim >= len(shape):
                raise error(f"'{op.name}' of {op.operands[0].type}: it has no dimension {dim}", op)
            if divides and shape[dim] % group.size:
                wrong = f"dimension {dim} of {op.operands[0].type} does not divide into {group.size} blocks"
                raise error(f"'{op.name}': {wrong}, one for each device of a group", op)
            shape[dim] = shape[dim] // group.size if divides else shape[dim] * group.size
    if "concat_axis" in op.attributes:
        shape[op.attributes["concat_axis"].value] *= group.size
    if shape != result:
        right = shard.resized(op.result.type, shape)
        raise error(f"'{op.name}' gives {op.result.type} where the devices along its axes make it {right}", op)


def _check_device(op: Any, name: str, group: DeviceGroup) -> None:
    numbers, axes = device_in_group.named(op, name), device_in_group.axes_of(op)
    if numbers is None:
        return
    if len(numbers) != len(axes):
        raise error(f"the {name} of '{op.name}' has {len(numbers)} coordinates for {len(axes)} grid axes", op)
    for axis, number in zip(axes, numbers, strict=True):
        size = group.shape[axis]
        if number is not None and not 0 <= number < size:
            raise error(f"the {name} of '{op.name}' is {number} along the grid axis {axis}, which has size {size}", op)
