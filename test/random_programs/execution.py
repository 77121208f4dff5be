# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partitions a program, runs it on devices, and compares it with the same program without sharding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlir_shard import ParseError, parse
from mlir_shard.dialects import sdy
from mlir_shard.ir.editing import ops_below
from mlir_shard.passes.registry import PassFailure
from mlir_shard.runtime import RunError, interface
from mlir_shard.runtime.arrays import Array, is_float
from mlir_shard.runtime.compile import PROPAGATED, Lower, Pipelines, compile_module
from mlir_shard.runtime.execution import random_inputs, run_program
from mlir_shard.runtime.program import Engine, Port, Program
from mlir_shard.runtime.reference.unsharded import drop_sharding
from mlir_shard.transforms.communication.shard_communication_report import communication_report
from random_programs.cases import op_at
from random_programs.contexts import context
from random_programs.ranks_engine import RanksEnded
from random_programs.region_ops import whole_text
from random_programs.simulated_mpi import RanksFailed
from random_programs.xla_engine import EngineError

# Far more than the effect of another order of additions, and far less than that of any wrong element.
TOLERANCES = {"f64": 1e-6, "f32": 2e-3, "f16": 5e-2, "bf16": 2e-1}
# The remainder when values of about 1 cancel: results that are zero in theory have no other scale.
CANCELLED = {"f64": 1e-12}

RIGHT, MISMATCH, REFUSAL, INVALID = "right", "mismatch", "refusal", "invalid"
# Failures in these stages do not depend on the sharding.
WITHOUT_SHARDING = ("compile without sharding", "run without sharding")
CRASH, HANG, ENGINE = "crash", "hang", "engine failure"
# The report of the pass runner for an exception other than PassFailure.
_RAISED = re.compile(r"error: pass '[\w-]+' raised \w")


