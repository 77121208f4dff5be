# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Execution of programs on global arrays: checks and partitions inputs, and assembles results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.backends import MPI, Backend, backend
from mlir_shard.runtime.compile import Pipelines, compile_module
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.program import Engine, Port, Program
from mlir_shard.runtime.reference.verify import compare
from mlir_shard.sharding.layout import Box


@dataclass(frozen=True, slots=True)
class Result:
    """A global result of a program; `disagreement` describes copies on ranks that differ, and is empty if none do."""

    port: Port
    array: Array
    disagreement: str


def execute(
    module: Any,
    inputs: Sequence[Array],
    ranks: int | None = None,
    *,
    function: str = "main",
    pipelines: Pipelines | None = None,
    engine: str | Backend = MPI,
    trust_native: bool = False,
) -> list[Array]:
    """Shards a global module with annotations, runs a function of it on devices and returns its global results.

    Args:
        module: the `ir.Module`, on tensors, with annotations of sdy or of upstream's `shard`; it is not modified.
        inputs: a global array of the shape and dtype of each argument, of rank 0 for scalars; none for tokens.
        ranks: the number of ranks; if the module has a mesh, the number of its devices, which is the default.
        function: the name of the function.
        pipelines: the passes that shard the module, by default those of the engine.
        engine: `mpi` for ranks on this machine, `pjrt` for virtual devices of its CPU, or a result of `backend`.
        trust_native: run a module that holds native code, see docs/trust.md.

    Raises:
        RunError: the module cannot be sharded, lowered or run, the inputs do not fit it, or ranks that hold the same
            part of a result computed different values.
    """
    chosen = backend(engine) if isinstance(engine, str) else engine
    compiled = compile_module(
        module,
        ranks,
        function=function,
        pipelines=pipelines or chosen.pipelines,
        with_unsharded=False,
        lower=chosen.lower,
        trust_native=trust_native,
    )
    results = run_program(compiled.sharded, inputs, chosen.engine)
    for result in results:
        if result.disagreement:
            raise RunError(result.disagreement)
    return [result.array for result in results]


def run_program(program: Program, inputs: Sequence[Array], engine: Engine) -> list[Result]:
    """Runs a program on global inputs and returns its results, with the user's dtypes; raises RunError as `execute`."""
    stored = check_inputs(program, inputs)
    by_rank = engine.run(program, stored)
    return [assemble(port, [of_rank[index] for of_rank in by_rank]) for index, port in enumerate(program.results)]


def check_inputs(program: Program, inputs: Sequence[Array]) -> list[Array]:
    """Returns the inputs in storage form; raises RunError for the first that does not match its argument."""
    check_count(program, inputs)
    return [check_input(port, given) for port, given in zip(program.arguments, inputs, strict=True)]


def check_count(program: Program, inputs: Sequence[Any]) -> None:
    """Raises RunError unless each argument has one input."""
    if len(inputs) != len(program.arguments):
        wanted = ", ".join(str(port.spec) for port in program.arguments)
        raise RunError(f"the program expects {len(program.arguments)} arrays, not {len(inputs)}: ({wanted})")


def check_input(port: Port, given: Any) -> Array:
    """Returns an input in storage form; raises RunError if it is not an array of the argument's shape and type."""
    try:
        array = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise RunError(
            f"{port.name} of the program is {port.spec}, but the given value is not an array: {error}"
        ) from None
    return arrays.checked(port.name, array, port.spec)


def random_inputs(program: Program, seed: int) -> list[Array]:
    """Returns random inputs for a program, equal for equal seeds."""
    generator = np.random.default_rng(seed)
    return [arrays.random(port.spec, generator, port.positive) for port in program.arguments]


def assemble(port: Port, blocks: Sequence[Array]) -> Result:
    """Assembles a result from the local tensors of all ranks."""
    element_type = port.spec.element_type
    whole = np.zeros(port.spec.shape, arrays.storage_dtype(element_type))
    presented = arrays.presented(whole, element_type)
    first_with: dict[Box, int] = {}
    disagreement = ""
    for rank, (box, block) in enumerate(zip(port.boxes, blocks, strict=True)):
        if box is None:
            continue
        part = block[box.local_slices]
        first = first_with.setdefault(box, rank)
        if first == rank:
            whole[box.slices] = part
        elif not disagreement:
            comparison = compare(arrays.presented(part, element_type), presented[box.slices], element_type)
            if not comparison.is_equal:
                place = ", ".join(f"{start}:{stop}" for start, stop in zip(box.start, box.stop, strict=True))
                difference = f"they differ by up to {comparison.absolute:.3g}"
                disagreement = f"ranks {first} and {rank} hold different copies of {port.name}[{place}]: {difference}"
    return Result(port, presented, disagreement)
