# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives in StableHLO.

Gathers, scatters and exchanges of several dimensions at once are built as Shardy builds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from mlir_shard.deferred import numpy as np
from mlir_shard.host import dialect, ir
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.device_permutation import Digit
from mlir_shard.rules.reduction import STABLEHLO_OPS, Combiner
from mlir_shard.sharding import AxisRef, Mesh, ReductionOp
from mlir_shard.sharding.axes import total_size
from mlir_shard.sharding.layout import device_array, device_group_array
from mlir_shard.transforms.collectives.channels import Channels

if TYPE_CHECKING:
    import numpy.typing as npt

_arith, _tensor = dialect("arith"), dialect("tensor")


@dataclass(frozen=True, slots=True)
class CollectiveForms:
    """The choice between equivalent forms of collectives.

    `gathers_per_dim`: several dimensions are gathered one by one, not at once. `scatters_together`: several dimensions
    are reduced and scattered at once, not by an all-reduce and slices. `by_mesh_axes`: groups of devices are named by
    mesh axes, unless one of these is a sub-axis.
    """

    gathers_per_dim: bool = False
    scatters_together: bool = False
    by_mesh_axes: bool = False


@dataclass(frozen=True, slots=True)
class StablehloProgram:
    """The state that the collectives of one local program share: channel numbers, forms and the kind of device number.

    Devices are identified by `replica_id` if `by_replica`, else by `partition_id`.
    """

    channels: Channels
    by_replica: bool = False
    forms: CollectiveForms = CollectiveForms()
    _builders: dict[Any, StablehloCollectives] = field(default_factory=dict)

    def on(self, mesh: Mesh, ref: str | Mesh | None = None) -> StablehloCollectives:
        """Returns the builder for a mesh; `ref` refers to the mesh by name, or by default in place."""
        key = (mesh, ref)
        if key not in self._builders:
            self._builders[key] = StablehloCollectives(self, mesh, mesh if ref is None else ref)
        return self._builders[key]


