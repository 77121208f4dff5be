# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The collectives of a local module, of upstream's `shard` and of StableHLO, as values.

For messages, index arithmetic is evaluated on each device, for the device that it sends to or receives from.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from mlir_shard.deferred import numpy as np
from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import in_modules, operations_named
from mlir_shard.ir.replica_groups import REPLICA_GROUPS, axes_of, mesh_or_ref_of
from mlir_shard.ir.values import defining_op, element_size
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.cost.communication import CollectiveKind, Communication, GroupAxis, Received
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.shardings import listed_meshes

if TYPE_CHECKING:
    import numpy.typing as npt

Numbers: TypeAlias = "npt.NDArray[np.int64]"
_ARITHMETIC: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "arith.addi": operator.add,
    "arith.divsi": operator.floordiv,
    "arith.divui": operator.floordiv,
    "arith.muli": operator.mul,
    "arith.remsi": operator.mod,
    "arith.remui": operator.mod,
    "arith.subi": operator.sub,
}
_CASTS = frozenset({"arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci"})


class IndexValues:
    """The index values on every device of one grid of `shape`, devices in row-major order."""

    def __init__(self, shape: Sequence[int]) -> None:
        self._shape = tuple(shape)
        self._places = np.indices(self._shape, np.int64).reshape(len(self._shape), -1)
        self._known: dict[Any, Numbers | None] = {}

    def of(self, value: Any) -> Numbers | None:
        """Returns the value on each device; None if it depends on more than the position of the device."""
        if value not in self._known:
            self._known[value] = self._evaluate(value)
        return self._known[value]

    def _evaluate(self, value: Any) -> Numbers | None:
        op = defining_op(value)
        if op is None:
            return None
        if op.name == "shard.process_multi_index":
            axes = elements(op.attributes["axes"]) or range(len(self._shape))
            number = next(number for number, result in enumerate(op.results) if result == value)
            return self._places[axes[number]]
        if op.name == "shard.process_linear_index":
            return np.arange(self._places.shape[1], dtype=np.int64)
        if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
            return np.full(self._places.shape[1], op.attributes["value"].value, np.int64)
        if op.name == "tensor.extract":
            return self._entry(op)
        if op.name in _CASTS:
            return self.of(op.operands[0])
        numbers = [self.of(operand) for operand in op.operands] if op.name in _ARITHMETIC else []
        known = [one for one in numbers if one is not None]
        return _ARITHMETIC[op.name](*known) if len(known) == 2 else None

    def _entry(self, op: Any) -> Numbers | None:
        """Returns an element of a constant table, or of a slice of one, on each device."""
        table, *positions = op.operands
        place = self.of(positions[0]) if len(positions) == 1 else None
        sliced = defining_op(table, "tensor.extract_slice")
        if sliced is not None and len(sliced.operands) == 2:
            offset = self.of(sliced.operands[1])
            place = None if place is None or offset is None else place + offset
            table = sliced.operands[0]
        source = defining_op(table, "arith.constant")
        if place is None or source is None:
            return None
        entries: Numbers = np.array(source.attributes["value"]).astype(np.int64)
        return entries[place]


_SHARD = {
    "shard.all_gather": CollectiveKind.ALL_GATHER,
    "shard.all_reduce": CollectiveKind.ALL_REDUCE,
    "shard.all_to_all": CollectiveKind.ALL_TO_ALL,
    "shard.broadcast": CollectiveKind.BROADCAST,
    "shard.gather": CollectiveKind.GATHER,
    "shard.recv": CollectiveKind.RECV,
    "shard.reduce": CollectiveKind.REDUCE,
    "shard.reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "shard.scatter": CollectiveKind.SCATTER,
    "shard.shift": CollectiveKind.COLLECTIVE_PERMUTE,
    "shard.update_halo": CollectiveKind.HALO_EXCHANGE,
}
_STABLEHLO = {
    "stablehlo.all_gather": CollectiveKind.ALL_GATHER,
    "stablehlo.all_reduce": CollectiveKind.ALL_REDUCE,
    "stablehlo.all_to_all": CollectiveKind.ALL_TO_ALL,
    "stablehlo.collective_broadcast": CollectiveKind.BROADCAST,
    "stablehlo.collective_permute": CollectiveKind.COLLECTIVE_PERMUTE,
    "stablehlo.reduce_scatter": CollectiveKind.REDUCE_SCATTER,
}
Groups = tuple[tuple[GroupAxis, ...], int]
COLLECTIVES = frozenset((*_SHARD, *_STABLEHLO))
"""The operations by which devices receive data."""


