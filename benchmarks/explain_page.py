# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of `shard-explain -o report.html` for the gradient of a transformer: its time and its size.

    python benchmarks/explain_page.py [--layers 48] [--repeat 5] [-o page.html]

Prints the median processor time of partitioning alone, of explaining, which includes partitioning, and of making the
page of the explanation, each from a newly parsed module, and the size of the page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from transformer import lowered_gradient

import mlir_shard
from mlir_shard.explain.explanation import explain
from mlir_shard.explain.page.document import page_html


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write the page")
    arguments = parser.parse_args()
    text = lowered_gradient(arguments.layers)
    title = f"gradient of {arguments.layers} layers"
    partitioning, explaining, showing = [], [], []
    for _ in range(arguments.repeat):
        module = mlir_shard.parse(text, filename="gradient.mlir")
        partitioning.append(_seconds(mlir_shard.run, module, "builtin.module(spmd-pipeline)")[0])
        seconds, explanation = _seconds(explain, mlir_shard.parse(text, filename="gradient.mlir"))
        explaining.append(seconds)
        seconds, page = _seconds(page_html, explanation, title)
        showing.append(seconds)
    if arguments.output:
        arguments.output.write_text(page, encoding="utf-8")
    print(
        f"{title}, {len(explanation.tensors)} values, {len(explanation.collectives)} collectives: partitioned in "
        f"{median(partitioning):.2f} s, explained in {median(explaining):.2f} s, page in {median(showing):.2f} s, "
        f"{len(page.encode()) / 1e6:.2f} MB"
    )


def _seconds(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = call(*arguments)
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
