# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random meshes, and random shardings on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from differential.program import Mark, Shape

Axes = dict[str, int]

MESHES: tuple[Axes, ...] = (
    {"a": 2, "b": 2},
    {"a": 2, "b": 4, "c": 2},
    {"a": 4, "b": 2, "c": 3},
    {"a": 8, "b": 2},
    {"a": 2, "b": 1, "c": 4},
    {"a": 2, "b": 2, "c": 2, "d": 2},
)


class Annotations:
    """The meshes of a program, the first one chosen from `meshes`, and the probabilities of the parts of its shardings.

    axes_per_dim: the numbers of axes of a dimension, all equally likely.
    """

    def __init__(
        self,
        random: Random,
        meshes: Sequence[Axes] = MESHES,
        *,
        unreduced: float = 0.05,
        axes_per_dim: Sequence[int] = (0, 0, 0, 1, 1, 2),
    ) -> None:
        self._random = random
        self._axes_per_dim = axes_per_dim
        self.axes = random.choice(meshes)
        spelled = ", ".join(f'"{name}"={size}' for name, size in self.axes.items())
        self.meshes = [f"sdy.mesh @m = <[{spelled}]>"]
        self._others: list[tuple[str, Axes]] = []
        self._inlined = f"mesh<[{spelled}]>" if random.random() < 0.1 else None
        self._priorities = random.choice([0.0, 0.0, 0.2, 0.5])
        self._open = random.choice([0.3, 0.7, 0.95])
        self._sub_axes = random.choice([0.0, 0.3, 0.6])
        self._unreduced = random.random() < unreduced
        if random.random() < 0.15:
            self._add_other_meshes()

    def _add_other_meshes(self) -> None:
        count = 1
        for size in self.axes.values():
            count *= size
        spelled = ", ".join(f'"{name}"={size}' for name, size in self.axes.items())
        reverse = ", ".join(str(device) for device in reversed(range(count)))
        self.meshes.append(f"sdy.mesh @reversed = <[{spelled}], device_ids=[{reverse}]>")
        self.meshes.append(f'sdy.mesh @line = <["x"={count}]>')
        self._others = [("@reversed", self.axes), ("@line", {"x": count})]

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def sharding(self, rank: int, without: Collection[str] = (), *, one_mesh: bool = False) -> str:
        """Returns a sharding without axes of `without`, as text in angle brackets."""
        mesh, axes = "@m", self.axes
        if self._others and not without and not one_mesh and self.chance(0.2):
            mesh, axes = self._random.choice(self._others)
        elif self._inlined is not None and self.chance(0.7):
            mesh = self._inlined
        pool = self._pool({name: size for name, size in axes.items() if name not in without})
        dims = []
        for _ in range(rank):
            count = self._random.choice(self._axes_per_dim)
            dims.append(self._dimension(_take(pool, count)))
        left = sorted(_take(pool, 1), key=lambda axis: axis) if self.chance(0.1) else []
        extra = f", replicated={{{', '.join(left)}}}" if left else ""
        if self._unreduced and self.chance(0.3) and (rest := _take(pool, 1)):
            extra += f", unreduced={{{', '.join(rest)}}}"
        return f"<{mesh}, [{', '.join(dims)}]{extra}>"

    def _pool(self, axes: Axes) -> list[str]:
        pool = []
        for name, size in axes.items():
            if size % 4 == 0 and self.chance(self._sub_axes):
                parts = [f'"{name}":(1)2', f'"{name}":(2){size // 2}']
                pool += self._random.choice([parts, parts[:1], parts[1:]])
            else:
                pool.append(f'"{name}"')
        self._random.shuffle(pool)
        return pool

    def _dimension(self, axes: list[str]) -> str:
        is_open = self.chance(self._open)
        priority = f"p{self._random.randint(0, 3)}" if (axes or is_open) and self.chance(self._priorities) else ""
        return "{" + ", ".join(axes + ["?"] * is_open) + "}" + priority

    def manual(self, shape: Shape, manual: Collection[str], *, local: bool) -> tuple[str, Shape]:
        """Returns a sharding for a manual computation, and the local shape for a global `shape`, or, if `local`, the
        global shape for a local one. Manual axes come first in their dimensions."""
        axes = [axis for axis in self.axes if axis in manual]
        free = [f'"{axis}"' for axis in self.axes if axis not in manual]
        self._random.shuffle(axes)
        self._random.shuffle(free)
        other, dims = list(shape), []
        for dim in range(len(shape)):
            used = []
            for axis in list(axes):
                size = self.axes[axis]
                if self.chance(0.5) and (local or other[dim] % size == 0):
                    other[dim] = other[dim] * size if local else other[dim] // size
                    used.append(f'"{axis}"')
                    axes.remove(axis)
            used += _take(free, self._random.choice([0, 0, 1]))
            dims.append("{" + ", ".join(used + ["?"] * self.chance(0.5)) + "}")
        # Axes that are not manual and shard no dimension may be omitted; the remaining manual axes are replicated.
        rest = [f'"{axis}"' for axis in self.axes if axis in axes] if self.chance(0.6) else []
        extra = f", replicated={{{', '.join(rest)}}}" if rest else ""
        return f"<@m, [{', '.join(dims)}]{extra}>", tuple(other)

    def on_function(self, rank: int, share: float) -> Mark:
        """Returns the attributes of an argument or a result, with a sharding or without."""
        text = f" {{sdy.sharding = #sdy.sharding{self.sharding(rank)}}}"
        return Mark(text if self.chance(share) else "")

    def on_op(self, ranks: list[int], without: Collection[str], share: float = 0.15) -> Mark:
        """Returns the attributes of an op with results of these ranks."""
        if not ranks or not self.chance(share):
            return Mark("")
        shardings = ", ".join(self.sharding(rank, without, one_mesh=len(ranks) > 1) for rank in ranks)
        return Mark(f" {{sdy.sharding = #sdy.sharding_per_value<[{shardings}]>}}")


def _take(pool: list[str], count: int) -> list[str]:
    """Takes up to `count` axes out of the pool, but no two that would have to be merged into one."""
    taken: list[str] = []
    for axis in list(pool):
        if len(taken) == count:
            break
        if taken and _name(taken[-1]) == _name(axis) and ":(1)" in taken[-1]:
            continue
        taken.append(axis)
        pool.remove(axis)
    return taken


def _name(axis: str) -> str:
    return axis.split(":")[0]
