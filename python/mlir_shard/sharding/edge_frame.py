# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding of a value on the two sides of a manual computation: inside it has no manual axes.

In the in- and out-shardings of a manual computation each dimension begins with its manual axes; the axes after them
are free, and only those propagate.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir_shard.sharding.tensor import DimensionSharding, TensorSharding


@dataclass(frozen=True, slots=True)
class EdgeFrame:
    """What a data-flow edge of a manual computation needs to know of it.

    `outer` is the in- or out-sharding that belongs to the edge. The sources of the edge of an argument
    (`into_body`) are outside and its targets inside; for the edge of a result it is the other way round.
    """

    outer: TensorSharding
    manual_axes: tuple[str, ...]
    into_body: bool

    def as_sources_see(self, target: TensorSharding) -> TensorSharding:
        """A sharding of the target, said as one of the sources."""
        return self.to_outside(target) if self.into_body else self.to_inside(target)

    def as_targets_see(self, source: TensorSharding) -> TensorSharding:
        """A sharding of the sources, said as one of the target."""
        return self.to_inside(source) if self.into_body else self.to_outside(source)

    def to_inside(self, sharding: TensorSharding) -> TensorSharding:
        """The sharding without the manual axes."""
        return sharding.without_axes(self.manual_axes)

    def to_outside(self, sharding: TensorSharding) -> TensorSharding:
        """The sharding with the manual axes of `outer` before the free axes it has."""
        manual = self.outer.only_axes(self.manual_axes)
        dims = tuple(
            DimensionSharding(before.axes + free.axes, free.is_closed, free.priority)
            for before, free in zip(manual.dim_shardings, sharding.dim_shardings, strict=True)
        )
        return TensorSharding(sharding.mesh_or_ref, dims, self.outer.replicated_axes, self.outer.unreduced_axes)
