# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pads and slices that move elements along sharded dimensions, with exchanges between neighbours instead of gathers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.resharding.windows import Halo, halo_of_window
from mlir_shard.rules.computed_bodies import is_zero
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.layout import even_shape
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram
from mlir_shard.transforms.halo.halo_exchange import Exchange, ManualPart
from mlir_shard.transforms.shardings import sharding_and_mesh

Sizes = Sequence[int]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of ops that are resolved in a module; `manual_axes` are manual for all ops."""

    meshes: Mapping[str, Mesh]
    program: StablehloProgram
    manual_axes: frozenset[str] = frozenset()

    def part(self, mesh: Mesh, axes: Iterable[AxisRef]) -> ManualPart:
        """Returns the part of a program that is manual along `manual_axes` and the mesh axes of `axes`."""
        names = self.manual_axes | {axis.name for axis in axes}
        return ManualPart(self.program.on(mesh), frozenset(names))


@dataclass(frozen=True, slots=True)
class _Window:
    """Elements spread by `dilations` and shifted by `low`, up to `sizes`, of which every one at `strides` is taken."""

    low: tuple[int, ...]
    dilations: tuple[int, ...]
    strides: tuple[int, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(op: Any) -> _Window:
        sizes = tuple(op.results[0].type.shape)
        if op.name == "stablehlo.slice":
            starts, strides = (tuple(elements(op.attributes[name])) for name in ("start_indices", "strides"))
            return _Window(tuple(-start for start in starts), (1,) * len(sizes), strides, sizes)
        low, between = (tuple(elements(op.attributes[name])) for name in ("edge_padding_low", "interior_padding"))
        return _Window(low, tuple(one + 1 for one in between), (1,) * len(sizes), sizes)

    def halo(self, dim: int, shards: int, size: int) -> Halo:
        return halo_of_window(shards, size, self.sizes[dim], self.low[dim], self.dilations[dim])


def communicates_along(op: Any, dim: int, shards: int) -> bool:
    """Returns whether shards of a dimension of a pad or a slice need elements of others; True if it is dynamic."""
    if shards == 1:
        return False
    if not is_static(op):
        return True
    size, new_size = op.operands[0].type.shape[dim], op.results[0].type.shape[dim]
    window = _Window.of(op)
    if op.name == "stablehlo.slice":
        same_shards = -(-size // shards) == -(-new_size // shards)
        return window.low[dim] != 0 or window.strides[dim] != 1 or not same_shards
    halo = window.halo(dim, shards, size)
    return window.dilations[dim] != 1 or bool(halo.left_hops or halo.right_hops)


def sharded_on(value: Any, around: Surroundings) -> tuple[TensorSharding, Mesh] | None:
    """Returns the sharding of a value and its mesh; None if the value is replicated."""
    found = sharding_and_mesh(value, around.meshes)
    return None if found is None or found[0].is_fully_replicated else found


def exchange_around(op: Any, around: Surroundings, *, is_alone: bool = False) -> bool:
    """Replaces a pad or slice whose operand and result have one sharding by a halo exchange and a local op.

    Returns whether the op is resolved, also if it needs no communication. With `is_alone`, the op is made local by
    itself: it is replaced without communication too, and also where every device would get all of uneven shards.
    """
    operand, result = op.operands[0], op.results[0]
    found = sharded_on(operand, around)
    if found is None:
        return True
    sharding, mesh = found
    if not sharding.is_equivalent(sharding_of(result)) or not is_static(op):
        return False
    exchanges = exchanges_of(op, sharding, mesh)
    if not (is_alone or any(one.halo.needs_communication for one in exchanges)):
        return True
    strides = _Window.of(op).strides
    is_needed = is_alone and not _is_even(op, exchanges)
    if any(strides[one.dim] != 1 or (one.halo.gathers_everything and not is_needed) for one in exchanges):
        return False
    if 0 in operand.type.shape or not stablehlo.has_zero(operand.type.element_type):
        return False
    with ir.InsertionPoint(op), op.location:
        value = _exchanged(op, exchanges, around.part(mesh, sharding.sharding_axes), sharding)
    result.replace_all_uses_with(value)
    op.erase()
    return True


def is_static(op: Any) -> bool:
    """Returns whether the first operand and the first result are tensors of static shape."""
    types = (op.operands[0].type, op.results[0].type)
    return all(isinstance(type_, ir.RankedTensorType) and type_.has_static_shape for type_ in types)


def exchanges_of(op: Any, sharding: TensorSharding, mesh: Mesh) -> list[Exchange]:
    """Returns the exchange along each sharded dimension of a pad or a slice."""
    window = _Window.of(op)
    found = []
    for dim, of in enumerate(sharding.dim_shardings):
        shards = of.sharded_size(mesh)
        if shards > 1:
            found.append(Exchange(dim, of.axes, window.halo(dim, shards, op.operands[0].type.shape[dim])))
    return found


def moved(op: Any, value: Any, padding: Any, exchanges: Sequence[Exchange], part: ManualPart) -> Any:
    """Builds a pad or a slice on a shard, inside a manual part; returns the result."""
    inside = sharding_of(op.operands[0])
    assert inside is not None
    inside = inside.without_axes(part.manual_axes)
    is_filled_with_zero = op.name == "stablehlo.slice" or is_zero(op.operands[1])
    for one in exchanges:
        if not one.halo.is_local_copy:
            value = part.exchange(value, padding, one, inside, is_zero=is_filled_with_zero)
    return _along_whole_dims(op, value, padding, frozenset(one.dim for one in exchanges), inside)


def _is_even(op: Any, exchanges: Sequence[Exchange]) -> bool:
    shapes = (op.operands[0].type.shape, op.results[0].type.shape)
    return not any(shape[one.dim] % len(one.halo.starts) for one in exchanges for shape in shapes)


def _exchanged(op: Any, exchanges: Sequence[Exchange], part: ManualPart, sharding: TensorSharding) -> Any:
    """Returns the result of the op, from a manual computation in which shards are padded to be even."""
    value, mesh = op.operands[0], part.builder.mesh
    padding = op.operands[1] if op.name == "stablehlo.pad" else stablehlo.scalar(0, value.type.element_type)
    even = even_shape(value.type.shape, sharding, mesh)
    if even != list(value.type.shape):
        value = stablehlo.pad_behind(value, padding, even, sharding)
    wanted = list(op.results[0].type.shape)
    sizes = even_shape(wanted, sharding, mesh)

    def body(arguments: Sequence[Any]) -> Any:
        return moved(op, arguments[0], arguments[1], exchanges, part)

    scalar = TensorSharding.fully_open(0, sharding.mesh_or_ref)
    result = part.build([(value, sharding), (padding, scalar)], stablehlo.with_shape(value.type, sizes), sharding, body)
    return stablehlo.first(result, wanted, sharding)


def _along_whole_dims(op: Any, value: Any, padding: Any, sharded: frozenset[int], inside: TensorSharding) -> Any:
    """Applies the op along the dimensions that are not sharded; returns the result."""

    def only_whole(name: str) -> list[int]:
        return [0 if dim in sharded else amount for dim, amount in enumerate(elements(op.attributes[name]))]

    if op.name == "stablehlo.pad":
        low, high, between = map(only_whole, ("edge_padding_low", "edge_padding_high", "interior_padding"))
        return stablehlo.pad(value, padding, low, high, between, inside) if any(low + high + between) else value
    shape = value.type.shape
    starts = only_whole("start_indices")
    limits = [shape[dim] if dim in sharded else one for dim, one in enumerate(elements(op.attributes["limit_indices"]))]
    strides = [1 if dim in sharded else one for dim, one in enumerate(elements(op.attributes["strides"]))]
    if starts == [0] * len(shape) and limits == list(shape) and strides == [1] * len(shape):
        return value
    return stablehlo.slice_(value, starts, limits, strides, inside)
