# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings of tensors: the axes of a mesh that shard each dimension.

Also shardings on the two sides of a manual computation, and shardings up to a user priority.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from typing import NamedTuple

from mlir_shard.sharding.axes import AxisRef, axes_difference, sort_and_merge, total_size
from mlir_shard.sharding.hashed_once import HashedOnce
from mlir_shard.sharding.mesh import Mesh

DEFAULT_PRIORITY = 0


class ReductionOp(str, Enum):
    """The operation that computes the value of a tensor from partial values along unreduced axes."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


class DimensionSharding(NamedTuple):
    """The axes that shard one dimension.

    Attributes:
        axes: from major to minor.
        is_closed: whether propagation may not shard the dimension further.
        priority: the round of propagation from which the axes are used, 0 for the first; None, for a text without a
            priority, counts as 0.
    """

    axes: tuple[AxisRef, ...]
    is_closed: bool
    priority: int | None = None

    @property
    def priority_or_default(self) -> int:
        """The priority, 0 if none is given."""
        return DEFAULT_PRIORITY if self.priority is None else self.priority

    def sharded_size(self, mesh: Mesh) -> int:
        """Returns the number of shards of the dimension."""
        return total_size(self.axes, mesh)

    def with_axes(self, axes: tuple[AxisRef, ...]) -> DimensionSharding:
        """Replaces the axes. Drops the priority if the result is closed and has no axes: it would have no effect."""
        return DimensionSharding(axes, self.is_closed, self.priority if axes or not self.is_closed else None)

    def closed(self) -> DimensionSharding:
        """Returns a closed dimension sharding with the same axes and priority."""
        return self._replace(is_closed=True)

    def opened(self) -> DimensionSharding:
        """Returns an open dimension sharding with the same axes and priority."""
        return self._replace(is_closed=False)

    def __str__(self) -> str:
        parts = [*map(str, self.axes), *(() if self.is_closed else ("?",))]
        return "{" + ", ".join(parts) + "}" + ("" if self.priority is None else f"p{self.priority}")


@dataclass(frozen=True, slots=True)
class TensorSharding(HashedOnce):
    """The sharding of a tensor on a mesh. The tensor is replicated along axes that the sharding does not name.

    Attributes:
        mesh_or_ref: the mesh, or the name of its symbol without `@`.
        dim_shardings: the axes of each dimension.
        replicated_axes: the axes along which the tensor has to stay replicated, in the order of the mesh.
        unreduced_axes: the axes along which each device holds a partial value, in the order of the mesh.
        reduction_op: the operation that computes the value from the partial values.
    """

    mesh_or_ref: str | Mesh
    dim_shardings: tuple[DimensionSharding, ...]
    replicated_axes: tuple[AxisRef, ...] = ()
    unreduced_axes: tuple[AxisRef, ...] = ()
    reduction_op: ReductionOp = ReductionOp.SUM

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            parts = (self.mesh_or_ref, self.dim_shardings, self.replicated_axes, self.unreduced_axes, self.reduction_op)
            return self._hashed(parts)

    @staticmethod
    def fully_open(rank: int, mesh_or_ref: str | Mesh) -> TensorSharding:
        """Returns a sharding with every dimension open and not sharded."""
        return TensorSharding(mesh_or_ref, (DimensionSharding((), is_closed=False),) * rank)

    @staticmethod
    def fully_closed(rank: int, mesh_or_ref: str | Mesh) -> TensorSharding:
        """Returns a sharding with every dimension closed and not sharded."""
        return TensorSharding(mesh_or_ref, (DimensionSharding((), is_closed=True),) * rank)

    @staticmethod
    def closed_with(axes_per_dim: Iterable[Sequence[AxisRef]], mesh_or_ref: str | Mesh) -> TensorSharding:
        """Returns a sharding with a closed dimension for each list of axes."""
        return TensorSharding(mesh_or_ref, tuple(DimensionSharding(tuple(axes), True) for axes in axes_per_dim))

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dim_shardings)

    @property
    def mesh_text(self) -> str:
        """The mesh in the syntax of shardings: `@name`, or its axes if it is inlined."""
        return f"@{self.mesh_or_ref}" if isinstance(self.mesh_or_ref, str) else f"mesh{self.mesh_or_ref}"

    @property
    def is_fully_replicated(self) -> bool:
        """Whether no dimension is sharded."""
        return not any(dim.axes for dim in self.dim_shardings)

    @property
    def is_fully_closed(self) -> bool:
        """Whether every dimension is closed."""
        return all(dim.is_closed for dim in self.dim_shardings)

    @property
    def is_fully_open(self) -> bool:
        """Whether every dimension is open."""
        return not any(dim.is_closed for dim in self.dim_shardings)

    @property
    def sharding_axes(self) -> tuple[AxisRef, ...]:
        """The axes that shard dimensions, dimension by dimension."""
        return tuple(chain.from_iterable(dim.axes for dim in self.dim_shardings))

    @property
    def used_axes(self) -> tuple[AxisRef, ...]:
        """The axes that shard dimensions, then the replicated, then the unreduced ones."""
        return self.sharding_axes + self.replicated_axes + self.unreduced_axes

    def replace_dims(self, shardings: Mapping[int, DimensionSharding]) -> TensorSharding:
        """Replaces the shardings of the dimensions that are keys of `shardings`."""
        dims = tuple(shardings.get(dim, old) for dim, old in enumerate(self.dim_shardings))
        return replace(self, dim_shardings=dims)

    def close(self, dims: Collection[int] | None = None) -> TensorSharding:
        """Closes the given dimensions, by default all."""
        return self.replace_dims({d: self.dim_shardings[d].closed() for d in self._dims(dims)})

    def open(self, dims: Collection[int] | None = None) -> TensorSharding:
        """Opens the given dimensions, by default all."""
        return self.replace_dims({d: self.dim_shardings[d].opened() for d in self._dims(dims)})

    def _dims(self, dims: Collection[int] | None) -> Collection[int]:
        return range(self.rank) if dims is None else dims

    def without_axes(self, names: Collection[str]) -> TensorSharding:
        """Returns the sharding in a body that is manual on the named axes: without these and their sub-axes."""
        return self._select(lambda axis: axis.name not in names)

    def with_replicated(self, axes: Iterable[AxisRef], mesh: Mesh) -> TensorSharding:
        """Adds those of the axes that the sharding does not use to its replicated axes."""
        missing = axes_difference(axes, self.used_axes, mesh)
        if not missing:
            return self
        return replace(self, replicated_axes=sort_and_merge((*self.replicated_axes, *missing), mesh))

    def only_axes(self, names: Collection[str]) -> TensorSharding:
        """Returns the sharding restricted to the named axes and their sub-axes."""
        return self._select(lambda axis: axis.name in names)

    def _select(self, keep: Callable[[AxisRef], bool]) -> TensorSharding:
        dims = (dim.with_axes(tuple(filter(keep, dim.axes))) for dim in self.dim_shardings)
        return replace(
            self,
            dim_shardings=tuple(dims),
            replicated_axes=tuple(filter(keep, self.replicated_axes)),
            unreduced_axes=tuple(filter(keep, self.unreduced_axes)),
        )

    def is_equivalent(self, other: TensorSharding | None, *, ignore_unreduced_axes: bool = False) -> bool:
        """Returns whether both shardings place the same data on each device.

        Open, closed, priorities and replicated axes do not matter; nor does the mesh if neither shards anything. None
        is a tensor without sharding, which counts as replicated.
        """
        if self is other:
            return True
        return _placed(self, ignore_unreduced_axes) == (() if other is None else _placed(other, ignore_unreduced_axes))

    def local_shape(self, shape: Sequence[int | None], mesh: Mesh) -> tuple[int | None, ...]:
        """Returns the local shape: each size divided by its number of shards, rounded up. None is a dynamic size.

        Raises ValueError if the ranks of `shape` and the sharding differ.
        """
        if len(shape) != self.rank:
            raise ValueError(f"a sharding of rank {self.rank} does not fit a tensor of rank {len(shape)}")
        return tuple(
            None if size is None else -(-size // dim.sharded_size(mesh))
            for size, dim in zip(shape, self.dim_shardings, strict=True)
        )

    def __str__(self) -> str:
        text = f"<{self.mesh_text}, [{', '.join(map(str, self.dim_shardings))}]"
        if self.replicated_axes:
            text += f", replicated={{{', '.join(map(str, self.replicated_axes))}}}"
        if self.unreduced_axes:
            op = "" if self.reduction_op is ReductionOp.SUM else self.reduction_op.value
            text += f", unreduced={op}{{{', '.join(map(str, self.unreduced_axes))}}}"
        return text + ">"


def _placed(sharding: TensorSharding, ignore_unreduced_axes: bool) -> tuple[object, ...]:
    """Returns all properties that determine the data of each device; empty for a replicated tensor."""
    unreduced = () if ignore_unreduced_axes else sharding.unreduced_axes
    axes = tuple([dim.axes for dim in sharding.dim_shardings])
    if not unreduced and not any(axes):
        return ()
    return (sharding.mesh_or_ref, axes, unreduced, sharding.reduction_op if unreduced else None)


def mesh_of(sharding: TensorSharding, meshes: Mapping[str, Mesh]) -> Mesh | None:
    """Returns the mesh of a sharding, looked up in `meshes` if it is a name. None if the name is unknown."""
    ref = sharding.mesh_or_ref
    return ref if isinstance(ref, Mesh) else meshes.get(ref)


@dataclass(frozen=True, slots=True)
class TensorShardingPerValue:
    """One sharding for each operand or result of an op."""

    shardings: tuple[TensorSharding, ...]

    @staticmethod
    def fully_open(ranks: Iterable[int], mesh_or_ref: str | Mesh) -> TensorShardingPerValue:
        """Returns a fully open sharding for each tensor rank."""
        return TensorShardingPerValue(tuple(TensorSharding.fully_open(rank, mesh_or_ref) for rank in ranks))

    @staticmethod
    def fully_closed(ranks: Iterable[int], mesh_or_ref: str | Mesh) -> TensorShardingPerValue:
        """Returns a fully closed sharding for each tensor rank."""
        return TensorShardingPerValue(tuple(TensorSharding.fully_closed(rank, mesh_or_ref) for rank in ranks))

    @staticmethod
    def filled(
        shardings: Iterable[TensorSharding | None], ranks: Iterable[int], mesh_or_ref: str | Mesh
    ) -> TensorShardingPerValue:
        """Returns the shardings, with fully open ones for those that are missing (None)."""
        pairs = zip(shardings, ranks, strict=True)
        return TensorShardingPerValue(tuple(one or TensorSharding.fully_open(rank, mesh_or_ref) for one, rank in pairs))

    def replace(self, index: int, sharding: TensorSharding) -> TensorShardingPerValue:
        """Replaces the sharding of value number `index`."""
        return TensorShardingPerValue((*self.shardings[:index], sharding, *self.shardings[index + 1 :]))

    def __len__(self) -> int:
        return len(self.shardings)

    def __iter__(self) -> Iterator[TensorSharding]:
        return iter(self.shardings)


@dataclass(frozen=True, slots=True)
class EdgeFrame:
    """The sharding and the manual axes that a data-flow edge of a manual computation crosses.

    `outer` is the in- or out-sharding that belongs to the edge. The sources of the edge of an argument
    (`into_body`) are outside and its targets inside; for the edge of a result it is the other way round.
    """

    outer: TensorSharding
    manual_axes: tuple[str, ...]
    into_body: bool

    def as_sources_see(self, target: TensorSharding) -> TensorSharding:
        """Converts a sharding of the target to one of the sources."""
        return self.to_outside(target) if self.into_body else self.to_inside(target)

    def as_targets_see(self, source: TensorSharding) -> TensorSharding:
        """Converts a sharding of the sources to one of the targets."""
        return self.to_inside(source) if self.into_body else self.to_outside(source)

    def to_inside(self, sharding: TensorSharding) -> TensorSharding:
        """Returns the sharding without the manual axes."""
        return sharding.without_axes(self.manual_axes)

    def to_outside(self, sharding: TensorSharding) -> TensorSharding:
        """Returns the sharding with the manual axes of `outer` before its free axes."""
        manual = self.outer.only_axes(self.manual_axes)
        dims = tuple(
            DimensionSharding(before.axes + free.axes, free.is_closed, free.priority)
            for before, free in zip(manual.dim_shardings, sharding.dim_shardings, strict=True)
        )
        return replace(self.outer, mesh_or_ref=sharding.mesh_or_ref, dim_shardings=dims)


def later_priorities(sharding: TensorSharding) -> frozenset[int]:
    """Returns the priorities of dimensions other than 0, which are used from a later round on."""
    return frozenset(dim.priority_or_default for dim in sharding.dim_shardings) - {DEFAULT_PRIORITY}


def first_stage(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    """Returns the sharding restricted to the dimensions of priority 0, with the axes of others replicated.

    No dimension of the result has a priority.
    """
    dims: list[DimensionSharding] = []
    replicated: list[AxisRef] = list(sharding.replicated_axes)
    for dim in sharding.dim_shardings:
        if dim.priority_or_default == DEFAULT_PRIORITY:
            dims.append(_without_priority(dim))
        else:
            dims.append(DimensionSharding((), is_closed=True))
            replicated += dim.axes
    replicated.sort(key=lambda axis: axis.mesh_order_key(mesh))
    return replace(sharding, dim_shardings=tuple(dims), replicated_axes=tuple(replicated))


def with_priority(sharding: TensorSharding, original: TensorSharding, priority: int) -> TensorSharding:
    """Adds the dimensions that have this priority in `original`; their axes are no longer among the replicated."""
    dims = tuple(
        _without_priority(first) if first.priority_or_default == priority else now
        for now, first in zip(sharding.dim_shardings, original.dim_shardings, strict=True)
    )
    taken = {axis for dim in original.dim_shardings if dim.priority_or_default == priority for axis in dim.axes}
    replicated = tuple(axis for axis in sharding.replicated_axes if axis not in taken)
    return replace(sharding, dim_shardings=dims, replicated_axes=replicated)


def without_priorities(sharding: TensorSharding) -> TensorSharding:
    """Removes the priorities of all dimensions."""
    return replace(sharding, dim_shardings=tuple(map(_without_priority, sharding.dim_shardings)))


def _without_priority(dim: DimensionSharding) -> DimensionSharding:
    return dim if dim.priority is None else dim._replace(priority=None)
