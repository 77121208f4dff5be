# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs random programs without sharding, compiled by LLVM and by XLA, and compares: from the folder `test`,

    python -m random_programs.whole_programs [--programs 1000] [--seed 0] [--first 0]

prints what differs, and how many programs did not. The campaigns on ranks compare programs with themselves lowered in
the same way, so a wrong lowering of an operation is nothing they see. Exits with 1 where results differ.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter

from mlir_shard import create_context, parse
from mlir_shard.runtime import RunError, interface, xla_module
from mlir_shard.runtime.compile import Lower
from mlir_shard.runtime.execution import random_inputs, run_program
from mlir_shard.runtime.program import Program
from mlir_shard.runtime.unsharded import drop_sharding
from random_programs import generate, ranks_engine, xla_engine
from random_programs.cases import case
from random_programs.execution import INVALID, MISMATCH, REFUSAL, RIGHT, Outcome, difference, refusal_report
from random_programs.region_ops import whole_text

DIFFERENCE = "known difference"
# Where XLA does something else than StableHLO's specification says, or rounding decides.
_DIFFERENCES = {
    "XLA does not reduce the padding of a window, which is the initial value, where that is not neutral": re.compile(
        r'(%\w+) = "stablehlo\.constant"\(\) <\{value = dense<1(?:\.0)?> .*\n(?:.*\n)*?'
        r'.*"stablehlo\.reduce_window"\(%\w+, \1\) <\{.*padding.*\n.*\n.*"stablehlo\.(?!multiply)'
    ),
    "numbers that are equal but for the rounding of a Fourier transform are sorted in either order": re.compile(
        r'"stablehlo\.fft"[\s\S]*"stablehlo\.sort"'
    ),
}


def outcome(text: str, seed: int) -> Outcome:
    """What comes of a program; it is invalid where XLA does not run it, and refused where LLVM does not."""
    try:
        program = _lowered(text, xla_module.lower)
        inputs = random_inputs(program, seed)
        expected = run_program(program, inputs, xla_engine.XlaEngine())
    except RunError as error:
        return Outcome(INVALID, "XLA", refusal_report(error))
    try:
        results = run_program(_lowered(text, ranks_engine.lower), inputs, ranks_engine.AloneEngine())
    except RunError as error:
        return Outcome(REFUSAL, "LLVM", refusal_report(error))
    for result, wanted in zip(results, expected, strict=True):
        found = difference(result.array, wanted.array, result.port)
        if found:
            known = [reason for reason, pattern in _DIFFERENCES.items() if pattern.search(text)]
            return Outcome(DIFFERENCE if known else MISMATCH, "LLVM", "; ".join([*known, found]))
    return Outcome(RIGHT)


def _lowered(text: str, lower: Lower) -> Program:
    module = parse(whole_text(text), create_context())
    drop_sharding(module)
    arguments, results = interface.ports(interface.entry_function(module, "main"), 1)
    (lowered,) = lower([str(module)], "main")
    return Program(lowered, "main", arguments, results, 1)


def main() -> int:
    """Compares programs."""
    parser = argparse.ArgumentParser(
        prog="python -m random_programs.whole_programs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--programs", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="which programs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    arguments = parser.parse_args()
    xla_engine.prepare()
    kinds: Counter[str] = Counter()
    for number in range(arguments.first, arguments.first + arguments.programs):
        one = case(arguments.seed, number, (generate.STABLEHLO,), is_compiled=True)
        # Where the process ends in the middle, this is the program it ended in.
        print(f"program {one.name}", end=": ", flush=True)
        found = outcome(one.text(), one.seed)
        kinds[found.kind] += 1
        print(found.kind, found.detail, flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    return 1 if kinds[MISMATCH] else 0


if __name__ == "__main__":
    sys.exit(main())
