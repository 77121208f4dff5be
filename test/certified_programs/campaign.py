# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes mistakes in proved local programs, and runs the mutants that are also proved."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import numpy as np
from random_programs import ranks_engine
from random_programs.simulated_engine import SimulatedEngine
from random_programs.simulated_mpi import RanksFailed

import mlir_shard
from certified_programs.mutants import mutations
from certified_programs.partitioned import Source, checked, partitioned
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse
from mlir_shard.host import ir
from mlir_shard.runtime import RunError
from mlir_shard.runtime.compile import LOCAL, Pipelines, compile_module
from mlir_shard.runtime.execution import random_inputs

_PROPAGATE = {
    "shard": "shard-propagate",
    "stablehlo": "shard-propagate,sdy-update-non-divisible-input-output-shardings",
}


def mutate(name: str, sources: Iterable[Source], targets: Iterable[str], most: int, seed: int) -> int:
    """Prints the number of refused mutants, and returns the number of proved mutants whose results differ."""
    wrong = 0
    for target in targets:
        made: Counter[str] = Counter()
        proved: Counter[str] = Counter()
        verdicts: Counter[str] = Counter()
        for source in sources:
            one = partitioned(source, target) if target in source.targets else None
            if one is None or not one.verdict.is_proved:
                continue
            text, grid = str(one.module), tuple(one.certificate.mesh.values())
            count = len(_mutations(parse(text, one.module.context, "local.mlir"), grid, seed))
            for number in sorted(Random(f"{source.name} {seed}").sample(range(count), min(count, most))):
                module = parse(text, one.module.context, "local.mlir")
                kind = _apply(module, grid, seed, number)
                if kind is None:
                    continue
                made[kind] += 1
                if not checked(one, module).is_proved:
                    continue
                proved[kind] += 1
                verdict = _compared(source, target, grid, seed, number)
                verdicts[verdict] += 1
                if verdict == "differs":
                    wrong += 1
                    print(f"{source.name}, {target}: mutant {number}, {kind}, is proved and differs", flush=True)
        total, accepted = sum(made.values()), sum(proved.values())
        print(f"{name}, {target}: {total} mutants, {total - accepted} refused; {accepted} proved: {dict(verdicts)}")
        for kind, count in made.most_common():
            print(f"  {count:4} {kind}, {proved[kind]} proved")
        sys.stdout.flush()
    return wrong


def _mutations(module: Any, grid: tuple[int, ...], seed: int) -> list[tuple[str, Callable[[], None]]]:
    with module.context:
        return list(mutations(module, grid, Random(seed)))


def _apply(module: Any, grid: tuple[int, ...], seed: int, number: int) -> str | None:
    """Makes a mistake in a module and returns its kind, or None if the module is then invalid."""
    kind, change = _mutations(module, grid, seed)[number]
    with module.context:
        change()
    try:
        return kind if module.operation.verify() else None
    except ir.MLIRError:
        return None


def _compared(source: Source, target: str, grid: tuple[int, ...], seed: int, number: int) -> str:
    """Runs the local program and the mutant on the same inputs, and compares the results."""
    try:
        wanted = _results(source, target, lambda _: None)
        got = _results(source, target, lambda module: _apply(module, grid, seed, number))
    except RanksFailed:
        return "differs"
    except (RunError, mlir_shard.PassFailure) as error:
        return f"not run: {str(error).splitlines()[0][:60]}"
    same = all(
        np.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True)
        for device, others in zip(got, wanted, strict=True)
        for one, other in zip(device, others, strict=True)
    )
    return "equal results" if same else "differs"


def _results(source: Source, target: str, change: Callable[[Any], Any]) -> list[list[Any]]:
    """Returns the results of each device, without the padding."""

    def watch(stage: str, module: Any) -> None:
        if stage == LOCAL:
            change(module)

    spmdize = f"shard-spmdize{{collectives={target} remarks-above=none}}"
    compiled = compile_module(
        parse(source.text, create_context(), "global.mlir"),
        pipelines=Pipelines(_PROPAGATE[target], spmdize),
        with_unsharded=False,
        watch=watch,
        lower=ranks_engine.lower,
    ).sharded
    found = SimulatedEngine().run(compiled, random_inputs(compiled, 1))
    return [
        [np.asarray(array)[_inside(port.boxes[rank])] for array, port in zip(arrays, compiled.results, strict=True)]
        for rank, arrays in enumerate(found)
    ]


def _inside(box: Any) -> tuple[slice, ...]:
    """Returns the elements of a shard that are in bounds of the tensor."""
    return tuple(slice(0, size) for size in box.size) if box is not None else (slice(0, 0),)
