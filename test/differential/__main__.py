# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares random programs with Shardy. From the folder `test`,

    python -m differential [--programs 2000] [--seed 0] [--only NUMBERS] [--quick] [--smallest 3]

prints the numbers of passes and programs, the differences, and minimised programs of the first differences. Exits with
1 if a difference is not a known mistake of Shardy. `--quick` compares the pipeline of all passes, and compares the
single passes only for the programs in which the pipeline differs.
"""

from __future__ import annotations

import argparse
import sys

from differential import campaign
from differential.compare import Comparison
from differential.sides import Here, Shardy


def main() -> int:
    """Runs a campaign."""
    parser = argparse.ArgumentParser(
        prog="python -m differential", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=2000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="which programs")
    parser.add_argument("--only", help="these programs alone, by their numbers, separated by commas")
    parser.add_argument("--quick", action="store_true", help="compare single passes where the whole pipeline differs")
    parser.add_argument("--smallest", type=int, default=3, help="how many unexplained differences to make small")
    arguments = parser.parse_args()
    numbers = tuple(map(int, arguments.only.split(","))) if arguments.only else range(arguments.programs)
    with Shardy() as shardy:
        comparison = Comparison(shardy, Here())
        report = campaign.run(comparison, arguments.seed, numbers, quick=arguments.quick)
        print(report.summary())
        for finding in report.findings:
            print(f"\n{finding.report()}")
        for finding in report.findings[: arguments.smallest]:
            print(f"\nprogram {finding.seed}, {finding.difference.name}, made small:")
            print(campaign.smallest(finding, comparison))
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
