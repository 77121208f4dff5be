# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of sdy, which are about global tensors, as those of StableHLO on the blocks of one device."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.op_mesh import mesh_of
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.axis_lists import Axes, total_size
from mlir_shard.sharding.layout import device_groups
from mlir_shard.transforms.reshard import stablehlo_pieces as hlo
from mlir_shard.transforms.reshard.halo_exchange import Devices
from mlir_shard.transforms.reshard.moving_ops import Surroundings

_COMBINERS = {0: "stablehlo.add", 1: "stablehlo.maximum", 2: "stablehlo.minimum"}


class LocalCollectives:
    """Makes collectives local, at the current insertion point; blocks have to be even."""

    def __init__(self, devices: Devices, around: Surroundings) -> None:
        self._devices = devices
        self._mesh = devices.mesh
        self._around = around

    def make(self, op: Any, block: Any) -> Any | None:
        """The block of the collective's result, from that of its operand; None where it is not known here."""
        attributes = op.attributes
        if op.name == "sdy.all_gather":
            for dim, axes in self._per_dim(attributes["gathering_axes"]):
                block = self._all_gather(block, dim, axes)
        elif op.name == "sdy.all_slice":
            for dim, axes in self._per_dim(attributes["slicing_axes"]):
                block = self._all_slice(block, dim, axes)
        elif op.name == "sdy.all_reduce":
            block = self._all_reduce(block, attributes["reduction_axes"].value.value, _combiner(op))
        elif op.name == "sdy.reduce_scatter":
            for dim, axes in self._per_dim(attributes["reduce_scatter_axes"]):
                block = self._reduce_scatter(block, dim, axes, _combiner(op))
        elif op.name == "sdy.all_to_all":
            for param in attributes["params"].value.value:
                block = self._all_to_all(block, param.src_dim, param.tgt_dim, param.axes)
        elif op.name == "sdy.collective_permute":
            block = self._permute(op, block)
        else:
            return None
        return block

    def _per_dim(self, attribute: Any) -> list[tuple[int, Axes]]:
        return [(dim, axes.value) for dim, axes in enumerate(attribute.value.value) if axes.value]

    def _count(self, axes: Axes) -> int:
        return total_size(axes, self._mesh)

    def _all_gather(self, block: Any, dim: int, axes: Axes) -> Any:
        type_ = hlo.with_size(block.type, dim, block.type.shape[dim] * self._count(axes))
        along = {"all_gather_dim": _integer(dim)}
        return hlo.operation("stablehlo.all_gather", type_, block, **along, **self._among(axes, is_global=True))

    def _all_slice(self, block: Any, dim: int, axes: Axes) -> Any:
        shape = list(block.type.shape)
        shape[dim] //= self._count(axes)
        index = self._devices.shard_index(axes)
        size, zero = hlo.index_constant(shape[dim]), hlo.index_constant(0)
        start = hlo.operation("stablehlo.multiply", index.type, index, size)
        starts = [start if one == dim else zero for one in range(len(shape))]
        return hlo.dynamic_piece(block, starts, shape, None)

    def _all_reduce(self, block: Any, axes: Axes, combiner: str) -> Any:
        attributes = self._among(axes, is_global=True)
        made = ir.Operation.create("stablehlo.all_reduce", [block.type], [block], attributes, regions=1)
        _combine(made, block.type.element_type, combiner)
        return made.results[0]

    def _reduce_scatter(self, block: Any, dim: int, axes: Axes, combiner: str) -> Any:
        type_ = hlo.with_size(block.type, dim, block.type.shape[dim] // self._count(axes))
        attributes = {"scatter_dimension": _integer(dim), **self._among(axes, is_global=True)}
        made = ir.Operation.create("stablehlo.reduce_scatter", [type_], [block], attributes, regions=1)
        _combine(made, block.type.element_type, combiner)
        return made.results[0]

    def _all_to_all(self, block: Any, source: int, target: int, axes: Axes) -> Any:
        count = self._count(axes)
        type_ = hlo.with_size(block.type, source, block.type.shape[source] * count)
        type_ = hlo.with_size(type_, target, block.type.shape[target] // count)
        along = {
            "split_dimension": _integer(target),
            "concat_dimension": _integer(source),
            "split_count": _integer(count),
        }
        return hlo.operation("stablehlo.all_to_all", type_, block, **along, **self._among(axes, is_global=False))

    def _permute(self, op: Any, block: Any) -> Any:
        source, target = (self._layout(sharding_of(value), value) for value in (op.operands[0], op.results[0]))
        pairs = [(sender, receiver) for receiver, sender in device_permutation(source, target).items()]
        return hlo.collective_permute(block, sorted(pairs), self._devices.channels.take())

    def _layout(self, sharding: TensorSharding | None, value: Any) -> TensorLayout:
        assert sharding is not None
        mesh = mesh_of(sharding, self._around.meshes)
        assert mesh is not None
        return TensorLayout(sharding, mesh, tuple(value.type.shape))

    def _among(self, axes: Axes, *, is_global: bool) -> dict[str, Any]:
        groups = device_groups(axes, self._mesh)
        element = ir.IntegerType.get_signless(64)
        type_ = ir.RankedTensorType.get([len(groups), len(groups[0])], element)
        entries = [ir.IntegerAttr.get(element, device) for group in groups for device in group]
        channel = f"#stablehlo.channel_handle<handle = {self._devices.channels.take()}, type = 1>"
        attributes = {
            "replica_groups": ir.DenseElementsAttr.get(entries, type_),
            "channel_handle": ir.Attribute.parse(channel),
        }
        return attributes | ({"use_global_device_ids": ir.UnitAttr.get()} if is_global else {})


def _combiner(op: Any) -> str:
    return _COMBINERS[op.attributes["reduction_op"].value if "reduction_op" in op.attributes else 0]


def _combine(op: Any, element_type: Any, combiner: str) -> None:
    type_ = hlo.scalar_type(element_type)
    block = op.regions[0].blocks.append(type_, type_, arg_locs=[op.location] * 2)
    with ir.InsertionPoint(block):
        combined = hlo.operation(combiner, type_, *block.arguments)
        ir.Operation.create("stablehlo.return", [], [combined])


def _integer(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