class CommunicationReader:
    """The communication of each collective of one module; raises PassFailure if shapes or grids are not sufficient."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._groups: dict[Any, Groups] = {}
        self._index_values: dict[tuple[GroupAxis, ...], IndexValues] = {}

    def read(self, op: Any) -> Communication:
        """Returns the communication of one of `COLLECTIVES`."""
        if op.name in _SHARD:
            return self._shard(op)
        if op.name == "stablehlo.collective_permute":
            return _permutation(op, self._num_devices)
        groups = op.attributes[REPLICA_GROUPS]
        if groups not in self._groups:
            self._groups[groups] = self._read_groups(op)
        return _communication(op, _STABLEHLO[op.name], *self._groups[groups])

    @cached_property
    def _grids(self) -> dict[str, tuple[GroupAxis, ...]]:
        return {op.attributes["sym_name"].value: _grid_axes(op) for op in in_modules(self._module, "shard.grid")}

    @cached_property
    def _meshes(self) -> Mapping[str, Mesh]:
        return listed_meshes(self._module)

    @cached_property
    def _num_devices(self) -> int:
        """The number of devices that take part in permutations, from the largest of their numbers."""
        permutes = operations_named(self._module, "stablehlo.collective_permute")
        pairs = {op.attributes["source_target_pairs"] for op in permutes}
        return max((int(np.array(one).max(initial=-1)) + 1 for one in pairs), default=0)

    def _shard(self, op: Any) -> Communication:
        kind, grid = _SHARD[op.name], self._grids.get(op.attributes["grid"].value)
        if grid is None or any(axis.size < 1 for axis in grid):
            raise PassFailure(f"'{op.name}' op is on a grid of unknown shape", op)
        received, messages = None, 1
        if kind is CollectiveKind.HALO_EXCHANGE:
            numbers = [axis for axes in shard.split_axes(op) for axis in axes]
            received, messages = _halos(op, grid), 2 * sum(map(bool, shard.split_axes(op)))
        elif op.name == "shard.recv":
            return self._received(op, grid)
        elif kind is CollectiveKind.COLLECTIVE_PERMUTE:
            numbers = [op.attributes["shift_axis"].value]
            received = _shifted(op, grid[numbers[0]].size)
        else:
            numbers = list(shard.grid_axes(op))
        axes = tuple(grid[number] for number in numbers)
        groups = prod(axis.size for axis in grid) // prod(axis.size for axis in axes)
        return _communication(op, kind, axes, groups, received, messages)

    def _received(self, op: Any, grid: tuple[GroupAxis, ...]) -> Communication:
        """Returns the messages to devices that receive from another one, as far as the program determines these."""
        numbers = shard.grid_axes(op)
        axes, size = tuple(grid[number] for number in numbers), _num_bytes(op, op.results)
        everyone, group_size = prod(axis.size for axis in grid), prod(axis.size for axis in axes)
        receivers = self._receivers(op, grid, numbers)
        moved = everyone if receivers is None else sum(receivers)
        groups = everyone // group_size if moved % (everyone // group_size) == 0 else 1
        received = Received(size if moved else 0, moved // groups * size)
        element = element_size(op.result.type) or 1
        return Communication(_SHARD[op.name], axes, groups, size, size, element, received, receivers=receivers)

    def _receivers(self, op: Any, grid: tuple[GroupAxis, ...], axes: Sequence[int]) -> tuple[bool, ...] | None:
        """Returns whether each device receives from another one; None if the program does not determine it."""
        if "source" not in op.attributes:
            return None
        everyone = prod(axis.size for axis in grid)
        values = self._index_values.setdefault(grid, IndexValues([axis.size for axis in grid]))
        dynamic = iter(list(op.operands)[1:])
        is_moved = np.zeros(everyone, bool)
        own = np.indices([axis.size for axis in grid]).reshape(len(grid), -1)
        for axis, static in zip(axes, elements(op.attributes["source"]), strict=True):
            source = np.full(everyone, static) if static != shard.DYNAMIC else values.of(next(dynamic))
            if source is None:
                return None
            is_moved |= source != own[axis]
        return tuple(is_moved.tolist())

    def _read_groups(self, op: Any) -> Groups:
        attribute = op.attributes[REPLICA_GROUPS]
        ref = mesh_or_ref_of(op)
        if ref is None:
            count, size = attribute.type.shape
            return (GroupAxis("", size),), count
        mesh = ref if isinstance(ref, Mesh) else self._meshes.get(ref)
        if mesh is None:
            raise PassFailure(f"'{op.name}' op has device groups of the unknown mesh @{ref}", op)
        axes = tuple(GroupAxis(axis.name, axis.size(mesh)) for axis in axes_of(op))
        return axes, mesh.total_size // prod(axis.size for axis in axes)


def _communication(
    op: Any,
    kind: CollectiveKind,
    axes: tuple[GroupAxis, ...],
    groups: int,
    received: Received | None = None,
    messages: int = 1,
) -> Communication:
    element = min(element_size(value.type) or 1 for value in op.operands)
    return Communication(
        kind, axes, groups, _num_bytes(op, op.operands), _num_bytes(op, op.results), element, received, messages
    )


def _permutation(op: Any, devices: int) -> Communication:
    """Returns the communication of a permute, with one group of all devices that send or receive."""
    pairs = np.array(op.attributes["source_target_pairs"])
    moved, size = pairs[pairs[:, 0] != pairs[:, 1]], _num_bytes(op, op.operands)
    receivers = np.zeros(devices, bool)
    receivers[moved[:, 1]] = True
    received = Received(size if len(moved) else 0, len(moved) * size)
    axes = (GroupAxis("", len(np.unique(pairs))),)
    found = _communication(op, _STABLEHLO[op.name], axes, 1, received)
    return replace(found, receivers=tuple(receivers.tolist()))


def _shifted(op: Any, count: int) -> Received:
    size, offset = _num_bytes(op, op.operands), op.attributes["offset"].value
    if "rotate" in op.attributes:
        moved = count if offset % count else 0
    else:
        moved = max(0, count - abs(offset)) if offset else 0
    return Received(size if moved else 0, moved * size)


def _halos(op: Any, grid: tuple[GroupAxis, ...]) -> Received:
    """Returns the bytes of a halo exchange between the devices that split dimensions, along each dimension in turn."""
    sizes, split = elements(op.attributes["static_halo_sizes"]), shard.split_axes(op)
    everyone = prod(grid[axis].size for axes in split for axis in axes)
    whole = _num_bytes(op, op.operands[:1])
    most = total = 0
    dims = [dim for dim, axes in enumerate(split) if axes]
    for dim, before, after in zip(dims, sizes[::2], sizes[1::2], strict=True):
        blocks = prod(grid[axis].size for axis in split[dim])
        if before == shard.DYNAMIC or after == shard.DYNAMIC:
            raise PassFailure(f"'{op.name}' op has halos of dynamic size", op)
        slab = whole // max(1, op.operands[0].type.shape[dim])
        if blocks > 1:
            most += slab * (before + after if blocks > 2 else max(before, after))
            total += slab * (before + after) * (blocks - 1) * (everyone // blocks)
    return Received(most, total)


def _num_bytes(op: Any, values: Iterable[Any]) -> int:
    """Returns the bytes of local tensors, or of memory with the shape of one."""
    total = 0
    for value in values:
        if not isinstance(value.type, ir.ShapedType) or not value.type.has_static_shape:
            raise PassFailure(f"'{op.name}' op has a value of unknown size, of type {value.type}", op)
        total += prod(value.type.shape) * (element_size(value.type) or 1)
    return total


def _grid_axes(grid: Any) -> tuple[GroupAxis, ...]:
    """Returns the axes of a `shard.grid`, by name if it has names, else by number."""
    shape = shard.grid_shape(grid)
    names = [name.value for name in grid.attributes[shard.AXIS_NAMES]] if shard.AXIS_NAMES in grid.attributes else []
    if len(names) != len(shape):
        names = [str(number) for number in range(len(shape))]
    return tuple(map(GroupAxis, names, shape))
