# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reverses along a sharded dimension: the devices of the result are in the opposite order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.values import replace_uses, uses_of
from mlir_shard.resharding.device_permutation import with_reversed_axes
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.layout import even_shape
from mlir_shard.transforms.halo.halo_exchange import ManualPart
from mlir_shard.transforms.halo.moving_ops import Surroundings, is_static, sharded_on


class ReversedMeshes:
    """The meshes of a module with their devices in the opposite order, defined when they are first needed."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._names: dict[Mesh, str] = {}
        for name, mesh in sdy.meshes(module).items():
            self._names.setdefault(mesh, name)

    def reference(self, mesh: Mesh, ref: str | Mesh, location: Any) -> str | Mesh:
        """Returns a symbol of a mesh, named after `ref`, the mesh that it reverses; the mesh itself if `ref` is one."""
        if isinstance(ref, Mesh):
            return mesh
        if mesh not in self._names:
            symbols = ir.SymbolTable(self._module.operation)
            point = ir.InsertionPoint.at_block_begin(self._module.operation.regions[0].blocks[0])
            op = sdy.MeshOp(f"{ref}_reversed", mesh, loc=location, ip=point).operation
            self._names[mesh] = symbols.insert(op).value
        return self._names[mesh]


def reverse_across_devices(op: Any, around: Surroundings, meshes: ReversedMeshes) -> bool:
    """Gives a reverse a result on the mesh in reversed order, which is resharded to the original order.

    The padding of the last shards is moved to the front first, so that it is at the end after the reverse. Returns
    whether the op is resolved, also if none of its sharded dimensions is reversed.
    """
    operand, result = op.operands[0], op.results[0]
    found = sharded_on(operand, around)
    if found is None:
        return True
    sharding, mesh = found
    dims = [dim for dim in elements(op.attributes["dimensions"]) if sharding.dim_shardings[dim].sharded_size(mesh) > 1]
    if not dims:
        return True
    if not is_static(op):
        return False
    shape = operand.type.shape
    if 0 in shape or not stablehlo.has_zero(operand.type.element_type):
        return False
    target = sharding_of(result) or TensorSharding.fully_closed(len(shape), sharding.mesh_or_ref)
    axes = [axis for dim in sorted(dims) for axis in sharding.dim_shardings[dim].axes]
    ref = meshes.reference(with_reversed_axes(mesh, axes), sharding.mesh_or_ref, op.location)
    even = even_shape(shape, sharding, mesh, dims)
    uneven = [dim for dim in dims if even[dim] > shape[dim]]
    part = around.part(mesh, (axis for dim in uneven for axis in sharding.dim_shardings[dim].axes))
    if not part.takes(even, sharding):
        # Sub-axes of one axis are in several dimensions, and a manual computation takes undivided axes.
        part = around.part(mesh, sharding.sharding_axes)
        even = even_shape(shape, sharding, mesh)
    uses = uses_of(result)
    with ir.InsertionPoint(op), op.location:
        op.operands[0] = _with_padding_in_front(operand, even, dims, sharding, part)
    result.set_type(op.operands[0].type)
    sdy.set_sharding(result, replace(sharding, mesh_or_ref=ref))
    with ir.InsertionPoint.after(op), op.location:
        value = sdy.ReshardOp(result, target).operation.results[0]
        replace_uses(uses, stablehlo.first(value, shape, sharding))
    return True


def _with_padding_in_front(
    value: Any, even: list[int], dims: Sequence[int], sharding: TensorSharding, part: ManualPart
) -> Any:
    """Returns the value padded to the shape `even`, in front of the elements in `dims`, behind them in the others."""
    amounts = {dim: even[dim] - value.type.shape[dim] for dim in dims if even[dim] > value.type.shape[dim]}
    if even == list(value.type.shape):
        return value
    padding = stablehlo.scalar(0, value.type.element_type)
    padded = stablehlo.pad_behind(value, padding, even, sharding)
    if not amounts:
        return padded

    def body(arguments: Sequence[Any]) -> Any:
        (local,) = arguments
        for dim, amount in amounts.items():
            local = part.shift(local, dim, amount, sharding)
        return local

    return part.build([(padded, sharding)], padded.type, sharding, body)