class StablehloCollectives:
    """The `CollectiveBuilder` of StableHLO, on a mesh."""

    def __init__(self, program: StablehloProgram, mesh: Mesh, ref: str | Mesh) -> None:
        self.mesh = mesh
        self._program = program
        self._ref = ref
        self._groups: dict[tuple[AxisRef, ...], Any] = {}

    def group_size(self, axes: Sequence[AxisRef]) -> int:
        """Returns the number of devices along axes."""
        return total_size(axes, self.mesh)

    def all_gather(self, value: Any, axes: Mapping[int, Sequence[AxisRef]]) -> Any:
        """Gathers dimensions; all at once along a new leading dimension, unless `gathers_per_dim`."""
        dims = sorted(axes)
        if self._program.forms.gathers_per_dim or len(dims) == 1:
            for dim in reversed(dims):
                value = self._gather(value, dim, axes[dim])
            return value
        shape = list(value.type.shape)
        factors = [self.group_size(axes[dim]) for dim in dims]
        value = self._gather(stablehlo.reshape(value, [1, *shape]), 0, [axis for dim in dims for axis in axes[dim]])
        value = stablehlo.reshape(value, [*factors, *shape])
        permutation: list[int] = []
        for dim in range(len(shape)):
            if dim in axes:
                permutation.append(dims.index(dim))
                shape[dim] *= factors[dims.index(dim)]
            permutation.append(len(factors) + dim)
        return stablehlo.reshape(stablehlo.transpose(value, permutation), shape)

    def all_slice(self, value: Any, axes: Mapping[int, Sequence[AxisRef]]) -> Any:
        """Slices all dimensions at once."""
        shape = self._divided(value, axes)
        return stablehlo.dynamic_slice(
            value, self.shard_starts([axes.get(dim, ()) for dim in range(len(shape))], shape), shape
        )

    def all_to_all(self, value: Any, moves: Sequence[tuple[int, int, Sequence[AxisRef]]]) -> Any:
        """Moves axes between dimensions; several moves are one exchange along a leading dimension."""
        if len(moves) == 1:
            return self._exchange(value, *moves[0])
        moves = sorted(moves, key=lambda move: move[1])
        factors = [self.group_size(axes) for _, _, axes in moves]
        value = _split_off(value, [target for _, target, _ in moves], factors)
        split = list(value.type.shape)
        shape = split[len(moves) :]
        value = stablehlo.reshape(value, [prod(factors), *shape])
        value = self._exchange(value, 0, 0, [axis for _, _, axes in moves for axis in axes])
        permutation = [dim + len(moves) for dim in range(len(shape))]
        for index, (source, _, _) in enumerate(moves):
            permutation.insert(permutation.index(source + len(moves)), index)
            shape[source] *= factors[index]
        return stablehlo.reshape(stablehlo.transpose(stablehlo.reshape(value, split), permutation), shape)

    def all_reduce(self, value: Any, axes: Sequence[AxisRef], kind: ReductionOp | Combiner) -> Any:
        """Reduces over the devices along axes."""
        attributes = self._among(axes) | _global_ids()
        return stablehlo.combining("all_reduce", value.type, [value], STABLEHLO_OPS[Combiner(kind.value)], **attributes)

    def reduce_scatter(self, value: Any, axes: Mapping[int, Sequence[AxisRef]], kind: ReductionOp) -> Any:
        """Reduces and scatters; several dimensions by an all-reduce and slices, unless `scatters_together`."""
        dims = sorted(axes)
        together = [axis for dim in dims for axis in axes[dim]]
        if len(dims) == 1:
            return self._scatter(value, dims[0], together, kind)
        if not self._program.forms.scatters_together:
            return self.all_slice(self.all_reduce(value, together, kind), axes)
        shape = self._divided(value, axes)
        factors = [self.group_size(axes[dim]) for dim in dims]
        value = stablehlo.reshape(_split_off(value, dims, factors), [prod(factors), *shape])
        return stablehlo.reshape(self._scatter(value, 0, together, kind), shape)

    def permute(self, value: Any, pairs: Sequence[tuple[int, int]] | npt.NDArray[np.int64]) -> Any:
        """Sends the value to other devices; `pairs` has rows (source, target)."""
        attributes = {
            "source_target_pairs": ir.DenseElementsAttr.get(np.asarray(pairs, np.int64).reshape(-1, 2)),
            "channel_handle": self._channel(),
        }
        return stablehlo.build("collective_permute", value.type, value, **attributes)

    def device_index(self, axes: Sequence[AxisRef]) -> Any:
        """Returns this device's position along axes, as an `index` value, from a table of all devices."""
        return as_index(self.table(axes, lambda at: at))

    def table(self, axes: Sequence[AxisRef], entry: Callable[[int], int], element_type: Any = None) -> Any:
        """Returns this device's entry of a table of all devices."""
        device = stablehlo.device_number(by_replica=self._program.by_replica)
        by_position = np.array([entry(position) for position in range(self.group_size(axes))], np.int64)
        entries = stablehlo.numbers(by_position[_positions(tuple(axes), self.mesh)], element_type)
        return stablehlo.dynamic_slice(entries, [device], [1])

    def first_only(self, value: Any, axes: Sequence[AxisRef]) -> Any:
        """Returns the value on the first device along axes, and zeros on the others."""
        flag = self.table(axes, lambda position: int(position == 0), stablehlo.boolean())
        return stablehlo.select_all(flag, value, 0)

    def broadcast_first(self, value: Any) -> Any:
        """Returns the value of the first device, on all devices: a sum to which the other devices add zeros."""
        axes = tuple(map(AxisRef, self.mesh.axis_names))
        return self.all_reduce(self.first_only(value, axes), axes, ReductionOp.SUM) if axes else value

    def entry_of_device(self, entries: Sequence[int] | npt.NDArray[np.int64]) -> Any:
        """Returns the table entry at this device's number, a scalar of i64."""
        return stablehlo.entry(entries, stablehlo.device_number(by_replica=self._program.by_replica))

    def shard_number(self, axes: Sequence[AxisRef]) -> Any:
        """Returns this device's position along axes, a scalar of i64, by arithmetic on the device's number."""
        if self.mesh.device_ids:
            return self.entry_of_device(_positions(tuple(axes), self.mesh))
        device = stablehlo.device_number(by_replica=self._program.by_replica)
        index = None
        for axis in axes:
            digit = Digit.of(axis, self.mesh)
            coordinate = device
            if digit.stride > 1:
                coordinate = stablehlo.binary("divide", coordinate, stablehlo.scalar(digit.stride))
            if digit.size < self.mesh.total_size:
                coordinate = stablehlo.binary("remainder", coordinate, stablehlo.scalar(digit.size))
            if index is None:
                index = coordinate
            else:
                index = stablehlo.binary("multiply", index, stablehlo.scalar(digit.size))
                index = stablehlo.binary("add", index, coordinate)
        return stablehlo.scalar(0) if index is None else index

    def shard_starts(self, axes_per_dim: Sequence[Sequence[AxisRef]], shape: Sequence[int]) -> list[Any]:
        """Returns the start of this device's shard in each dimension, scalars of i64; `shape` is the local shape."""
        return [
            stablehlo.reshape(self.table(axes, size.__mul__), ()) if axes else stablehlo.scalar(0)
            for axes, size in zip(axes_per_dim, shape, strict=True)
        ]

    def _gather(self, value: Any, dim: int, axes: Sequence[AxisRef]) -> Any:
        shape = list(value.type.shape)
        shape[dim] *= self.group_size(axes)
        attributes = self._among(axes) | {"all_gather_dim": stablehlo.integer(dim), **_global_ids()}
        return stablehlo.build("all_gather", stablehlo.with_shape(value.type, shape), value, **attributes)

    def _scatter(self, value: Any, dim: int, axes: Sequence[AxisRef], kind: ReductionOp) -> Any:
        type_ = stablehlo.with_shape(value.type, self._divided(value, {dim: axes}))
        attributes = self._among(axes) | {"scatter_dimension": stablehlo.integer(dim), **_global_ids()}
        return stablehlo.combining("reduce_scatter", type_, [value], STABLEHLO_OPS[Combiner(kind.value)], **attributes)

    def _exchange(self, value: Any, source: int, target: int, axes: Sequence[AxisRef]) -> Any:
        count = self.group_size(axes)
        shape = list(value.type.shape)
        shape[source] *= count
        shape[target] //= count
        attributes = self._among(axes) | {
            "split_dimension": stablehlo.integer(target),
            "concat_dimension": stablehlo.integer(source),
            "split_count": stablehlo.integer(count),
        }
        return stablehlo.build("all_to_all", stablehlo.with_shape(value.type, shape), value, **attributes)

    def _divided(self, value: Any, axes: Mapping[int, Sequence[AxisRef]]) -> list[int]:
        return [size // self.group_size(axes.get(dim, ())) for dim, size in enumerate(value.type.shape)]

    def _among(self, axes: Sequence[AxisRef]) -> dict[str, Any]:
        return {"replica_groups": self._replica_groups(tuple(axes)), "channel_handle": self._channel()}

    def _channel(self) -> Any:
        return stablehlo.channel(self._program.channels.take())

    def _replica_groups(self, axes: tuple[AxisRef, ...]) -> Any:
        if axes not in self._groups:
            if self._program.forms.by_mesh_axes and all(axis.sub_axis_info is None for axis in axes):
                self._groups[axes] = _mesh_axes(axes, self._ref)
            else:
                groups = np.ascontiguousarray(device_group_array(axes, self.mesh))
                self._groups[axes] = ir.DenseElementsAttr.get(groups)
        return self._groups[axes]


def as_index(entry: Any) -> Any:
    """Returns the only element of a tensor as an `index` value."""
    element = _tensor.ExtractOp(stablehlo.reshape(entry, ()), []).result
    return _arith.IndexCastOp(ir.IndexType.get(), element).result


@lru_cache(maxsize=1024)
def positions_along(axes: tuple[AxisRef, ...], mesh: Mesh) -> tuple[int, ...]:
    """Returns the position along axes of each device, by the number of the device."""
    return tuple(_positions(axes, mesh).tolist())


@lru_cache(maxsize=1024)
def _positions(axes: tuple[AxisRef, ...], mesh: Mesh) -> npt.NDArray[np.int64]:
    places = np.arange(mesh.listed_size, dtype=np.int64)
    positions = np.zeros_like(places)
    for axis in axes:
        digit = Digit.of(axis, mesh)
        positions = positions * digit.size + places // digit.stride % digit.size
    found = np.zeros_like(places)
    found[device_array(mesh)] = positions
    return found


def _split_off(value: Any, dims: Sequence[int], factors: Sequence[int]) -> Any:
    """Returns the value with some ascending dimensions split into shards; dimensions that count shards come first."""
    shape: list[int] = []
    counting: list[int] = []
    for dim, size in enumerate(value.type.shape):
        if dim in dims:
            factor = factors[dims.index(dim)]
            counting.append(len(shape))
            shape.append(factor)
            size //= factor
        shape.append(size)
    rest = [dim for dim in range(len(shape)) if dim not in counting]
    return stablehlo.transpose(stablehlo.reshape(value, shape), [*counting, *rest])


def _mesh_axes(axes: Sequence[AxisRef], ref: str | Mesh) -> Any:
    """Returns the attribute for groups of devices along axes of a mesh, which is named or written in place."""
    if isinstance(ref, Mesh):
        sizes = ", ".join(f'#stablehlo.mesh_axis<name = "{axis.name}", size = {axis.size}>' for axis in ref.axes)
        devices = f", device_ids = dense<{list(ref.device_ids)}> : tensor<{len(ref.device_ids)}xi64>"
        mesh = f"#stablehlo.mesh<axes = [{sizes}]{devices if ref.device_ids else ''}>"
    else:
        mesh = str(ir.FlatSymbolRefAttr.get(ref))
    listed = ", ".join(f'#stablehlo.axis_ref<name = "{axis.name}">' for axis in axes)
    return ir.Attribute.parse(f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{listed}]>")


def _global_ids() -> dict[str, Any]:
    return {"use_global_device_ids": ir.UnitAttr.get()}