Received = tuple[tuple[str, int], ...]
"""The bytes that a device receives for each op, by the op's name."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a program with details; `stage` is the last one that began.

    A refusal is a reported error, except an exception in a pass. An invalid program cannot be run without sharding
    either, and is not a failure of this project. An engine failure is an internal error of XLA. `is_uneven` is True if
    a tensor has shards of different sizes. `received` lists the received bytes by target, with each collective counted
    once, if the program is right.
    """

    kind: str
    stage: str = ""
    detail: str = ""
    is_uneven: bool = False
    received: tuple[tuple[str, Received], ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """A way to run programs: the passes, the lowering, and the engines for the local program and for the unsharded one.

    target: the target whose collectives local programs have.
    """

    target: str
    pipelines: Pipelines
    lower: Lower
    engine: Engine
    alone: Engine


@dataclass(slots=True)
class _Progress:
    """The progress of a program."""

    begin: Callable[[str], None]
    stage: str = ""
    is_uneven: bool = False

    def enter(self, stage: str, of_several: Route | None = None) -> None:
        """Begins the next stage, which is that of one route if there are several."""
        self.stage = stage if of_several is None else f"{stage} ({of_several.target})"
        self.begin(self.stage)


def outcome(text: str, routes: Sequence[Route], seed: int, begin: Callable[[str], None]) -> Outcome:
    """Runs a program on random inputs, by each route and unsharded. Calls `begin` with the name of each stage."""
    progress = _Progress(begin)
    # Engines round differently: each has its own expected results, which several routes may share.
    alone = {id(route.alone): route for route in routes}
    try:
        progress.enter(WITHOUT_SHARDING[0])
        whole = {key: _unsharded(text, route) for key, route in alone.items()}
        compiled = [_compiled(text, route, routes, progress) for route in routes]
    except ParseError as error:
        return Outcome(INVALID, progress.stage, str(error))
    except RunError as error:
        kind = INVALID if progress.stage in WITHOUT_SHARDING else REFUSAL
        return refusal(kind, progress.stage, refusal_report(error), progress.is_uneven)
    except PassFailure as failure:
        return refusal(REFUSAL, progress.stage, str(failure), progress.is_uneven)
    try:
        progress.enter(WITHOUT_SHARDING[1])
        inputs = random_inputs(next(iter(whole.values())), seed)
        expected = {
            key: [result.array for result in run_program(program, inputs, alone[key].alone)]
            for key, program in whole.items()
        }
    except RunError as error:
        return Outcome(INVALID, progress.stage, refusal_report(error))
    for route, (program, _) in zip(routes, compiled, strict=True):
        progress.enter("run", route if len(routes) > 1 else None)
        wrong = _run(program, inputs, route, expected[id(route.alone)])
        if wrong is not None:
            return Outcome(wrong[0], progress.stage, wrong[1], progress.is_uneven)
    received = tuple((route.target, of_op) for route, (_, of_op) in zip(routes, compiled, strict=True))
    return Outcome(RIGHT, progress.stage, "", progress.is_uneven, received)


def _compiled(text: str, route: Route, routes: Sequence[Route], progress: _Progress) -> tuple[Program, Received]:
    """Returns the program of a route, and the bytes that a device receives in its collectives."""
    of_several = route if len(routes) > 1 else None
    received: Counter[str] = Counter()

    def watch(name: str, module: Any) -> None:
        if name == PROPAGATED:
            progress.is_uneven = progress.is_uneven or _has_uneven_blocks(module)
            progress.enter("partition", of_several)
            return
        progress.enter("report", of_several)
        for one in communication_report(module).collectives:
            received[op_at(text, one.place) or one.op] += one.communication.bytes_received
        progress.enter("lower", of_several)

    progress.enter("propagate", of_several)
    module = parse(text, context())
    compiled = compile_module(module, pipelines=route.pipelines, with_unsharded=False, lower=route.lower, watch=watch)
    return compiled.sharded, tuple(sorted(received.items()))


def _run(program: Program, inputs: Sequence[Array], route: Route, expected: Sequence[Array]) -> tuple[str, str] | None:
    """Returns the kind and the details of a failure, or None if results are as expected."""
    try:
        results = run_program(program, inputs, route.engine)
    except RunError as error:
        return ENGINE if isinstance(error, EngineError) else REFUSAL, refusal_report(error)
    except RanksEnded as error:
        return CRASH, str(error)
    except RanksFailed as error:
        return HANG, str(error)
    for result, wanted in zip(results, expected, strict=True):
        found = result.disagreement or difference(result.array, wanted, result.port)
        if found:
            return MISMATCH, found
    return None


def _has_uneven_blocks(module: Any) -> bool:
    for op in ops_below(module.operation):
        for result in op.results:
            sharding = sdy.get_sharding(result)
            mesh = None if sharding is None else sdy.mesh_of(sharding, op)
            if sharding is None or mesh is None:
                continue
            dims = zip(result.type.shape, sharding.dim_shardings, strict=True)
            if any(size % dim.sharded_size(mesh) for size, dim in dims):
                return True
    return False


def _unsharded(text: str, route: Route) -> Program:
    module = parse(whole_text(text), context())
    drop_sharding(module)
    function = interface.entry_function(module, "main")
    arguments, results = interface.ports(function, 1)
    (lowered,) = route.lower([str(module)], "main")
    return Program(lowered, "main", arguments, results, 1)


def refusal(kind: str, stage: str, report: str, is_uneven: bool) -> Outcome:
    """Returns the outcome of a refused program: a crash if the report is of an exception in a pass."""
    return Outcome(CRASH if _RAISED.search(report) else kind, stage, report, is_uneven)


def refusal_report(error: RunError) -> str:
    """Returns the message of an error with its diagnostics."""
    return "\n".join([error.message, *(str(one) for one in error.diagnostics)])


def difference(got: Array, wanted: Array, port: Port) -> str:
    """Describes the wrong elements of a result; empty if it is right. NaN equals NaN, and an infinity equals itself."""
    element_type = port.spec.element_type
    if not is_float(element_type):
        wrong = got != wanted
    else:
        one, other = got.astype(np.float64), wanted.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            finite = np.abs(other[np.isfinite(other)])
            scale = np.maximum(np.abs(other), float(finite.max()) if finite.size else 0.0)
            near = np.abs(one - other) <= TOLERANCES[element_type] * scale + CANCELLED.get(element_type, 0.0)
        wrong = ~(near & np.isfinite(one) & np.isfinite(other) | (one == other) | (np.isnan(one) & np.isnan(other)))
    if not wrong.any():
        return ""
    places = np.argwhere(wrong)
    first = tuple(map(int, places[0]))
    return (
        f"{port.name}, {port.spec} as {port.sharding or 'replicated'}: {len(places)} of {got.size} elements differ, "
        f"first at {first}: {got[first]} where it is {wanted[first]}"
    )
