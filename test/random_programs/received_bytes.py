# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes that devices receive in programs, compared between targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from random_programs.execution import Received


@dataclass
class _Difference:
    """An op for which targets receive different bytes: the number of programs, the bytes, and the extreme program."""

    programs: int = 0
    received: Counter[str] = field(default_factory=Counter)
    most: int = 0
    example: str = ""


@dataclass
class ReceivedBytes:
    """The received bytes of many programs, in total and by the name of the op that causes the collectives."""

    programs: int = 0
    same: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    differences: dict[str, _Difference] = field(default_factory=dict)
    apart: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, name: str, received: tuple[tuple[str, Received], ...]) -> None:
        """Counts a program that was run on several targets."""
        if len(received) < 2:
            return
        by_target = {target: Counter(dict(of_op)) for target, of_op in received}
        self.programs += 1
        totals = Counter({target: of_op.total() for target, of_op in by_target.items()})
        self.totals.update(totals)
        if len(set(totals.values())) == 1:
            self.same += 1
        else:
            self.apart[name] = totals
        for op in sorted({op for of_op in by_target.values() for op in of_op}):
            sizes = {target: of_op[op] for target, of_op in by_target.items()}
            if (apart := max(sizes.values()) - min(sizes.values())) > 0:
                difference = self.differences.setdefault(op, _Difference())
                difference.programs += 1
                difference.received.update(sizes)
                if apart > difference.most:
                    difference.most, difference.example = apart, name

    def lines(self, title: str) -> Iterator[str]:
        """Returns the totals, a line for each program with a difference, and one for each op."""
        if not self.programs:
            return
        yield f"{title}: a device receives {_listed(self.totals)}; the same in {self.same} of {self.programs} programs"
        for name, sizes in sorted(self.apart.items(), key=lambda item: min(item[1].values()) - max(item[1].values())):
            yield f"  {name}: {_listed(sizes)}"
        for op, one in sorted(self.differences.items(), key=lambda item: -item[1].most):
            yield (
                f"  for {op}: {_listed(one.received)} in {one.programs} programs, most apart in {one.example} "
                f"({one.most:,} B)"
            )


def _listed(sizes: Counter[str]) -> str:
    return ", ".join(f"{target} {size:,} B" for target, size in sizes.items())
