# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of sdy, which are about global tensors, as StableHLO on the blocks of one device.

How several dimensions are gathered, scattered or exchanged at once is Shardy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axis_lists import Axes, split_mesh_axes, total_size
from mlir_shard.sharding.layout import device_group_array
from mlir_shard.transforms.reshard.halo_exchange import Channels
from mlir_shard.transforms.spmdize.device_tables import DeviceTables, positions_along

COLLECTIVES = (
    "sdy.all_gather",
    "sdy.all_reduce",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.reduce_scatter",
    "sdy.replicated_to_unreduced",
    "sdy.sharded_to_unreduced",
)
_COMBINERS = ("add", "maximum", "minimum")


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor in blocks: its global type, sharding and mesh."""

    type: Any
    sharding: TensorSharding
    mesh: Mesh

    @property
    def layout(self) -> TensorLayout:
        """The same without the types of the host."""
        return TensorLayout(self.sharding, self.mesh, tuple(self.type.shape))


@dataclass(frozen=True, slots=True)
class CollectiveOptions:
    """Several dimensions are gathered one by one or together, scattered by slicing or together.

    `by_mesh_axes` has groups of devices named by mesh axes, which axes alone can be, and no sub-axes.
    """

    gathers_per_dim: bool = False
    scatters_together: bool = False
    by_mesh_axes: bool = False


class LocalCollectives:
    """Builds what a collective is on one device, at the current insertion point and location."""

    def __init__(self, options: CollectiveOptions, channels: Channels, tables: DeviceTables) -> None:
        self._options = options
        self._channels = channels
        self._tables = tables
        self._groups: dict[Any, Any] = {}

    def build(self, op: Any, block: Any, before: Placed, after: Placed, local_type: Any) -> Any:
        """The block of the result, of `local_type`, from that of the operand."""
        attributes, mesh = op.attributes, after.mesh
        if 0 in local_type.shape:
            # Nothing moves, and StableHLO gathers along no dimension without elements.
            return block if block.type == local_type else stablehlo.splat(local_type, 0)
        if op.name == "sdy.all_gather":
            return self._all_gather(block, attributes["gathering_axes"].value.value, after)
        if op.name == "sdy.all_slice":
            axes = [one.value for one in attributes["slicing_axes"].value.value]
            return self._tables.block(block, axes, mesh, local_type.shape)
        if op.name == "sdy.all_reduce":
            return self._all_reduce(block, attributes["reduction_axes"].value.value, after, _combiner(op))
        if op.name == "sdy.reduce_scatter":
            return self._reduce_scatter(op, block, after, local_type)
        if op.name == "sdy.all_to_all":
            return self._all_to_all(block, attributes["params"].value.value, after)
        if op.name == "sdy.replicated_to_unreduced":
            return self._on_first_device(block, attributes["axes"].value.value, mesh)
        if op.name == "sdy.sharded_to_unreduced":
            axes = [one.value for one in attributes["axes"].value.value]
            return self._among_zeros(block, axes, mesh, local_type)
        return self._permute(block, before, after)

    def of_first_device(self, value: Any, mesh: Mesh, ref: str | Mesh) -> Any:
        """What the first device of a mesh has, on all of them."""
        axes = tuple(map(AxisRef, mesh.axis_names))
        everywhere = Placed(value.type, TensorSharding.fully_closed(value.type.rank, ref), mesh)
        return self._all_reduce(self._on_first_device(value, axes, mesh), axes, everywhere, "add")

    def _on_first_device(self, block: Any, axes: Axes, mesh: Mesh) -> Any:
        """The block on the first device along axes, and zeros on the others."""
        flag = self._tables.entry(axes, mesh, lambda position: int(position == 0), stablehlo.boolean())
        shape = list(block.type.shape)
        mask = stablehlo.broadcast(flag, shape, [0]) if shape else stablehlo.reshape(flag, ())
        return stablehlo.select(mask, block, stablehlo.splat(block.type, 0))

    def _among_zeros(self, block: Any, axes_per_dim: Sequence[Axes], mesh: Mesh, local_type: Any) -> Any:
        """The block at its place in a larger one, and zeros around it."""
        starts = self._tables.starts(axes_per_dim, mesh, block.type.shape)
        return stablehlo.build("dynamic_update_slice", local_type, stablehlo.splat(local_type, 0), block, *starts)

    def _all_gather(self, block: Any, lists: Sequence[Any], after: Placed) -> Any:
        gathered = [(dim, one.value) for dim, one in enumerate(lists) if one.value]
        if self._options.gathers_per_dim or len(gathered) == 1:
            for dim, axes in reversed(gathered):
                block = self._gather(block, dim, axes, after)
            return block
        shape = list(block.type.shape)
        axes = tuple(axis for _, of_dim in gathered for axis in of_dim)
        factors = [total_size(of_dim, after.mesh) for _, of_dim in gathered]
        value = self._gather(stablehlo.reshape(block, [1, *shape]), 0, axes, after)
        value = stablehlo.reshape(value, [*factors, *shape])
        permutation: list[int] = []
        positions = {dim: position for position, (dim, _) in enumerate(gathered)}
        for dim, size in enumerate(shape):
            if dim in positions:
                permutation.append(positions[dim])
                shape[dim] = size * factors[positions[dim]]
            permutation.append(len(factors) + dim)
        return stablehlo.reshape(stablehlo.transpose(value, permutation), shape)

    def _gather(self, block: Any, dim: int, axes: Axes, after: Placed) -> Any:
        shape = list(block.type.shape)
        shape[dim] *= total_size(axes, after.mesh)
        attributes = self._among(axes, after) | {"all_gather_dim": stablehlo.integer(dim), **_global_ids()}
        return stablehlo.build("all_gather", stablehlo.with_shape(block.type, shape), block, **attributes)

    def _all_reduce(self, block: Any, axes: Axes, after: Placed, combiner: str) -> Any:
        attributes = self._among(axes, after) | _global_ids()
        return stablehlo.combining("all_reduce", block.type, [block], combiner, **attributes)

    def _reduce_scatter(self, op: Any, block: Any, after: Placed, local_type: Any) -> Any:
        lists = [one.value for one in op.attributes["reduce_scatter_axes"].value.value]
        scattered = [dim for dim, axes in enumerate(lists) if axes]
        combiner = _combiner(op)
        axes = tuple(axis for dim in scattered for axis in lists[dim])
        if len(scattered) == 1:
            return self._scatter(block, scattered[0], axes, after, combiner)
        if not self._options.scatters_together:
            reduced = self._all_reduce(block, axes, after, combiner)
            return self._tables.block(reduced, lists, after.mesh, local_type.shape)
        factors = [total_size(lists[dim], after.mesh) for dim in scattered]
        value = _split_off(block, scattered, factors)
        value = stablehlo.reshape(value, [prod(factors), *local_type.shape])
        return stablehlo.reshape(self._scatter(value, 0, axes, after, combiner), local_type.shape)

    def _scatter(self, block: Any, dim: int, axes: Axes, after: Placed, combiner: str) -> Any:
        shape = list(block.type.shape)
        shape[dim] //= total_size(axes, after.mesh)
        attributes = self._among(axes, after) | {"scatter_dimension": stablehlo.integer(dim), **_global_ids()}
        type_ = stablehlo.with_shape(block.type, shape)
        return stablehlo.combining("reduce_scatter", type_, [block], combiner, **attributes)

    def _all_to_all(self, block: Any, params: Sequence[Any], after: Placed) -> Any:
        if len(params) == 1:
            (param,) = params
            return self._exchange(block, param.src_dim, param.tgt_dim, param.axes, after)
        params = sorted(params, key=lambda param: param.tgt_dim)
        factors = [total_size(param.axes, after.mesh) for param in params]
        value = _split_off(block, [param.tgt_dim for param in params], factors)
        split = list(value.type.shape)
        kept = split[len(params) :]
        value = stablehlo.reshape(value, [prod(factors), *kept])
        axes = tuple(axis for param in params for axis in param.axes)
        value = stablehlo.reshape(self._exchange(value, 0, 0, axes, after), split)
        permutation = [dim + len(params) for dim in range(len(kept))]
        shape = list(kept)
        for index, param in enumerate(params):
            permutation.insert(permutation.index(param.src_dim + len(params)), index)
            shape[param.src_dim] *= factors[index]
        return stablehlo.reshape(stablehlo.transpose(value, permutation), shape)

    def _exchange(self, block: Any, source: int, target: int, axes: Axes, after: Placed) -> Any:
        count = total_size(axes, after.mesh)
        shape = list(block.type.shape)
        shape[source] *= count
        shape[target] //= count
        attributes = self._among(axes, after) | {
            "split_dimension": stablehlo.integer(target),
            "concat_dimension": stablehlo.integer(source),
            "split_count": stablehlo.integer(count),
        }
        return stablehlo.build("all_to_all", stablehlo.with_shape(block.type, shape), block, **attributes)

    def _permute(self, block: Any, before: Placed, after: Placed) -> Any:
        pairs = np.array(sorted(_pairs(before, after)), np.int64)
        attributes = {
            "source_target_pairs": ir.DenseElementsAttr.get(pairs),
            "channel_handle": stablehlo.channel(self._channels.take()),
        }
        return stablehlo.build("collective_permute", block.type, block, **attributes)

    def _among(self, axes: Axes, after: Placed) -> dict[str, Any]:
        groups = self._replica_groups(axes, after)
        return {"replica_groups": groups, "channel_handle": stablehlo.channel(self._channels.take())}

    def _replica_groups(self, axes: Axes, after: Placed) -> Any:
        mesh, ref = after.mesh, after.sharding.mesh_or_ref
        key = (axes, mesh, ref)
        if key not in self._groups:
            if self._options.by_mesh_axes and all(axis.sub_axis_info is None for axis in axes):
                self._groups[key] = _mesh_axes(axes, ref)
            else:
                self._groups[key] = ir.DenseElementsAttr.get(np.ascontiguousarray(device_group_array(axes, mesh)))
        return self._groups[key]


def _split_off(value: Any, dims: Sequence[int], factors: Sequence[int]) -> Any:
    """The value with each of some ascending dimensions cut into blocks, the dimensions that count blocks in front."""
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


def _pairs(before: Placed, after: Placed) -> list[tuple[int, int]]:
    """The devices (sender, receiver) of the permutation of blocks that a change of sharding is.

    Axes that shard no dimension keep their order behind those that do. Where values are partial along one, that may
    exchange partial values of several sums.
    """
    if before.sharding.unreduced_axes or after.sharding.unreduced_axes:
        return [(sender, receiver) for receiver, sender in device_permutation(before.layout, after.layout).items()]
    used = (*before.sharding.used_axes, *after.sharding.used_axes)
    atoms = split_mesh_axes(used, after.mesh)
    receivers = {}
    for device, number in enumerate(positions_along(_in_order(after.sharding, atoms), after.mesh)):
        receivers[number] = device
    numbers = positions_along(_in_order(before.sharding, atoms), before.mesh)
    return [(device, receivers[number]) for device, number in enumerate(numbers)]


def _in_order(sharding: TensorSharding, atoms: Axes) -> tuple[AxisRef, ...]:
    """The atoms that the sharding has, dimension by dimension, then all others."""
    found = [atom for axis in sharding.sharding_axes for atom in atoms if axis.contains(atom)]
    return (*found, *(atom for atom in atoms if atom not in found))


def _mesh_axes(axes: Axes, ref: str | Mesh) -> Any:
    """Groups of devices that are along axes of a mesh, which is named or said in place."""
    if isinstance(ref, Mesh):
        sizes = ", ".join(f'#stablehlo.mesh_axis<name = "{axis.name}", size = {axis.size}>' for axis in ref.axes)
        devices = f", device_ids = dense<{list(ref.device_ids)}> : tensor<{len(ref.device_ids)}xi64>"
        mesh = f"#stablehlo.mesh<axes = [{sizes}]{devices if ref.device_ids else ''}>"
    else:
        mesh = str(ir.FlatSymbolRefAttr.get(ref))
    listed = ", ".join(f'#stablehlo.axis_ref<name = "{axis.name}">' for axis in axes)
    return ir.Attribute.parse(f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{listed}]>")


def _combiner(op: Any) -> str:
    return _COMBINERS[op.attributes["reduction_op"].value if "reduction_op" in op.attributes else 0]


def _global_ids() -> dict[str, Any]:
    return {"use_global_device_ids": ir.UnitAttr.get()}
