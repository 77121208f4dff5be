# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Concatenations and reverses along a sharded dimension, on shards with what they need of other shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.device_permutation import with_reversed_axes
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.resharding.windows import WindowHalo
from mlir_shard.rules.builder import rank_of
from mlir_shard.rules.stablehlo.slicing import Part, joined_parts
from mlir_shard.rules.windows import factor_windows
from mlir_shard.sharding import Mesh, OpShardingRule, TensorSharding
from mlir_shard.transforms.halo.halo_exchange import BorderExchange, ManualPart, with_borders
from mlir_shard.transforms.halo.moving_ops import Surroundings, is_static

CONCATENATE = "stablehlo.concatenate"


def exchange_parts(op: Any, rule: OpShardingRule, around: Surroundings) -> bool:
    """Replaces a concatenation by one of blocks, with what neighbours send of the operands that have its windows.

    Says whether it did: not where its result is whole along its dimension, or its tensors are sharded otherwise than
    its rule has them.
    """
    sharding = sharding_of(op.results[0])
    mesh = None if sharding is None else mesh_of(sharding, around.meshes)
    if sharding is None or mesh is None or mesh.is_maximal or sharding.unreduced_axes or not is_static(op):
        return False
    dim = op.attributes["dimension"].value
    blocks = sharding.dim_shardings[dim].sharded_size(mesh)
    windows = {window.operand: window for window in factor_windows(op, rule)}
    halos = {number: window.halo(blocks) for number, window in windows.items()}
    known = {number: halo for number, halo in halos.items() if halo is not None}
    if blocks == 1 or len(known) < len(halos) or not stablehlo.has_zero(op.results[0].type.element_type):
        return False
    operands = [
        sharding_of(value) or TensorSharding.fully_closed(rank_of(value.type), sharding.mesh_or_ref)
        for value in op.operands
    ]
    if not all(_fits(one, sharding, dim, number in windows) for number, one in enumerate(operands)):
        return False
    part = around.part(mesh, sharding.sharding_axes)
    with ir.InsertionPoint(op), op.location:
        value = _Joining(op, dim, sharding, known, part).build(operands)
    op.results[0].replace_all_uses_with(value)
    op.erase()
    return True


def _fits(operand: TensorSharding, result: TensorSharding, joined: int, is_exchanged: bool) -> bool:
    """Whether an operand is sharded as the result, but along the dimension only where it is exchanged."""
    wanted = [of.axes if dim != joined or is_exchanged else () for dim, of in enumerate(result.dim_shardings)]
    return [of.axes for of in operand.dim_shardings] == wanted


