# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums JUnit result files in the line `N passed, N failed`; fails if a test failed or a file contains no tests.

If tests were skipped, a second line lists the reasons, each once: `not run: Open MPI (install openmpi-bin)`.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def count(path: Path) -> tuple[int, int, list[str]]:
    """Returns the numbers of passed and failed tests, errors included, and the reasons of skipped ones, in a file."""
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    reasons = [skipped.get("message", "") for case in cases if (skipped := case.find("skipped")) is not None]
    return len(cases) - failed - len(reasons), failed, reasons


def main(paths: list[str]) -> int:
    passed, failed = 0, 0
    skipped: list[str] = []
    for path in map(Path, paths):
        if not path.is_file():
            print(f"error: {path}: no test results were written", file=sys.stderr)
            return 1
        here = count(path)
        if here == (0, 0, []):
            print(f"error: {path}: no test ran", file=sys.stderr)
            return 1
        passed, failed, skipped = passed + here[0], failed + here[1], skipped + here[2]
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    if skipped:
        print(f"not run: {', '.join(dict.fromkeys(skipped))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
