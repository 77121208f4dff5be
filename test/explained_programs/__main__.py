# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the coverage of explanations, and checks that they do not change programs. From the folder `test`,

    python -m explained_programs [FILE.mlir ...] [--random 100] [--seed 1] [--mesh-axes 1..4] [--models] [--verbose]
    python -m explained_programs --what-if 500 [--seed 1] [--mesh-axes 1..4]
    python -m explained_programs --shardy [FILE.mlir ...] [--random 100] [--seed 1] [--mesh-axes 1..4]

takes files with programs between lines of `// -----`, by default those of the lit tests, and random programs, and
counts for both targets the axes whose chain ends at an annotation and the collectives with a cause. Exits with 1 if a
local program differs from the one without explanations.

--what-if compares the predicted cost of a changed annotation with that of the program that has the annotation in its
text, for random programs and annotations, and exits with 1 if bytes or collectives differ.

--shardy compares the chains with the origins and steps that jaxlib's Shardy records with its debugging options, and
exits with 1 if they differ in an unknown way.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from differential.sides import Shardy
from model_zoo.__main__ import load_models
from model_zoo.program import DEVICES, MODELS
from random_programs.generate import Scale, program
from rich.console import Console
from rich.table import Table

from explained_programs.annotations import annotated_at_random, costs_of_change, costs_of_text
from explained_programs.coverage import Coverage, coverage
from explained_programs.shardy_steps import Agreement, agreement

_LIT = Path(__file__).parents[1] / "transforms"


def main() -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(
        prog="python -m explained_programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="instead of the lit tests")
    parser.add_argument("--random", type=int, default=100, metavar="N", help="random programs (default: 100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mesh-axes", default="1..4", metavar="A..B")
    parser.add_argument("--models", action="store_true", help="the models of the zoo too")
    parser.add_argument("--verbose", action="store_true", help="what is not explained")
    parser.add_argument("--what-if", type=int, default=0, metavar="N", help="compare so many changes with programs")
    parser.add_argument("--shardy", action="store_true", help="compare chains with what Shardy records")
    arguments = parser.parse_args()
    fewest, _, most = arguments.mesh_axes.partition("..")
    axes = int(fewest), int(most or fewest)
    if arguments.what_if:
        return _changes(arguments.what_if, arguments.seed, axes)
    scale = Scale.of(*axes)
    files = arguments.files or sorted(_LIT.rglob("*.mlir"))
    table = Table("programs", "target", "count", "refused", "different", "axes", "with origin", "collectives", "caused")
    different = 0
    sources = {"files": lambda: _parts(files), "random": lambda: _random(arguments.random, arguments.seed, scale)}
    if arguments.shardy:
        return _beside_shardy(sources)
    if arguments.models:
        sources["models"] = _models
    for title, programs in sources.items():
        for target in ("shard", "stablehlo"):
            total = Coverage()
            for name, text in programs():
                found, missing = coverage(text, target, name)
                total += found
                for line in missing if arguments.verbose else ():
                    print(f"{target}: {name}: {line}", file=sys.stderr, flush=True)
            shares = _share(total.with_origin, total.axes), _share(total.with_cause, total.collectives)
            counts = total.programs, total.refused, total.different, total.axes, shares[0], total.collectives, shares[1]
            table.add_row(title, target, *map(str, counts))
            different += total.different
    Console(width=120).print(table)
    return int(different > 0)


def _changes(count: int, seed: int, axes: tuple[int, int]) -> int:
    equal = refused = moved = 0
    for number in range(count):
        one = annotated_at_random(f"{seed}/{number}", axes)
        target = ("shard", "stablehlo")[number % 2]
        tried, written = costs_of_change(one, target), costs_of_text(one.after, target)
        equal += tried == written
        refused += written is None
        moved += written is not None and written != costs_of_text(one.before, target)
        if tried != written:
            print(f"{seed}/{number}, {target}: {one.change}: {tried}, but {written}", file=sys.stderr, flush=True)
    print(f"{equal} of {count} changes cost what the program costs that has them in its text")
    print(f"{moved} of them change the collectives, {refused} cannot be partitioned")
    return int(equal < count)


def _beside_shardy(sources: Mapping[str, Callable[[], Iterator[tuple[str, str]]]]) -> int:
    table = Table("programs", "count", "axes", "same steps", "with origins", "same origin")
    total = Agreement()
    with Shardy() as shardy:
        for title, programs in sources.items():
            of_title = Agreement()
            for name, text in programs():
                found = agreement(text, shardy)
                of_title += found
                for line in found.lines:
                    print(f"{name}: {line}", file=sys.stderr, flush=True)
            origins = of_title.same_origins + of_title.other_origins.total()
            shares = _share(of_title.same_steps, of_title.axes), _share(of_title.same_origins, origins)
            table.add_row(title, *map(str, (of_title.programs, of_title.axes, shares[0], origins, shares[1])))
            total += of_title
    Console(width=120).print(table)
    for heading, kinds in (
        ("other steps", total.other_steps),
        ("other origins", total.other_origins),
        ("not compared", total.refused),
    ):
        print(f"{heading}:")
        for kind, count in kinds.most_common():
            print(f"  {count} {kind}")
    print(
        f"{total.without_origin} axes without an origin in Shardy, {total.otherwise_sharded} tensors sharded otherwise"
    )
    return int(bool(total.lines))


def _share(part: int, of: int) -> str:
    return f"{part} ({part / of:.2%})" if of else "-"


def _parts(files: list[Path]) -> Iterator[tuple[str, str]]:
    for file in files:
        for number, text in enumerate(file.read_text(errors="replace").split("\n// -----")):
            if "func.func" in text:
                yield f"{file.name}/{number}", text


def _models() -> Iterator[tuple[str, str]]:
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    load_models()
    for name, model in MODELS.items():
        yield name, model().measured().text


def _random(count: int, seed: int, scale: Scale) -> Iterator[tuple[str, str]]:
    for number in range(count):
        yield f"{seed}/{number}", program(f"{seed}/{number}", scale=scale).write()


if __name__ == "__main__":
    sys.exit(main())
