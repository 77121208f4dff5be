# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the local programs that are proved by their certificates. From the folder `test`,

    python -m certified_programs [--sources random,lit,zoo] [--programs 200] [--seed 0] [--mesh-axes 1..3] [--even]
    python -m certified_programs --mutants 4 [--programs 200] [--seed 0]
    python -m certified_programs --table [--write ../docs/certificates.md]
    python -m certified_programs --save FILE; python -m certified_programs --from FILE [--by lemmas]

prints for each source the number of local programs that are proved entirely, the number of these that are proved by
symbols, and the reasons for the others, by op and lemma. --by counts the proofs by symbols or by lemmas alone. --save
writes the partitioned programs to a file, and --from checks those of a file again. --mutants makes up to that many
mistakes in each proved local program, one at a time. A mutant that is proved runs on the same inputs as the local
program, and the exit status is 1 if the results differ. --table prints the failed proofs as tables in Markdown, by op
and by pass, and --write puts them between two headings of a file. Models of the zoo need
XLA_FLAGS=--xla_force_host_platform_device_count=8.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from random_programs import generate

from certified_programs import partitioned
from certified_programs.partitioned import Partitioned, Source
from certified_programs.table import Table, write


def main() -> int:
    """Prints the counts."""
    parser = argparse.ArgumentParser(
        prog="python -m certified_programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sources", default="random,lit,zoo", help="of random, lit and zoo, separated by commas")
    parser.add_argument("--programs", type=int, default=200, help="how many random programs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first random program")
    parser.add_argument("--seed", type=int, default=0, help="which random programs")
    parser.add_argument("--mesh-axes", default="1..3", metavar="N..M", help="how many axes meshes have")
    parser.add_argument("--even", action="store_true", help="sizes, of axes too, that are powers of two")
    parser.add_argument("--dialects", default=generate.STABLEHLO, help="of random programs, separated by commas")
    parser.add_argument("--targets", default=",".join(partitioned.TARGETS), help="dialects of collectives")
    parser.add_argument("--mutants", type=int, default=0, help="how many mistakes to make in each proved program")
    parser.add_argument("--table", action="store_true", help="print tables in Markdown")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the file to put the tables in")
    parser.add_argument("--list", action="store_true", help="print the verdict on each program")
    parser.add_argument("--by", default="", choices=("symbols", "lemmas"), help="the only way to prove them")
    parser.add_argument("--save", type=Path, metavar="FILE", help="the file to put partitioned programs in")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="source", help="a file of partitioned programs")
    arguments = parser.parse_args()
    targets = tuple(arguments.targets.split(","))
    wrong, table = 0, Table()
    if arguments.source is not None:
        _count(arguments.source.name, partitioned.read(arguments.source), targets, arguments)
        return 0
    for name in arguments.sources.split(","):
        sources = list(_sources(name, arguments))
        if arguments.table:
            table.add(name, sources, targets)
        elif arguments.mutants:
            from certified_programs.campaign import mutate

            wrong += mutate(name, sources, targets, arguments.mutants, arguments.seed)
        else:
            _count(name, _partitioned(sources, targets), targets, arguments)
    if arguments.table:
        print(table.text())
        if arguments.write is not None:
            write(arguments.write, table.text())
    return 1 if wrong else 0


def _sources(name: str, arguments: argparse.Namespace) -> Iterable[Source]:
    if name == "lit":
        return partitioned.lit_sources()
    if name == "zoo":
        return partitioned.model_sources()
    least, _, most = arguments.mesh_axes.partition("..")
    scale = generate.Scale.of(int(least), int(most or least), is_even=arguments.even)
    return partitioned.random_sources(
        arguments.programs, arguments.seed, scale, tuple(arguments.dialects.split(",")), arguments.first
    )


def _partitioned(sources: Iterable[Source], targets: Iterable[str]) -> Iterator[tuple[str, str, Partitioned]]:
    for source in sources:
        for target in targets:
            one = partitioned.partitioned(source, target) if target in source.targets else None
            if one is not None:
                yield source.name, target, one


@dataclass
class _Counts:
    """The counts of a target."""

    total: int = 0
    proved: Counter[str] = field(default_factory=Counter)
    operations: int = 0
    seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)


def _count(
    name: str,
    programs: Iterable[tuple[str, str, Partitioned]],
    targets: Iterable[str],
    arguments: argparse.Namespace,
) -> None:
    counts = {target: _Counts() for target in targets}
    with open(arguments.save or os.devnull, "a") as file:
        for source, target, one in programs:
            if target not in counts:
                continue
            of, started = counts[target], time.perf_counter()
            verdict = partitioned.checked(one, one.module, arguments.by)
            of.seconds += time.perf_counter() - started
            of.total, of.operations = of.total + 1, of.operations + verdict.ops
            of.proved.update([verdict.by] if verdict.is_proved else [])
            found = set(_reasons(verdict))
            of.reasons.update(found)
            if arguments.list:
                print(f"{source} {target}: {'; '.join(sorted(found)) or f'proved by {verdict.by}'}", flush=True)
            file.write(partitioned.saved(one, source, target) + "\n")
    for target, of in counts.items():
        proved = of.proved.total()
        share = f"{proved / of.total:.0%}, {of.proved['symbols']} by symbols" if of.total else "none"
        rate = f"{1e6 * of.seconds / of.operations:.0f} µs each" if of.operations else ""
        print(f"{name}, {target}: {proved} of {of.total} proved ({share}); {of.operations} operations read, {rate}")
        for reason, count in of.reasons.most_common():
            print(f"  {count:4} {reason}")
        sys.stdout.flush()


def _reasons(verdict: partitioned.Verdict) -> Iterator[str]:
    if verdict.is_proved:
        return
    if verdict.lost:
        yield from verdict.lost
    else:
        yield f"another value: {verdict.refusals[0].op.name} (lemma: {verdict.refusals[0].failure.lemma})"


if __name__ == "__main__":
    sys.exit(main())
