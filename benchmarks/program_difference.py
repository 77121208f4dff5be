# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time to compare two programs, beside that of the pipelines that run on both.

    python benchmarks/program_difference.py [--layers 48] [--repeat 5]

Compares the gradient of a transformer with itself, with one other annotation, and with one other operation in the
middle of its text. Prints medians in seconds of processor time: of the pipelines on both, and of the rest.
"""

from __future__ import annotations

import argparse
import gc
import time
from statistics import median
from typing import Any

from propagation import operations_in
from transformer import lowered_gradient

from mlir_shard.garbage import ALLOCATIONS_BETWEEN_COLLECTIONS


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    text = lowered_gradient(arguments.layers)
    middle = text.index("stablehlo.rsqrt", len(text) // 8)
    others = {
        "itself": text,
        "one other annotation": text.replace('[{}, {"model"}]', '[{"model"}, {}]', 1),
        "one other operation": f"{text[:middle]}{text[middle:].replace('stablehlo.rsqrt', 'stablehlo.sqrt', 1)}",
    }
    print(f"gradient of {arguments.layers} layers, {operations_in(text)} operations, compared with")
    for name, other in others.items():
        taken = [_measured(text, other) for _ in range(arguments.repeat)]
        pipelines, rest = (median(column) for column in zip(*taken, strict=True))
        print(f"  {name}: {rest:.2f} s beside {pipelines:.2f} s of pipelines", flush=True)


def _measured(before: str, after: str) -> tuple[float, float]:
    """Returns the seconds of the pipelines, and those of the rest."""
    import mlir_shard
    from mlir_shard.passes import runner

    context = mlir_shard.create_context()
    modules = mlir_shard.parse(before, context), mlir_shard.parse(after, context)
    run, seconds = runner.run, []

    def timed(*args: Any, **kwargs: Any) -> None:
        start = time.process_time()
        run(*args, **kwargs)
        seconds.append(time.process_time() - start)

    runner.run = timed
    start = time.process_time()
    try:
        mlir_shard.diff(*modules)
    finally:
        runner.run = run
    return sum(seconds), time.process_time() - start - sum(seconds)


if __name__ == "__main__":
    main()
