# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that random ops are applied to, with the tensors on devices by the definitions of the ops."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from math import prod
from random import Random
from typing import Any

import numpy as np
from check.evaluation import Evaluation

from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.kernel.mesh import Mesh
from mlir_shard.check.lemmas.affine import Affine
from mlir_shard.check.lemmas.values import Value

MESHES = ((2,), (2, 3), (3, 2), (2, 2, 2))
Shards = list[Any]
Op = Callable[["Walk"], tuple[Value, Shards]]


class Walk:
    """A value, and the tensors that the devices have by the definitions of the ops that made it."""

    def __init__(self, seed: int, *, even: bool, meaning: Callable[[Mesh], Any] = Affine) -> None:
        self.random = Random(seed)
        self.mesh = self.random.choice(MESHES)
        self.lemmas = meaning(Mesh(self.mesh))
        self.places = list(itertools.product(*map(range, self.mesh)))
        self.leaves: dict[Any, Any] = {}
        self.even = even
        self.value, self.shards = self.argument(self.random.randrange(1, 4))
        self.evaluation = Evaluation(self.lemmas, self.leaves)

    def argument(self, rank: int) -> tuple[Value, Shards]:
        axes: list[list[int]] = [[] for _ in range(rank)]
        for axis in self.random.sample(range(len(self.mesh)), self.random.randrange(len(self.mesh) + 1)):
            axes[self.random.randrange(rank)].append(axis)
        shape = []
        for along in axes:
            parts = prod(self.mesh[axis] for axis in along)
            shape.append(parts * self.random.randrange(1, 4) if self.even else self.random.randrange(1, 3 * parts + 1))
        name = ("argument", "main", len(self.leaves))
        whole = np.random.default_rng(self.random.randrange(2**30)).integers(-9, 9, shape).astype(float)
        self.leaves[name] = whole
        value = self.lemmas.given(self.lemmas.leaf(name, shape), axes)
        return value, [self._shard(whole, axes, value.shape, place) for place in self.places]

    def _shard(self, whole: Any, axes: list[list[int]], local: Any, place: Any) -> Any:
        pads = [
            (0, size * prod(self.mesh[axis] for axis in along) - full)
            for size, along, full in zip(local, axes, whole.shape, strict=True)
        ]
        padded = np.pad(whole, pads, constant_values=0.0)
        behind = np.isnan(np.pad(np.zeros(whole.shape), pads, constant_values=np.nan))
        # Padding behind the end of a tensor is different on each device.
        padded[behind] = [self.random.randrange(1000, 9000) for _ in range(int(behind.sum()))]
        for dim, (along, size) in enumerate(zip(axes, local, strict=True)):
            number = 0
            for axis in along:
                number = number * self.mesh[axis] + place[axis]
            padded = padded.take(range(number * size, number * size + size), axis=dim)
        return padded

    def step(self, ops: Mapping[str, Op]) -> str:
        """Applies a random op and returns its name."""
        name = self.random.choice(list(ops))
        try:
            value, shards = ops[name](self)
        except NotCertified:
            return ""
        self.value, self.shards = value, shards
        return name

    def check(self) -> tuple[int, int]:
        """Compares the known elements, and returns their number and that of all elements."""
        known = total = 0
        for found, wanted in zip(self.evaluation.shards(self.value), self.shards, strict=True):
            assert found.shape == wanted.shape
            at = ~np.isnan(found)
            assert np.array_equal(found[at], wanted[at])
            known += int(at.sum())
            total += wanted.size
        return known, total

    def group(self, axes: list[int], place: Any) -> list[int]:
        """Returns the devices of the group of a device along axes, in order."""
        found = []
        for position in itertools.product(*(range(self.mesh[axis]) for axis in axes)):
            other = list(place)
            for axis, at in zip(axes, position, strict=True):
                other[axis] = at
            found.append(self.places.index(tuple(other)))
        return found

    def axes(self) -> list[int]:
        return self.random.sample(range(len(self.mesh)), self.random.randrange(1, len(self.mesh) + 1))

    def dim(self) -> int:
        if not self.value.rank:
            raise NotCertified("no dimension")
        return self.random.randrange(self.value.rank)


def all_gather(walk: Walk) -> tuple[Value, Shards]:
    axes, dim = walk.axes(), walk.dim()
    found = [np.concatenate([walk.shards[one] for one in walk.group(axes, place)], dim) for place in walk.places]
    return walk.lemmas.gathered(walk.value, dim, axes), found


def check_chains(
    ops: Mapping[str, Op],
    seeds: Iterable[int],
    *,
    even: bool,
    least: float,
    meaning: Callable[[Mesh], Any],
) -> None:
    """Applies chains of ops, compares after each one, and requires a fraction of more than `least` known elements."""
    known = total = 0
    seen = set[str]()
    for seed in seeds:
        walk = Walk(seed, even=even, meaning=meaning)
        for _ in range(5):
            name = walk.step(ops)
            if prod(walk.value.shape) * len(walk.places) > 600:
                break
            found = walk.check() if name else (0, 0)
            known, total = known + found[0], total + found[1]
            seen.add(name)
    assert seen >= set(ops)
    assert known > least * total
