# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs unusual inputs. From the folder `test`,

    python -m fuzzed_programs [--kind text programs faults] [--count 1000] [--seed 0] [--only NUMBERS] [--save FOLDER]

prints each finding immediately, and then the numbers of inputs and outcomes. Inputs of kind `text` are programs with
mistakes in their text, those of kind `programs` are valid programs with unusual parts. A finding is an internal error,
a failure without an error, an error without a place, a pass that makes a program invalid, printed text that is not
parsed to the same module, a signal in this project's code, or a hang. Exits with 1 if there is a finding. Signals in
upstream's code are counted.
Kind `faults` runs a program on ranks and kills processes at random times, closes streams, or denies space or permission
to write. A finding is then a traceback, a failure without an error, or a remaining process, file or shared memory.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fuzzed_programs import campaign
from fuzzed_programs.campaign import FAULTS, KINDS, PROGRAMS, TEXT, Finding

_SECONDS = 60.0


def main() -> int:
    """Runs a campaign."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzed_programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=(TEXT, PROGRAMS), help="of what inputs")
    parser.add_argument("--count", type=int, default=1000, help="how many of each kind")
    parser.add_argument("--seed", type=int, default=0, help="which inputs")
    parser.add_argument("--only", help="these inputs alone, by their numbers, separated by commas")
    parser.add_argument("--timeout", type=float, default=_SECONDS, help="seconds after which an input hangs")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the inputs of findings there")
    arguments = parser.parse_args()
    numbers = tuple(map(int, arguments.only.split(","))) if arguments.only else range(arguments.count)

    def observe(finding: Finding) -> None:
        print(finding.report(), flush=True)
        if arguments.save:
            arguments.save.mkdir(parents=True, exist_ok=True)
            name = finding.input.name.replace("/", "-")
            (arguments.save / f"{name}.mlir").write_bytes(finding.input.text)

    has_failed = False
    for kind in arguments.kind:
        if kind == FAULTS:
            report = campaign.run_faults(arguments.seed, numbers, arguments.timeout, observe)
        else:
            inputs = (campaign.make(kind, arguments.seed, number) for number in numbers)
            report = campaign.run(inputs, arguments.timeout, observe)
        print(f"{kind}: {report.summary()}", flush=True)
        has_failed |= bool(report.findings)
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
