# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that are padded at the end so that their shards are even, and the ops that change their sizes.

The padding of a value has arbitrary elements, unless it is known to be zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.sharding import AxisRefList, DimensionSharding, ListOfAxisRefLists, Mesh, TensorSharding

Shape = tuple[int, ...]


class PaddingError(Exception):
    """A tensor that cannot be padded."""


class PaddedValues:
    """The padding of the values of a function; values that are not recorded have none.

    All padding is at the end of a dimension. Ops are built at the current insertion point. `padding` makes the scalar
    of new padding, by default zero; other padding has no known value afterwards.
    """

    def __init__(self, meshes: Mapping[str, Mesh], padding: Callable[[Any], Any] | None = None) -> None:
        self._meshes = meshes
        self._padding = padding or zero
        self._pads_zeros = padding is None
        self._shapes: dict[Any, Shape] = {}
        self._zero_padded: set[Any] = set()

    def shape(self, value: Any) -> Shape:
        """Returns the sizes of a tensor without its padding."""
        return self._shapes.get(value) or tuple(value.type.shape)

    def is_padded(self, value: Any) -> bool:
        """Returns whether the value has padding."""
        return value in self._shapes

    def shards(self, sharding: TensorSharding | None, rank: int) -> Shape:
        """Returns the number of shards of each dimension."""
        mesh = None if sharding is None else mesh_of(sharding, self._meshes)
        if sharding is None or mesh is None or mesh.is_maximal:
            return (1,) * rank
        return tuple(dim.sharded_size(mesh) for dim in sharding.dim_shardings)

    def even_shape(self, shape: Sequence[int], sharding: TensorSharding | None) -> Shape:
        """Returns the least sizes, not below `shape`, that have even shards; dynamic sizes stay."""
        shards = self.shards(sharding, len(shape))
        return tuple(
            size if size == DYNAMIC else -(-size // count) * count for size, count in zip(shape, shards, strict=True)
        )

    def set_shape(self, value: Any, shape: Sequence[int], own: Sequence[int] | None = None) -> None:
        """Sets the shape of a value; its sizes without padding are `own`, by default the present ones."""
        sizes = tuple(own) if own is not None else self.shape(value)
        if list(shape) != list(value.type.shape):
            value.set_type(stablehlo.with_shape(value.type, shape))
        self._know(value, sizes, is_zero=False)

    def is_zero_padded(self, value: Any) -> bool:
        """Returns whether all padding of the value is known to be zero."""
        return value in self._zero_padded or value not in self._shapes

    def set_zero_padded(self, value: Any) -> None:
        """Records that all padding of a value is zero."""
        if value in self._shapes:
            self._zero_padded.add(value)

    def resized(self, value: Any, shape: Sequence[int]) -> Any:
        """Returns the value with other sizes, not less than those without padding.

        It keeps its sharding. A sharded dimension is gathered for the change, and sliced again if its shards are then
        even.
        """
        have, sharding = tuple(value.type.shape), sharding_of(value)
        if have == tuple(shape):
            return value
        shards = self.shards(sharding, len(have))
        differing = [dim for dim, (old, new) in enumerate(zip(have, shape, strict=True)) if old != new]
        gathered = [dim for dim in differing if shards[dim] > 1]
        whole = self._gathered(value, sharding, gathered) if gathered and sharding is not None else value
        resized = self._in_place(whole, shape, differing)
        back = {dim for dim in gathered if shape[dim] % shards[dim] == 0}
        if not back or sharding is None:
            return resized
        return self.sliced(resized, without_axes_of(sharding, set(gathered) - back), back)

    def _in_place(self, value: Any, shape: Sequence[int], dims: Collection[int]) -> Any:
        """Returns the value with other sizes along dimensions that are not sharded."""
        own, have = self.shape(value), list(value.type.shape)
        if DYNAMIC in have:
            raise PaddingError(
                f"{value.type} has a dynamic size and cannot be padded to even shards: sizes must be static"
            )
        kept = [min(own[dim], shape[dim]) if dim in dims else size for dim, size in enumerate(have)]
        is_zero = self._pads_zeros and (self.is_zero_padded(value) or kept == list(own))
        sharding = sharding_of(value)
        if kept != have:
            value = stablehlo.slice_(value, [0] * len(kept), kept, sharding=sharding)
            self._know(value, own, is_zero=is_zero)
        if kept != list(shape):
            value = stablehlo.pad_behind(value, self._padding(value.type.element_type), shape, sharding)
            self._know(value, own, is_zero=is_zero)
        return value

    def _gathered(self, value: Any, sharding: TensorSharding, dims: Collection[int]) -> Any:
        after = without_axes_of(sharding, dims)
        attributes = {"gathering_axes": _axes_of(sharding, dims), "out_sharding": sdy.attribute(after)}
        return self._moved("sdy.all_gather", value, attributes)

    def sliced(self, value: Any, sharding: TensorSharding, dims: Collection[int]) -> Any:
        """Returns the value sliced along `dims` to a sharding that its other dimensions have already."""
        attributes = {"slicing_axes": _axes_of(sharding, dims), "out_sharding": sdy.attribute(sharding)}
        return self._moved("sdy.all_slice", value, attributes)

    def _moved(self, name: str, value: Any, attributes: Mapping[str, Any]) -> Any:
        moved = ir.Operation.create(name, [value.type], [value], dict(attributes)).results[0]
        self._know(moved, self.shape(value), is_zero=self.is_zero_padded(value))
        return moved

    def masked(self, value: Any, scalar: Callable[[], Any], dims: Collection[int]) -> Any:
        """Returns the value with a scalar in the padding of the given dimensions."""
        own, sharding, shape = self.shape(value), sharding_of(value), list(value.type.shape)
        padded = [dim for dim in sorted(dims) if own[dim] != shape[dim]]
        if not padded:
            return value
        filling = scalar()
        mask = None
        for dim in padded:
            position = ir.IntegerType.get_signless(32 if shape[dim] < 2**31 else 64)
            type_ = ir.RankedTensorType.get(shape, position)
            indices = stablehlo.build("iota", type_, sharding=sharding, iota_dimension=stablehlo.integer(dim))
            limit = stablehlo.splat(stablehlo.tensor(position), own[dim])
            limits = stablehlo.broadcast(limit, shape, sharding=sharding)
            inside = stablehlo.compare("LT", indices, limits, sharding)
            mask = inside if mask is None else stablehlo.binary("and", mask, inside, sharding)
        fillings = stablehlo.broadcast(filling, shape, sharding=sharding)
        masked = stablehlo.select(mask, value, fillings, sharding)
        self._know(masked, own, is_zero=False)
        return masked

    def masked_by_zeros(self, value: Any, dims: Collection[int]) -> Any:
        """Returns the value with zeros in the padding of the given dimensions."""
        if self.is_zero_padded(value):
            return value
        masked = self.masked(value, lambda: zero(value.type.element_type), dims)
        own, shape = self.shape(masked), masked.type.shape
        if all(dim in dims for dim, size in enumerate(own) if size != shape[dim]):
            self.set_zero_padded(masked)
        return masked

    def finish(self, result: Any) -> None:
        """Replaces an op's result, of any sizes, by a value of the sizes that its sharding needs."""
        sharding, have = sharding_of(result), tuple(result.type.shape)
        own = self.shape(result)
        wanted = self.even_shape(own, sharding)
        if have == wanted:
            return
        shards = self.shards(sharding, len(have))
        differing = [dim for dim, (old, new) in enumerate(zip(have, wanted, strict=True)) if old != new]
        whole = [dim for dim in differing if shards[dim] > 1]
        if whole and sharding is not None:
            sdy.set_sharding(result, without_axes_of(sharding, whole))
        users = [use.owner.operation for use in result.uses]
        with ir.InsertionPoint.after(result.owner.operation):
            new = self._in_place(result, wanted, differing)
            if whole and sharding is not None:
                new = self.sliced(new, sharding, whole)
        self.replace(result, new, users)

    def replace(self, result: Any, new: Any, users: Collection[Any]) -> None:
        """Replaces a result by another value in some of its users."""
        others = {use.owner.operation for use in result.uses if use.owner.operation not in users}
        result.replace_all_uses_except(new, list(others))

    def _know(self, value: Any, own: Shape, *, is_zero: bool) -> None:
        self._zero_padded.discard(value)
        if list(own) == list(value.type.shape):
            self._shapes.pop(value, None)
            return
        self._shapes[value] = own
        if is_zero:
            self._zero_padded.add(value)


def zero(element_type: Any) -> Any:
    """Returns a scalar zero; raises PaddingError if the type has no constant."""
    if not stablehlo.has_numbers(element_type):
        raise PaddingError(
            f"tensors of {element_type} cannot be padded to even shards: no padding constant is known for this type"
        )
    return stablehlo.scalar(0, element_type)


def without_axes_of(sharding: TensorSharding, dims: Collection[int]) -> TensorSharding:
    """Returns the sharding without the axes of some dimensions."""
    return sharding.replace_dims({dim: DimensionSharding((), sharding.dim_shardings[dim].is_closed) for dim in dims})


def _axes_of(sharding: TensorSharding, dims: Collection[int]) -> Any:
    axes = [of.axes if dim in dims else () for dim, of in enumerate(sharding.dim_shardings)]
    return sdy.attribute(ListOfAxisRefLists(tuple(map(AxisRefList, axes))))


DYNAMIC = ir.ShapedType.get_dynamic_size()
