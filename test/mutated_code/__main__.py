# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts mistakes into the project's code and runs its tests on them. From the folder `test` of a project built in place,

    python -m mutated_code --record FOLDER
    python -m mutated_code [--count 200] [--seed 0] [--recording FOLDER] [--results FILE] [--list]
                           [--areas rules planner] [--only NUMBERS] [--groups 2]

The first command records the tests that execute each line. The second prints for each mistake the test that caught it,
and then the number of caught mistakes in each area, the mistakes that are known to have no effect, and those that no
test caught. It runs the tests that execute the line of a mistake, and then, on mistakes that none of these caught, the
tests of the area, the most related ones first, up to the first failure; tests that hang also catch a mistake. Mistakes
in the file of results are not run again. Needs cosmic-ray, which makes the mistakes, and coverage:
`pip install -e '.[mutation]'`. Exits with 1 if fewer than 95 % of the mistakes with an effect are caught.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mutated_code import campaign
from mutated_code.areas import AREAS, RECORDED
from mutated_code.campaign import Numbered, Verdicts
from mutated_code.checkout import Checkout, Verdict
from mutated_code.mistakes import mistakes
from mutated_code.recorded import Recording, record

_SECONDS = 900.0
_LEAST_SHARE = 0.95


def main() -> int:
    """Runs a campaign."""
    parser = argparse.ArgumentParser(
        prog="python -m mutated_code", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="how many mistakes")
    parser.add_argument("--seed", type=int, default=0, help="which mistakes")
    names = [area.name for area in AREAS]
    parser.add_argument("--areas", nargs="+", choices=names, default=names, help="in what code")
    parser.add_argument("--only", help="these mistakes alone, by their numbers, separated by commas")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="record what tests execute, and run no mistakes")
    parser.add_argument("--recording", type=Path, metavar="FOLDER", help="what has been recorded of this code")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep verdicts there, and go on from those")
    parser.add_argument("--groups", type=int, help="how many groups of tests of an area to run at most")
    parser.add_argument("--list", action="store_true", help="print the mistakes, and run nothing")
    parser.add_argument("--check", action="store_true", help="first run all the tests on the code as it is")
    parser.add_argument("--timeout", type=float, default=_SECONDS, help="seconds after which tests do not end")
    arguments = parser.parse_args()
    if arguments.record:
        return max(record(arguments.record, [test]) for test in RECORDED)
    areas = [area for area in AREAS if area.name in arguments.areas]
    numbered = list(enumerate(mistakes(areas, arguments.count, arguments.seed)))
    if arguments.only:
        chosen = set(map(int, arguments.only.split(",")))
        numbered = [(number, one) for number, one in numbered if number in chosen]
    if arguments.list:
        for number, one in numbered:
            print(f"{number} {one.report()}")
        return 0

    def observe(numbered: Numbered, verdict: Verdict, seconds: float) -> None:
        number, one = numbered
        said = f"caught by {verdict.detail}" if verdict.is_caught else "survives"
        print(f"{number} {one.report()}: {said} ({seconds:.0f} s)", flush=True)

    with Checkout(arguments.timeout) as checkout:
        if arguments.check and (failure := campaign.check(checkout, areas)):
            print(f"tests fail on the code as it is: {failure}", file=sys.stderr)
            return 1
        report = campaign.run(
            checkout,
            numbered,
            areas,
            observe,
            most_groups=arguments.groups,
            recording=Recording(arguments.recording) if arguments.recording else None,
            verdicts=Verdicts(arguments.results),
        )
    print(report.summary())
    return 0 if report.caught.total() >= _LEAST_SHARE * (len(numbered) - len(report.equivalent)) else 1


if __name__ == "__main__":
    sys.exit(main())
