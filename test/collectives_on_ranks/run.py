# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs many cases in one program, on ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from hang_guard import SECONDS

from collectives_on_ranks.case import Case
from mlir_shard.resharding.simulation import Blocks
from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.runtime.launch.mpi import WHEEL, MpiEngine, MpiInstallation
from mlir_shard.runtime.lowering.lowering_process import LoweringProcess
from mlir_shard.runtime.program import Port, Program
from mlir_shard.sharding.layout import Box


@dataclass(frozen=True)
class Failure:
    """A case whose result differs from its definition on one device."""

    case: Case
    device: int
    found: Array
    expected: Array

    def __str__(self) -> str:
        return (
            f"{self.case}, device {self.device}: {self.found.tolist()} for {self.expected.tolist()}\n{self.case.text}"
        )


def failures(cases: Sequence[Case], ranks: int, seed: int = 0, mpi: str = WHEEL) -> list[Failure]:
    """Runs all cases by one mpiexec. The first device with a wrong result in each case is a failure.

    mpi: the installation of MPI, see `MpiInstallation.find`.
    """
    engine, implementation = MpiEngine(SECONDS, mpi), MpiInstallation.find(mpi).implementation
    program = _program(cases, ranks, implementation)
    blocks = [_inputs(case, ranks, seed + place) for place, case in enumerate(cases)]
    returned = engine.run(program, [_stored(of_case, ranks) for of_case in blocks])
    found: list[Failure] = []
    for place, (case, inputs) in enumerate(zip(cases, blocks, strict=True)):
        for device, expected in sorted(case.expected(inputs).items()):
            result = arrays.presented(returned[device][place][0], case.result.element_type)
            if result.dtype != expected.dtype or not np.array_equal(result, expected):
                found.append(Failure(case, device, result, expected))
                break
    return found


def module(cases: Sequence[Case]) -> str:
    """Returns the local module of the cases, whose tensors have a first dimension of size 1, sharded on the ranks."""
    grids = list(dict.fromkeys(case.grid.shape for case in cases))
    lines = [f"shard.grid @g{place}(shape = {'x'.join(map(str, grid))})" for place, grid in enumerate(grids)]
    arguments = ", ".join(f"%in{place}: {_outer(case.argument)}" for place, case in enumerate(cases))
    types = ", ".join(str(_outer(case.result)) for case in cases)
    lines.append(f"func.func @main({arguments}) -> ({types}) {{")
    for place, case in enumerate(cases):
        outer = _outer(case.argument)
        lines.append(f"  %a{place} = tensor.collapse_shape %in{place} {_dims(outer)} : {outer} into {case.argument}")
        lines.append("  " + case.text.format(a=f"%a{place}", g=f"g{grids.index(case.grid.shape)}", r=f"r{place}"))
        outer = _outer(case.result)
        how = f"{_dims(outer)} output_shape {list(outer.shape)} : {case.result} into {outer}"
        lines.append(f"  %out{place} = tensor.expand_shape %r{place} {how}")
    lines += [f"  return {', '.join(f'%out{place}' for place in range(len(cases)))} : {types}", "}"]
    return "\n".join(lines)


def _program(cases: Sequence[Case], ranks: int, implementation: str) -> Program:
    (lowered,) = LoweringProcess(implementation)([module(cases)], "main")
    arguments = tuple(_port(f"argument {place}", case.argument, ranks) for place, case in enumerate(cases))
    results = tuple(_port(f"result {place}", case.result, ranks) for place, case in enumerate(cases))
    return Program(lowered, "main", arguments, results, ranks)


def _port(name: str, local: TensorSpec, ranks: int) -> Port:
    whole, outer = TensorSpec((ranks, *local.shape), local.element_type), _outer(local)
    boxes = tuple(Box((rank, *(0,) * len(local.shape)), outer.shape) for rank in range(ranks))
    return Port(name, whole, outer, boxes)


def _inputs(case: Case, ranks: int, seed: int) -> Blocks:
    """Returns small numbers, which differ between devices and with which every reduction is exact in every type."""
    generator, spec = np.random.default_rng(seed), case.argument
    dtype = arrays.numpy_dtype(spec.element_type)
    most = 1 if spec.element_type == "i1" else case.most
    count = prod(spec.shape)
    numbers = [
        (generator.permutation(count + ranks)[:count] % (most + 1 - case.least) + case.least) for _ in range(ranks)
    ]
    return {rank: numbers[rank].reshape(spec.shape).astype(dtype) for rank in range(ranks)}


def _stored(blocks: Blocks, ranks: int) -> Array:
    stacked = np.stack([blocks[rank] for rank in range(ranks)])
    return stacked.view(np.uint16) if stacked.dtype.name == "bfloat16" else stacked


def _outer(spec: TensorSpec) -> TensorSpec:
    return TensorSpec((1, *spec.shape), spec.element_type)


def _dims(outer: TensorSpec) -> list[list[int]]:
    rest = [[dim] for dim in range(2, len(outer.shape))]
    return [[0, 1], *rest] if len(outer.shape) > 1 else []
