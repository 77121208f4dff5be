# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems that differ only in which of several like axes is which: they have one solution."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from mlir_shard.resharding.search_space import State
from mlir_shard.resharding.steps import GridAxes


@dataclass(frozen=True, slots=True)
class Renaming:
    """For each axis the one that takes its name."""

    names: GridAxes

    @staticmethod
    def by_appearance(kinds: Sequence[Hashable], axes: Iterable[int]) -> Renaming:
        """Names that axes of one kind take in the order in which they appear in `axes`, then of what is left."""
        members: defaultdict[Hashable, list[int]] = defaultdict(list)
        for axis, kind in enumerate(kinds):
            members[kind].append(axis)
        names: dict[int, int] = {}
        for axis in (*axes, *range(len(kinds))):
            if axis not in names:
                names[axis] = members[kinds[axis]].pop(0)
        return Renaming(tuple(names[axis] for axis in range(len(kinds))))

    @property
    def back(self) -> Renaming:
        """The renaming that undoes this one."""
        return Renaming(tuple(map(self.names.index, range(len(self.names)))))

    def axes(self, axes: GridAxes) -> GridAxes:
        """Axes in the same order."""
        return tuple(self.names[axis] for axis in axes)

    def state(self, state: State) -> State:
        """A state of a search."""
        return State(tuple(map(self.axes, state.dims)), tuple(sorted(self.axes(state.unreduced))))
