# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs random programs on devices and compares them with themselves without sharding: from the folder `test`,

    python -m random_programs [--programs 1000] [--seed 0] [--target stablehlo] [--dialects stablehlo]

prints how many programs there were, of what operations on what meshes, what went wrong, and the first of that made
small. Exits with 1 where a result is wrong, or a program crashes or does not end.
"""

from __future__ import annotations

import argparse
import sys

from hang_guard import SECONDS

from random_programs import campaign, routes
from random_programs.campaign import FAILURES, Finding
from random_programs.cases import case
from random_programs.generate import DIALECTS
from random_programs.worker import Worker


def main() -> int:
    """Runs a campaign."""
    parser = argparse.ArgumentParser(
        prog="python -m random_programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="which programs")
    parser.add_argument("--target", choices=routes.TARGETS, default=routes.STABLEHLO, help="whose collectives")
    parser.add_argument("--dialects", help=f"in which programs are, of {', '.join(DIALECTS)}; separated by commas")
    parser.add_argument("--only", help="these programs alone, by their numbers, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="how many programs at once")
    parser.add_argument("--timeout", type=float, default=SECONDS, help="seconds after which a program hangs")
    parser.add_argument("--smallest", type=int, default=3, help="how many findings to make small")
    parser.add_argument("--minutes", type=float, default=3.0, help="how long to make one small")
    arguments = parser.parse_args()
    known = routes.DIALECTS[arguments.target]
    dialects = tuple(arguments.dialects.split(",")) if arguments.dialects else known
    if unknown := [name for name in dialects if name not in known]:
        parser.error(f"programs for {arguments.target} are in {', '.join(known)}, not {', '.join(unknown)}")
    numbers = map(int, arguments.only.split(",")) if arguments.only else range(arguments.programs)
    is_compiled = arguments.target in routes.COMPILED
    cases = [case(arguments.seed, number, dialects, is_compiled=is_compiled) for number in numbers]

    def observe(finding: Finding) -> None:
        print(finding.report(), flush=True)

    report = campaign.run(arguments.target, cases, arguments.jobs, arguments.timeout, observe)
    print(report.summary(), flush=True)
    ordered = sorted(report.findings, key=lambda finding: finding.outcome.kind not in FAILURES)
    with Worker(arguments.target, arguments.timeout) as worker:
        for finding in ordered[: arguments.smallest]:
            print(f"\nprogram {finding.case.name} made small:", flush=True)
            print(campaign.smallest(finding, worker, 60 * arguments.minutes), flush=True)
    return 1 if report.has_failures else 0


if __name__ == "__main__":
    sys.exit(main())