class _Joining:
    def __init__(
        self,
        op: Any,
        dim: int,
        sharding: TensorSharding,
        halos: Mapping[int, WindowHalo],
        part: ManualPart,
    ) -> None:
        self._op = op
        self._dim = dim
        self._sharding = sharding
        self._halos = halos
        self._part = part

    def build(self, shardings: Sequence[TensorSharding]) -> Any:
        """The result; shards that are not even are made so before, and cut after."""
        type_, sharding = self._op.results[0].type, self._sharding
        operands = [self._even(value, one) for value, one in zip(self._op.operands, shardings, strict=True)]
        shape = self._even_shape(type_.shape, sharding)
        size = shape[self._dim] // self._part.shards(sharding, self._dim)
        result = self._part.build(
            list(zip(operands, shardings, strict=True)),
            stablehlo.with_shape(type_, shape),
            sharding,
            lambda blocks: self._joined(blocks, size),
        )
        wanted = list(type_.shape)
        return stablehlo.first(result, wanted, sharding)

    def _joined(self, blocks: Sequence[Any], size: int) -> Any:
        axes = self._sharding.dim_shardings[self._dim].axes
        count = self._part.shards(self._sharding, self._dim)
        index = self._part.builder.shard_number(axes)
        zero = stablehlo.scalar(0, self._op.results[0].type.element_type)
        parts, start = [], 0
        for number, (value, operand) in enumerate(zip(blocks, self._op.operands, strict=True)):
            halo, step, below = self._halos.get(number), 0, 0
            if halo is not None:
                exchange = BorderExchange(self._dim, axes, count, halo)
                value = with_borders(value, zero, exchange, self._part.builder, is_zero=True)
                step, below = halo.block, halo.below
            parts.append(Part(value, start, step, below))
            start += operand.type.shape[self._dim]

        def place(of_block: Callable[[int], int]) -> Any:
            return stablehlo.entry([of_block(number) for number in range(count)], index)

        return joined_parts(parts, self._dim, size, place)

    def _even(self, value: Any, sharding: TensorSharding) -> Any:
        shape = self._even_shape(value.type.shape, sharding)
        if shape == list(value.type.shape):
            return value
        return stablehlo.pad_behind(value, stablehlo.scalar(0, value.type.element_type), shape, sharding)

    def _even_shape(self, shape: Sequence[int], sharding: TensorSharding) -> list[int]:
        counts = (self._part.shards(sharding, dim) for dim in range(len(shape)))
        return [-(-size // count) * count for size, count in zip(shape, counts, strict=True)]


class ReversedMeshes:
    """The meshes of a module with their devices in the opposite order, defined when they are first asked for."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._names: dict[Mesh, str] = {}
        self._taken = {
            op.operation.attributes["sym_name"].value
            for op in module.operation.regions[0].blocks[0].operations
            if "sym_name" in op.operation.attributes
        }
        for name, mesh in sdy.meshes(module).items():
            self._names.setdefault(mesh, name)

    def reference(self, mesh: Mesh, ref: str | Mesh, location: Any) -> str | Mesh:
        """How to refer to a mesh; it is named for the one it is the reverse of, or said in place where that is."""
        if isinstance(ref, Mesh):
            return mesh
        if mesh not in self._names:
            name = self._free_name(f"{ref}_reversed")
            with ir.InsertionPoint.at_block_begin(self._module.operation.regions[0].blocks[0]), location:
                sdy.MeshOp(name, mesh)
            self._names[mesh] = name
        return self._names[mesh]

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(name)
        return name


def reverse_across_devices(op: Any, around: Surroundings, meshes: ReversedMeshes) -> bool:
    """Gives a reverse a result on the mesh of reversed order, resharded to where it was.

    What makes the last shards full moves to the front before, so that it is at the end again after. Says whether the
    op has been dealt with, which it is too where none of its sharded dimensions is reversed.
    """
    operand, result = op.operands[0], op.results[0]
    sharding = sharding_of(operand)
    if sharding is None or sharding.is_fully_replicated:
        return True
    mesh = mesh_of(sharding, around.meshes)
    if mesh is None or mesh.is_maximal:
        return True
    dims = [dim for dim in op.attributes["dimensions"] if sharding.dim_shardings[dim].sharded_size(mesh) > 1]
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
    even = _even_shape(shape, sharding, mesh, dims)
    uneven = [dim for dim in dims if even[dim] > shape[dim]]
    part = around.part(mesh, (axis for dim in uneven for axis in sharding.dim_shardings[dim].axes))
    if not part.takes(even, sharding):
        # Sub-axes of one axis are in several dimensions, and a manual computation takes axes whole.
        part = around.part(mesh, sharding.sharding_axes)
        even = _even_shape(shape, sharding, mesh, range(len(shape)))
    uses = [(use.owner, use.operand_number) for use in result.uses]
    with ir.InsertionPoint(op), op.location:
        op.operands[0] = _with_padding_in_front(operand, even, dims, sharding, part)
    result.set_type(op.operands[0].type)
    sdy.set_sharding(result, replace(sharding, mesh_or_ref=ref))
    with ir.InsertionPoint.after(op), op.location:
        value = sdy.ReshardOp(result, target).operation.results[0]
        value = stablehlo.first(value, shape, sharding)
    for user, number in uses:
        user.operation.operands[number] = value
    return True


def _even_shape(shape: Sequence[int], sharding: TensorSharding, mesh: Mesh, dims: Iterable[int]) -> list[int]:
    even = list(shape)
    for dim in dims:
        shards = sharding.dim_shardings[dim].sharded_size(mesh)
        even[dim] = -(-shape[dim] // shards) * shards
    return even


def _with_padding_in_front(
    value: Any, even: list[int], dims: Sequence[int], sharding: TensorSharding, part: ManualPart
) -> Any:
    """The value of shape `even`, what is added before the elements in `dims`, behind them in the others."""
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
