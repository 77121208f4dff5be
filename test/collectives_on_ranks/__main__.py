# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every collective along every selection of axes on every grid, and StableHLO's in random groups. From `test`,

    python -m collectives_on_ranks [--ranks 6] [--seed 3] [--mpi mpirun.openmpi]

prints for each number of ranks the number of collectives, and the number of those whose results differ from their
definitions on NumPy arrays. Exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter

from collectives_on_ranks import cases, run, stablehlo_cases
from mlir_shard.runtime.launch.mpi import WHEEL

_IN_ONE_PROGRAM = 60
_ROUNDS = 10


def main() -> int:
    """Runs all cases, or those of some numbers of ranks."""
    parser = argparse.ArgumentParser(
        prog="python -m collectives_on_ranks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, choices=cases.GRIDS, action="append", help="only this number of ranks")
    parser.add_argument("--seed", type=int, default=1, help="which element types, shapes and roots are drawn")
    parser.add_argument("--mpi", default=WHEEL, help="which MPI, as for shard-run")
    arguments = parser.parse_args()
    failed = 0
    print(f"{'ranks':>5} {'collectives':>11} {'failures':>8} {'seconds':>8}", flush=True)
    for ranks in arguments.ranks or cases.GRIDS:
        begin, every = perf_counter(), cases.every_case(ranks, arguments.seed)
        every += stablehlo_cases.some_cases(ranks, arguments.seed, _ROUNDS)
        found = []
        for start in range(0, len(every), _IN_ONE_PROGRAM):
            found += run.failures(every[start : start + _IN_ONE_PROGRAM], ranks, arguments.seed, arguments.mpi)
        print(f"{ranks:>5} {len(every):>11} {len(found):>8} {perf_counter() - begin:>8.1f}", flush=True)
        for failure in found:
            print(failure)
        failed += len(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
