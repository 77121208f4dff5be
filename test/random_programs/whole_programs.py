# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs random programs without sharding, compiled by LLVM and by XLA, and compares the results. From the folder `test`,

    python -m random_programs.whole_programs [--programs 1000] [--seed 0] [--first 0] [--large]

prints the differences and the numbers of outcomes. The campaigns on ranks compare programs that are lowered in the same
way, so they do not find an operation that is lowered incorrectly. Programs are in StableHLO, the only dialect that both
run. Their reductions begin with neutral values, because XLA combines others with parts of a reduction, and not with the
padding of a window. Exits with 1 if results differ.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from mlir_shard import create_context, parse
from mlir_shard.runtime import RunError, interface
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.compile import Lower
from mlir_shard.runtime.execution import random_inputs, run_program
from mlir_shard.runtime.pjrt import xla_module
from mlir_shard.runtime.program import Port, Program
from mlir_shard.runtime.reference.unsharded import drop_sharding
from random_programs import ranks_engine, xla_engine
from random_programs.cases import Case, case
from random_programs.execution import INVALID, MISMATCH, REFUSAL, RIGHT, Outcome, difference, refusal_report
from random_programs.generate import SMALL, SMALL_AXES, STABLEHLO, Scale
from random_programs.region_ops import whole_text

# Returns the inputs of a program; pickled for the process of XLA.
Inputs = Callable[[Program], list[Array]]
# Describes how a result, the first array, differs from the expected one.
Compare = Callable[[Array, Array, Port], str]
DIFFERENCE = "known difference"
# Cases in which XLA is wrong, or the result depends on rounding.
_DIFFERENCES = {
    "XLA counts more leading zeros in i8 than it has bits": re.compile(
        r'"stablehlo\.count_leading_zeros"\(.*: \(tensor<[\dx]*i8>\)'
    ),
    "tensors are sorted by what a Fourier transform makes, of which some are equal but for its rounding": re.compile(
        r'(%\w+) = "stablehlo\.fft"[\s\S]*(%\w+) = "stablehlo\.(?:real|imag)"\(\1\)[\s\S]*'
        r'"stablehlo\.sort"\(\2, %'
    ),
}


def reference() -> ProcessPoolExecutor:
    """Returns a process with XLA, which has its own LLVM, so that a crash is known to be XLA's or this project's."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), xla_engine.prepare, (1,))


def program(seed: int, index: int, scale: Scale = SMALL) -> Case:
    """Returns the program of a number that both engines run."""
    return case(seed, index, (STABLEHLO,), is_compiled=True, is_neutral=True, scale=scale)


def random_values(seed: int) -> Inputs:
    """Returns the random inputs of a seed."""
    return partial(random_inputs, seed=seed)


def outcome(text: str, inputs: Inputs, xla: ProcessPoolExecutor, compare: Compare = difference) -> Outcome:
    """Returns the outcome of a program. It is invalid if XLA refuses it, and a refusal if LLVM's lowering does.

    `compare` returns the differences of a result from XLA's. BrokenProcessPool if the process of XLA ends.
    """
    expected = xla.submit(_expected, text, inputs).result()
    if isinstance(expected, Outcome):
        return expected
    try:
        lowered = _lowered(text, ranks_engine.lower)
        results = run_program(lowered, inputs(lowered), ranks_engine.AloneEngine())
    except RunError as error:
        return Outcome(REFUSAL, "LLVM", refusal_report(error))
    pairs = zip(results, expected, strict=True)
    found = [one for result, wanted in pairs if (one := compare(result.array, wanted, result.port))]
    if found:
        known = [reason for reason, pattern in _DIFFERENCES.items() if pattern.search(text)]
        return Outcome(DIFFERENCE if known else MISMATCH, "LLVM", "; ".join([*known, *found]))
    return Outcome(RIGHT)


def _expected(text: str, inputs: Inputs) -> list[Array] | Outcome:
    """Returns XLA's results, or the outcome if it has none."""
    try:
        lowered = _lowered(text, xla_module.lower)
        results = run_program(lowered, inputs(lowered), xla_engine.XlaEngine())
    except RunError as error:
        return Outcome(INVALID, "XLA", refusal_report(error))
    return [result.array for result in results]


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
    parser.add_argument("--large", action="store_true", help="sizes of tens, at which loops are tiled")
    arguments = parser.parse_args()
    scale = Scale.of(1, SMALL_AXES, is_large=arguments.large)
    kinds: Counter[str] = Counter()
    with reference() as xla:
        for number in range(arguments.first, arguments.first + arguments.programs):
            one = program(arguments.seed, number, scale)
            # If the process ends here, this line identifies the program.
            print(f"program {one.name}", end=": ", flush=True)
            found = outcome(one.text(), random_values(one.seed), xla)
            kinds[found.kind] += 1
            print(found.kind, found.detail, flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    return 1 if kinds[MISMATCH] else 0


if __name__ == "__main__":
    sys.exit(main())
