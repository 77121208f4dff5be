# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of local programs, beside those of plans, Shardy's collectives and the programs of another target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

from resharding_peers.local_programs import Cost
from resharding_peers.random_reshards import Reshard

# Sums of the same times in another order differ in their last digits.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Ratio:
    """The mean and the largest ratio of a figure of programs to that of their plans, if the latter is not 0."""

    mean: float
    worst: float
    above: int
    """The number of programs that take more than their plan."""
    below: int
    """The number of programs that take less than their plan."""

    @staticmethod
    def of(pairs: Iterable[tuple[float, float]]) -> Ratio:
        """Returns the ratio for pairs of the figure of a program and that of its plan."""
        ratios = [_ratio(one, plan) for one, plan in pairs]
        finite = [ratio for ratio in ratios if ratio < inf] or [1.0]
        above = sum(ratio > 1 + _ROUNDING for ratio in ratios)
        return Ratio(sum(finite) / len(finite), max(finite), above, sum(one < 1 - _ROUNDING for one in ratios))


@dataclass(frozen=True, slots=True)
class Peers:
    """The other costs for each pair, None if one does not exist.

    plans: those of the planner; shardy: Shardy's collectives; padded: these on a tensor padded to even shards, if they
    are not correct on the tensor itself; other: the program of the other target, if it exists.
    """

    plans: Sequence[Cost]
    shardy: Sequence[Cost | None]
    padded: Sequence[Cost | None]
    other: Sequence[Cost | None]


@dataclass(frozen=True, slots=True)
class Ratios:
    """The programs of a target on a mesh.

    refused: pairs for which the pipeline fails; not_local: programs that receive data although the plan receives none;
    above_shardy, above_padded, above_other: programs that take more time than these, see `Peers`.
    """

    mesh: str
    target: str
    pairs: int
    refused: int
    not_local: int
    bytes_received: Ratio
    time: Ratio
    above_shardy: int
    above_padded: int
    above_other: int
    seconds: float
    """The processor seconds to compile all programs."""

    @property
    def is_least(self) -> bool:
        """Whether no program takes more than necessary; padded tensors do not count, because the planner cannot pad."""
        above = self.bytes_received.above + self.time.above + self.above_shardy + self.above_other
        return not above + self.refused + self.not_local

    def row(self) -> str:
        """Returns a line of the table whose heading is `HEAD`."""
        ratios = "".join(
            f"{one.mean:>9.2f}{one.worst:>9.2f}{one.above:>7}{one.below:>7}" for one in (self.bytes_received, self.time)
        )
        counts = (self.not_local, self.above_shardy, self.above_padded, self.above_other, self.refused)
        return f"  {self.target:<10}{ratios}" + "".join(f"{count:>10}" for count in counts) + f"{self.seconds:>9.1f}"


HEAD = "\n".join(
    (
        f"  {'':<10}{'bytes of the plan':>32}{'time of the plan':>32}{'':>10}{'more time than':>30}",
        f"  {'target':<10}"
        + 2 * f"{'mean':>9}{'worst':>9}{'above':>7}{'below':>7}"
        + "".join(f"{name:>10}" for name in ("not local", "Shardy", "padded", "other", "refused"))
        + f"{'seconds':>9}",
    )
)


def compared(mesh: str, target: str, programs: Sequence[Cost | None], peers: Peers, seconds: float) -> Ratios:
    """Returns the ratios of the programs of a target to the other costs."""
    done = [(one, plan) for one, plan in zip(programs, peers.plans, strict=True) if one is not None]
    return Ratios(
        mesh,
        target,
        len(programs),
        len(programs) - len(done),
        sum(one.bytes_received > 0 == plan.bytes_received for one, plan in done),
        Ratio.of((one.bytes_received, plan.bytes_received) for one, plan in done),
        Ratio.of((one.time, plan.time) for one, plan in done),
        *(_above(programs, others) for others in (peers.shardy, peers.padded, peers.other)),
        seconds,
    )


def worst_programs(
    reshards: Sequence[Reshard], programs: Sequence[Cost | None], peers: Peers, count: int
) -> Iterator[str]:
    """Yields a line for each of the programs with the largest ratio of their time to that of another cost."""

    def excess(index: int) -> float:
        one = programs[index]
        others = (peers.plans[index], peers.shardy[index], peers.other[index])
        return inf if one is None else max(_ratio(one.time, other.time) for other in others if other is not None)

    for index in sorted(range(len(programs)), key=excess, reverse=True)[:count]:
        if excess(index) > 1 + _ROUNDING:
            beside = {"program": programs, "plan": peers.plans, "Shardy": peers.shardy, "padded": peers.padded}
            figures = [f"{name} {_figures(cost)}" for name, costs in beside.items() if (cost := costs[index])]
            yield f"    {reshards[index]}: {'; '.join(figures) or 'refused'}"


def _figures(cost: Cost) -> str:
    kinds = ((kind, len(list(same))) for kind, same in groupby(cost.collectives))
    listed = ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in kinds)
    return f"{cost.bytes_received:,} B, {cost.time * 1e6:.2f} µs, {listed or 'local'}"


def _above(programs: Sequence[Cost | None], others: Sequence[Cost | None]) -> int:
    pairs = zip(programs, others, strict=True)
    return sum(one.time > other.time * (1 + _ROUNDING) for one, other in pairs if one is not None and other is not None)


def _ratio(one: float, of: float) -> float:
    if of > 0:
        return one / of
    return inf if one > 0 else 1.0
