# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the output of this project's passes for the first programs: `python -m differential.print_results COUNT`."""

from __future__ import annotations

import sys

from differential.generate import program
from differential.sides import Here
from differential.stages import PROPAGATION, pipeline


def main() -> None:
    """Prints each program after the import pipeline and each propagation pass, and after the whole pipeline."""
    here = Here()
    for index in range(int(sys.argv[1])):
        text = program(f"0/{index}").write()
        whole = here.run(text, pipeline("sdy-propagation-pipeline"))
        imported = here.run(text, pipeline("sdy-import-pipeline"))
        outcomes = [whole, imported]
        if imported.text is not None:
            outcomes += (here.run(imported.text, pipeline(name)) for name in PROPAGATION)
        for outcome in outcomes:
            print(outcome.text or outcome.error)


if __name__ == "__main__":
    main()
