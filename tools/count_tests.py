# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums JUnit result files in the line `N passed, N failed`; fails where a test did, or where a file holds none."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def count(path: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of one result file; a test that broke counts as failed."""
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    return len(cases) - failed - skipped, failed, skipped


def main(paths: list[str]) -> int:
    passed = failed = skipped = 0
    for path in map(Path, paths):
        if not path.is_file():
            print(f"error: {path}: no test results were written", file=sys.stderr)
            return 1
        counts = count(path)
        if sum(counts) == 0:
            print(f"error: {path}: no test ran", file=sys.stderr)
            return 1
        passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
