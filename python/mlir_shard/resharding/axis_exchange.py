# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchanging the axes that dimensions are sharded along, where each has as many blocks as before.

Such an exchange is one collective permute, in which every device sends its shard once. The idea is Shardy's.
"""

from __future__ import annotations

from itertools import chain, pairwise

from mlir_shard.resharding.sharding_difference import Difference, Place, divides_either_way, fit_in
from mlir_shard.sharding import AxisRef
from mlir_shard.sharding.axes import total_size


def is_exchange_useful(left: Difference) -> bool:
    """Whether an exchange brings `left` closer to its target.

    It does where a dimension can get what it wants for what it has, where axes that go to one dimension are not
    together or not in order, where an axis that only has to go is behind one that moves, and where an axis that is
    wanted can take the place of one that is not.
    """
    mesh = left.mesh
    used, places = left.surplus_axes(), left.wanted_places()
    for dim, (surplus, wanted) in enumerate(zip(left.surplus, left.wanted, strict=True)):
        if surplus and wanted and divides_either_way(surplus[0].size(mesh), wanted[0].size(mesh)):
            return True
        if _is_out_of_order([places.get(axis) for axis in surplus], dim):
            return True
        if not wanted and any(one in places and other not in places for one, other in pairwise(surplus)):
            return True
    free = [axis for axis in chain.from_iterable(left.wanted) if axis not in used]
    given_up = [axis for axis in chain.from_iterable(left.surplus) if axis not in places]
    return bool(free and given_up) and divides_either_way(free[-1].size(mesh), given_up[-1].size(mesh))


def _is_out_of_order(places: list[Place | None], dim: int) -> bool:
    """Whether the surplus axes of `dim` that go to some dimension, or stay, are not as they should be there."""
    seen: set[int] = set()
    for previous, place in pairwise((None, *places)):
        if place is None:
            continue
        follows = previous is not None and previous.dim == place.dim and previous.index + 1 == place.index
        if (place.dim == dim or place.dim in seen) and not follows:
            return True
        seen.add(place.dim)
    return False


def exchange(left: Difference) -> bool:
    """Gives the dimensions other surplus axes; says whether this can be done, and changes nothing where it cannot.

    What is wanted in a dimension comes first, then what is wanted elsewhere, at the end, where an all-to-all can take
    it. What fills the rest has to be gathered later and is in front, if possible where it was.
    """
    mesh = left.mesh
    saved = list(left.current), [list(axes) for axes in left.surplus], [list(axes) for axes in left.wanted]
    places = left.wanted_places()
    before = [total_size(axes, mesh) for axes in left.current]
    capacities = [total_size(axes, mesh) for axes in left.surplus]
    given_up = [_given_up(left, dim, capacities, places) for dim in range(left.rank)]
    free = list(chain.from_iterable(left.wanted))
    left.distribute([free] * left.rank, capacities, at_front=False)
    left.distribute(given_up, capacities, at_front=True)
    rest = list(chain.from_iterable(given_up))
    left.distribute([rest] * left.rank, capacities, at_front=True)
    for dim, surplus in enumerate(left.surplus):
        left.append(dim, surplus)
    if [total_size(axes, mesh) for axes in left.current] == before:
        return True
    left.current, left.surplus, left.wanted = saved
    return False


def _given_up(left: Difference, dim: int, capacities: list[int], places: dict[AxisRef, Place]) -> list[AxisRef]:
    """Puts what a dimension wants in the place of its surplus, and returns the surplus that is wanted nowhere.

    What has lost its place to wanted axes is at the end of it.
    """
    mesh = left.mesh
    removed = left.remove(dim, len(left.surplus[dim]))
    full = capacities[dim]
    while left.wanted[dim] and (fit := fit_in(left.wanted[dim][0], capacities[dim], mesh)) is not None:
        capacities[dim] = fit.capacity
        left.append(dim, (fit.within,))
        left.wanted[dim][:1] = [] if fit.rest is None else [fit.rest]
    replaced = full // capacities[dim]
    kept = [axis for axis in removed if axis not in places]
    lost: list[AxisRef] = []
    while kept and (fit := fit_in(kept[0], replaced, mesh)) is not None:
        replaced = fit.capacity
        lost.append(fit.within)
        kept[:1] = [] if fit.rest is None else [fit.rest]
    return kept + lost
