# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares random programs with variants of themselves, as `shard-diff` does.

    python -m changed_programs [--programs 100] [--seed 0] [--mesh-axes 1..3] [--collectives shard]

From the folder `test`. Of as many programs that can be partitioned: in how many no difference is found where names,
order and locations are others, and in how many exactly the one annotation that is another one. Prints the names of the
others, for `python -m random_programs`; the exit status is 1 where there is one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

from random_programs.cases import case
from random_programs.generate import DIALECTS, STABLEHLO, Scale

import mlir_shard
from changed_programs import variants
from mlir_shard.explain.difference.changes import Difference
from mlir_shard.explain.difference.compare import compare


def main() -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mesh-axes", default="1..3")
    parser.add_argument("--collectives", choices=("shard", "stablehlo"), default="shard")
    arguments = parser.parse_args()
    fewest, _, most = arguments.mesh_axes.partition("..")
    scale = Scale.of(int(fewest), int(most or fewest))
    dialects = DIALECTS if arguments.collectives == "shard" else (STABLEHLO,)
    is_wrong = False
    for what, pairs in (
        ("renamed and reordered", reordered_pairs(arguments.seed, dialects, scale, arguments.collectives)),
        ("with one other annotation", reannotated_pairs(arguments.seed, dialects, scale, arguments.collectives)),
    ):
        right, wrong = 0, []
        for (name, is_right), _ in zip(pairs, range(arguments.programs), strict=False):
            right += is_right
            if not is_right:
                wrong.append(name)
        print(f"{right} of {arguments.programs} programs {what}: right", flush=True)
        is_wrong = is_wrong or bool(wrong)
        for name in wrong:
            print(f"  wrong: {name}")
    return int(is_wrong)


def reordered_pairs(seed: int, dialects: tuple[str, ...], scale: Scale, collectives: str) -> Iterator[tuple[str, bool]]:
    """The names of programs, and whether no difference is found."""
    for name, text in _programs(seed, dialects, scale):
        context = mlir_shard.create_context()
        found = difference(text, variants.reordered(text, Random(name), context), collectives)
        if found is not None:
            yield name, not found


def reannotated_pairs(
    seed: int, dialects: tuple[str, ...], scale: Scale, collectives: str
) -> Iterator[tuple[str, bool]]:
    """The names of programs, and whether the one change of an annotation is found."""
    for name, text in _programs(seed, dialects, scale):
        after = variants.reannotated(text, Random(name), mlir_shard.create_context())
        found = None if after is None else difference(text, after, collectives)
        if found is not None:
            yield name, found.numbers["annotations"] == 1 and not found.operations


def _programs(seed: int, dialects: tuple[str, ...], scale: Scale) -> Iterator[tuple[str, str]]:
    index = 0
    while True:
        one = case(seed, index, dialects, scale=scale)
        yield one.name, one.text()
        index += 1


def difference(text: str, after: Any, collectives: str) -> Difference | None:
    """What has changed from a text to a module; None where one of them cannot be partitioned."""
    try:
        before = mlir_shard.parse(text, after.context)
        return compare(before, after, collectives=collectives, report=lambda diagnostic: None)
    except (mlir_shard.ParseError, mlir_shard.PassFailure):
        return None


if __name__ == "__main__":
    sys.exit(main())
