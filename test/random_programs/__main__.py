# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs random programs on devices and compares them with the same programs without sharding. From the folder `test`,

    python -m random_programs [--programs 1000] [--seed 0] [--target stablehlo] [--engine pjrt] [--mesh-axes 4..6]

prints the numbers of programs, operations and meshes, all findings, and minimised programs of the first findings. Exits
with 1 if a result is wrong, or a program crashes or hangs. `--target both` runs each program with both targets'
collectives, and prints the bytes that a device receives side by side, separately for programs with even and with uneven
shards: in total, for each program in which the targets differ, and for each operation for which they differ. With the
engine `simulated` ranks are threads, at most 64.
"""

from __future__ import annotations

import argparse
import sys

from hang_guard import SECONDS

from random_programs import campaign, routes
from random_programs.campaign import FAILURES, Finding
from random_programs.cases import case
from random_programs.generate import DIALECTS, MOST_AXES, Scale
from random_programs.worker import Worker


def main() -> int:
    """Runs a campaign."""
    parser = argparse.ArgumentParser(
        prog="python -m random_programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="which programs")
    routes.add_options(parser)
    parser.add_argument("--mesh-axes", type=_range, default=(1, 3), metavar="N..M", help="how many axes meshes have")
    parser.add_argument("--even", action="store_true", help="sizes, of axes too, that are powers of two")
    parser.add_argument("--large", action="store_true", help="sizes of tens, at which loops are tiled")
    parser.add_argument("--dialects", help=f"in which programs are, of {', '.join(DIALECTS)}; separated by commas")
    parser.add_argument("--only", help="these programs alone, by their numbers, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="how many programs at once")
    parser.add_argument("--timeout", type=float, default=SECONDS, help="seconds after which a program hangs")
    parser.add_argument("--smallest", type=int, default=3, help="how many findings to make small")
    parser.add_argument("--minutes", type=float, default=3.0, help="how long to make one small")
    arguments = parser.parse_args()
    scale = Scale.of(*arguments.mesh_axes, is_even=arguments.even, is_large=arguments.large)
    setting = routes.setting_of(arguments, parser, scale.most_devices)
    known = setting.dialects
    dialects = tuple(arguments.dialects.split(",")) if arguments.dialects else known
    if unknown := [name for name in dialects if name not in known]:
        parser.error(f"programs for {arguments.target} are in {', '.join(known)}, not {', '.join(unknown)}")
    numbers = map(int, arguments.only.split(",")) if arguments.only else range(arguments.programs)
    cases = [case(arguments.seed, number, dialects, is_compiled=setting.is_compiled, scale=scale) for number in numbers]

    def observe(finding: Finding) -> None:
        print(finding.report(), flush=True)

    report = campaign.run(setting, cases, arguments.jobs, arguments.timeout, observe)
    print(report.summary(), flush=True)
    ordered = sorted(report.findings, key=lambda finding: finding.outcome.kind not in FAILURES)
    with Worker(setting, arguments.timeout) as worker:
        for finding in ordered[: arguments.smallest]:
            print(f"\nprogram {finding.case.name} made small:", flush=True)
            print(campaign.smallest(finding, worker, 60 * arguments.minutes), flush=True)
    return 1 if report.has_failures else 0


def _range(text: str) -> tuple[int, int]:
    """Parses a range such as 4..6, or a number such as 4."""
    first, _, last = text.partition("..")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise argparse.ArgumentTypeError(f"a number, or two as in 4..6, not {text}")
    ends = int(first), int(last or first)
    if not 1 <= ends[0] <= ends[1] <= MOST_AXES:
        raise argparse.ArgumentTypeError(f"meshes have 1 to {MOST_AXES} axes, not {text}")
    return ends


if __name__ == "__main__":
    sys.exit(main())
