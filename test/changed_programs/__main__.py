# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares random programs with variants of themselves, as `shard-diff` does.

    python -m changed_programs [--programs 100] [--seed 0] [--mesh-axes 1..3] [--collectives shard]
    python -m changed_programs --models

From the folder `test`. Counts, of the programs that can be partitioned, those without a difference from a variant with
other names, order and locations, those with exactly one difference from a variant with one changed annotation, and
those with exactly one difference from a variant with one inserted operation. With `--models` the programs are the
models of `model_zoo`, each for its targets. Prints the names of the other programs, for `python -m random_programs`;
the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any

from random_programs.cases import case
from random_programs.generate import DIALECTS, STABLEHLO, Scale

import mlir_shard
from changed_programs import variants
from mlir_shard.explain.difference.changes import Difference
from mlir_shard.explain.difference.compare import compare

Vary = Callable[[str, Random, Any], Any]
IsRight = Callable[[Difference], bool]


def is_unchanged(found: Difference) -> bool:
    """Returns True if nothing has changed."""
    return not found


def is_reannotated(found: Difference) -> bool:
    """Returns True if one annotation has changed, and no operation."""
    return found.numbers["annotations"] == 1 and not found.operations


def is_edited(found: Difference) -> bool:
    """Returns True if the inserted operation is the only change in the program."""
    operations = [(one.change, one.op, one.count) for one in found.operations]
    return operations == [("added", variants.INSERTED, 1)] and not found.annotations


VARIANTS: dict[str, tuple[Vary, IsRight]] = {
    "renamed and reordered": (variants.reordered, is_unchanged),
    "with one other annotation": (variants.reannotated, is_reannotated),
    "with one more operation": (variants.edited, is_edited),
}


def main() -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mesh-axes", default="1..3")
    parser.add_argument("--collectives", choices=("shard", "stablehlo"), default="shard")
    parser.add_argument("--models", action="store_true")
    arguments = parser.parse_args()
    is_wrong = False
    for what, (vary, is_right) in VARIANTS.items():
        programs = _models() if arguments.models else _random_programs(arguments)
        found = compared(programs, vary, is_right)
        verdicts = list(found if arguments.models else islice(found, arguments.programs))
        wrong = [name for name, verdict in verdicts if not verdict]
        print(f"{len(verdicts) - len(wrong)} of {len(verdicts)} programs {what}: right", flush=True)
        for name in wrong:
            print(f"  wrong: {name}")
        is_wrong = is_wrong or bool(wrong)
    return int(is_wrong)


Programs = Iterator[tuple[str, str, str]]
"""The names of programs, their texts, and the dialects of collectives for which they are partitioned."""


def compared(programs: Programs, vary: Vary, is_right: IsRight) -> Iterator[tuple[str, bool]]:
    """Yields the names of programs that have a variant and can be partitioned, and if the difference is right."""
    for name, text, collectives in programs:
        after = vary(text, Random(name), mlir_shard.create_context())
        found = None if after is None else difference(text, after, collectives)
        if found is not None:
            yield name, is_right(found)


def _random_programs(arguments: argparse.Namespace) -> Programs:
    fewest, _, most = arguments.mesh_axes.partition("..")
    scale = Scale.of(int(fewest), int(most or fewest))
    dialects = DIALECTS if arguments.collectives == "shard" else (STABLEHLO,)
    for index in count():
        one = case(arguments.seed, index, dialects, scale=scale)
        yield one.name, one.text(), arguments.collectives


def _models() -> Programs:
    from model_zoo.program import DEVICES, MODELS

    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
    from model_zoo.__main__ import load_models

    load_models()
    for name, make in MODELS.items():
        model = make()
        text = model.measured().text
        for target in model.targets:
            yield f"{name} ({target})", text, target


def difference(text: str, after: Any, collectives: str) -> Difference | None:
    """Returns the difference between a text and a module, or None if one of them cannot be partitioned."""
    try:
        before = mlir_shard.parse(text, after.context)
        return compare(before, after, collectives=collectives, report=lambda diagnostic: None)
    except (mlir_shard.ParseError, mlir_shard.PassFailure):
        return None


if __name__ == "__main__":
    sys.exit(main())
