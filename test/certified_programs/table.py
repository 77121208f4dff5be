# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of failed proofs in Markdown, by the op at which proofs fail, and by the pass of the lit tests."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from certified_programs import partitioned
from certified_programs.partitioned import Source
from mlir_shard.check.checker import Verdict

# The headings around the tables in the document.
BEGIN, END = "### Counts\n", "### What most often stands in the way\n"
_SIZES = re.compile(r"\d+|\([\d, ]*\)")


@dataclass
class Table:
    """Counts of local programs.

    Attributes:
        total, proved: the numbers of programs by their source and the target.
        missing: the numbers of programs that are not proved, by the op, by the reason, and by their source.
        of_passes: the numbers of programs and of proved programs in the lit tests of each pass.
    """

    total: Counter[tuple[str, str]] = field(default_factory=Counter)
    proved: Counter[tuple[str, str]] = field(default_factory=Counter)
    missing: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    of_passes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, name: str, sources: Iterable[Source], targets: Iterable[str]) -> None:
        """Counts programs."""
        for source in sources:
            for target in targets:
                one = partitioned.partitioned(source, target) if target in source.targets else None
                if one is None:
                    continue
                self.total[name, target] += 1
                self.proved[name, target] += one.verdict.is_proved
                if name == "lit":
                    counts = self.of_passes[_pass_of(source.name)]
                    counts[0] += 1
                    counts[1] += one.verdict.is_proved
                for where in set(failures(one.verdict)):
                    self.missing[where][name] += 1

    def text(self) -> str:
        """Returns the tables."""
        names = list(dict.fromkeys(name for name, _ in self.total))
        found = ["| programs | target | proved | of | right programs refused |", "| --- | --- | --- | --- | --- |"]
        for (name, target), total in self.total.items():
            proved = self.proved[name, target]
            found.append(f"| {name} | {target} | {proved} | {total} | {total - proved} |")
        found += ["", f"| op at which the proof fails | what is missing | {' | '.join(names)} |"]
        found.append(f"| --- | --- |{' --- |' * len(names)}")
        for (op, why), counts in sorted(self.missing.items(), key=lambda one: (-one[1].total(), one[0])):
            found.append(f"| `{op}` | {why} | {' | '.join(str(counts[name] or '') for name in names)} |")
        if self.of_passes:
            found += ["", "| lit tests of the pass | proved | of |", "| --- | --- | --- |"]
            for name, (total, proved) in sorted(self.of_passes.items()):
                if proved < total:
                    found.append(f"| `{name}` | {proved} | {total} |")
        return "\n".join(found)


def _pass_of(name: str) -> str:
    """Returns the pass of a lit test by its file, or its folder if the file is not for one pass."""
    path = Path(name.partition(" ")[0])
    stem = path.stem.replace("_", "-")
    return stem if stem.startswith(("shard-", "sdy-")) else str(path.parent)


def failures(verdict: Verdict) -> Iterable[tuple[str, str]]:
    """Yields the ops at which a proof fails, with reasons: ops without a lemma, or the first op of another value."""
    if verdict.is_proved:
        return
    for what in verdict.lost:
        _, op, why = what.split(": ", 2)
        yield op, _SIZES.sub("n", why)
    if not verdict.lost:
        failure = verdict.refusals[0]
        yield failure.op.name, f"another value, of lemma {failure.failure.lemma}"


def write(path: Path, text: str) -> None:
    """Replaces the text between the headings of a file."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has not both headings")
    path.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{after}")
