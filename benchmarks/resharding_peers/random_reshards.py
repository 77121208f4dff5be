# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random reshards between shardings along axes and sub-axes of a mesh, with even and uneven shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axes import add_axes_or_merge, sort_and_merge
from resharding_peers.pairs import MESH

_RANKS = (2, 3, 4)
_SIZES = {2: (512, 1024, 4096), 3: (128, 512, 1024), 4: (32, 64, 256)}
_CUT, _USED = 0.35, 0.75
_CHANGED_LITTLE, _UNEVEN, _UNREDUCED = 0.3, 0.25, 0.15


@dataclass(frozen=True, slots=True)
class Reshard:
    """A reshard of an f32 tensor between layouts on one mesh; the target has no unreduced axes."""

    source: TensorLayout
    target: TensorLayout

    @property
    def type(self) -> str:
        """The type of the global tensor, as text."""
        return f"tensor<{'x'.join(map(str, self.source.shape))}xf32>"

    @property
    def is_even(self) -> bool:
        """Whether all shards of both layouts are even."""
        layouts = (self.source, self.target)
        return all(not size % count for one in layouts for size, count in zip(one.shape, one.blocks, strict=True))

    @property
    def is_unreduced(self) -> bool:
        """Whether the source contains partial sums."""
        return bool(self.source.sharding.unreduced_axes)

    def __str__(self) -> str:
        return f"{self.type} from {self.source.sharding} to {self.target.sharding}"


def random_reshards(mesh: Mesh, count: int, seed: int) -> list[Reshard]:
    """Returns `count` different reshards of tensors of rank 2 to 4; equal seeds give equal reshards."""
    found: dict[Reshard, None] = {}
    for one in _endless(mesh, Random(f"{seed}/{mesh}")):
        if len(found) == count:
            break
        found[one] = None
    return list(found)


def _endless(mesh: Mesh, random: Random) -> Iterator[Reshard]:
    while True:
        rank = random.choice(_RANKS)
        atoms = _cut(mesh, random)
        before = _dealt(atoms, rank, random)
        if random.random() < _CHANGED_LITTLE:
            after = _changed(before, random)
        else:
            after = _dealt(_cut(mesh, random), rank, random)
        if before == after:
            continue
        held = [atom for dim in before for atom in dim]
        free = [atom for atom in atoms if atom not in held]
        unreduced = random.sample(free, random.randint(1, len(free))) if free and random.random() < _UNREDUCED else []
        source, target = (_sharding(dims, mesh, partial) for dims, partial in ((before, unreduced), (after, [])))
        counts = [max(one.dim_shardings[dim].sharded_size(mesh) for one in (source, target)) for dim in range(rank)]
        # Types at the boundary of a function cannot express partial sums of uneven shards.
        is_uneven = not unreduced and random.random() < _UNEVEN
        shape = tuple(_size(count, rank, is_uneven, random) for count in counts)
        yield Reshard(TensorLayout(source, mesh, shape), TensorLayout(target, mesh, shape))


def _cut(mesh: Mesh, random: Random) -> list[AxisRef]:
    """Returns the axes of a mesh, some of them split into two sub-axes."""
    atoms: list[AxisRef] = []
    for axis in mesh.axes:
        cuts = [size for size in range(2, axis.size) if axis.size % size == 0]
        if cuts and random.random() < _CUT:
            size = random.choice(cuts)
            atoms += [AxisRef.sub(axis.name, 1, size), AxisRef.sub(axis.name, size, axis.size // size)]
        else:
            atoms.append(AxisRef(axis.name))
    return atoms


def _dealt(atoms: Sequence[AxisRef], rank: int, random: Random) -> list[list[AxisRef]]:
    """Returns an assignment of some of the axes, in random order, to random dimensions."""
    dims: list[list[AxisRef]] = [[] for _ in range(rank)]
    for atom in random.sample(atoms, len(atoms)):
        if random.random() < _USED:
            random.choice(dims).append(atom)
    return dims


def _changed(dims: Sequence[Sequence[AxisRef]], random: Random) -> list[list[AxisRef]]:
    """Returns `dims` with one axis moved to any dimension or dropped, or with two dimensions exchanged."""
    changed = [list(dim) for dim in dims]
    sharded = [dim for dim in changed if dim]
    if not sharded or random.random() < 0.2:
        one, other = random.sample(range(len(changed)), 2)
        changed[one], changed[other] = changed[other], changed[one]
        return changed
    dim = random.choice(sharded)
    atom = dim.pop(random.randrange(len(dim)))
    if random.random() < 0.8:
        to = random.choice(changed)
        to.insert(random.randint(0, len(to)), atom)
    return changed


def _sharding(dims: Sequence[Sequence[AxisRef]], mesh: Mesh, unreduced: Sequence[AxisRef]) -> TensorSharding:
    closed = TensorSharding.closed_with((add_axes_or_merge((), dim, mesh) for dim in dims), MESH)
    return TensorSharding(MESH, closed.dim_shardings, (), sort_and_merge(unreduced, mesh))


def _size(count: int, rank: int, is_uneven: bool, random: Random) -> int:
    """Returns a size close to one of `_SIZES`: a multiple of `count`, or any size if uneven."""
    usual = random.choice(_SIZES[rank])
    if is_uneven:
        return random.randint(max(2, usual // 2), usual)
    return count * max(1, usual // count)
