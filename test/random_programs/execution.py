# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program made local, run on devices, and compared with the same program without sharding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlir_shard import ParseError, create_context, parse
from mlir_shard.dialects import sdy
from mlir_shard.runtime import RunError, interface
from mlir_shard.runtime.arrays import Array, is_float
from mlir_shard.runtime.compile import PROPAGATED, Lower, Pipelines, compile_module
from mlir_shard.runtime.execution import random_inputs, run_program
from mlir_shard.runtime.program import Engine, Port, Program
from mlir_shard.runtime.unsharded import drop_sharding
from mlir_shard.transforms.walk import ops_below
from random_programs.ranks_engine import RanksEnded
from random_programs.region_ops import whole_text
from random_programs.xla_engine import EngineError

# Far more than what a different order of additions changes, and far less than any wrong element.
TOLERANCES = {"f64": 1e-6, "f32": 2e-3, "f16": 5e-2, "bf16": 2e-1}

RIGHT, MISMATCH, REFUSAL, INVALID = "right", "mismatch", "refusal", "invalid"
# Stages in which a failure is none of sharding's.
WITHOUT_SHARDING = ("compile without sharding", "run without sharding")
CRASH, HANG, ENGINE = "crash", "hang", "engine failure"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a program, `detail` says more; `stage` is the last one begun.

    A refusal is an error that is reported. An invalid program is none of this project's matter: it cannot be run
    without sharding either. An engine failure is an internal error of XLA. `is_uneven` says that a tensor has blocks of
    different sizes.
    """

    kind: str
    stage: str = ""
    detail: str = ""
    is_uneven: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """A way to run programs: what passes make them local, what lowers them, and what runs them on devices or alone."""

    pipelines: Pipelines
    lower: Lower
    engine: Engine
    alone: Engine


def outcome(text: str, route: Route, seed: int, begin: Callable[[str], None]) -> Outcome:
    """Runs a program on random inputs. `begin` is told the name of each stage."""
    stage, is_uneven = "", False

    def watch(name: str, module: Any) -> None:
        nonlocal is_uneven
        enter("partition" if name == PROPAGATED else "lower")
        is_uneven = is_uneven or (name == PROPAGATED and _has_uneven_blocks(module))

    def enter(name: str) -> None:
        nonlocal stage
        stage = name
        begin(name)

    try:
        enter(WITHOUT_SHARDING[0])
        whole = _unsharded(text, route)
        enter("propagate")
        compiled = compile_module(
            parse(text, create_context()),
            pipelines=route.pipelines,
            with_unsharded=False,
            lower=route.lower,
            watch=watch,
        ).sharded
    except ParseError as error:
        return Outcome(INVALID, stage, str(error))
    except RunError as error:
        return Outcome(INVALID if stage in WITHOUT_SHARDING else REFUSAL, stage, refusal_report(error), is_uneven)
    try:
        enter(WITHOUT_SHARDING[1])
        inputs = random_inputs(whole, seed)
        expected = [result.array for result in run_program(whole, inputs, route.alone)]
    except RunError as error:
        return Outcome(INVALID, stage, refusal_report(error))
    try:
        enter("run")
        results = run_program(compiled, inputs, route.engine)
    except RunError as error:
        return Outcome(ENGINE if isinstance(error, EngineError) else REFUSAL, stage, refusal_report(error), is_uneven)
    except RanksEnded as error:
        return Outcome(CRASH, stage, str(error), is_uneven)
    for result, wanted in zip(results, expected, strict=True):
        found = result.disagreement or difference(result.array, wanted, result.port)
        if found:
            return Outcome(MISMATCH, stage, found, is_uneven)
    return Outcome(RIGHT, stage, "", is_uneven)


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
    module = parse(whole_text(text), create_context())
    drop_sharding(module)
    function = interface.entry_function(module, "main")
    arguments, results = interface.ports(function, 1)
    (lowered,) = route.lower([str(module)], "main")
    return Program(lowered, "main", arguments, results, 1)


def refusal_report(error: RunError) -> str:
    """What an error says, with its diagnostics."""
    return "\n".join([error.message, *(str(one) for one in error.diagnostics)])


def difference(got: Array, wanted: Array, port: Port) -> str:
    """Where a result is wrong, empty if it is right. NaN equals NaN, and an infinity itself."""
    element_type = port.spec.element_type
    if not is_float(element_type):
        wrong = got != wanted
    else:
        one, other = got.astype(np.float64), wanted.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            finite = np.abs(other[np.isfinite(other)])
            scale = np.maximum(np.abs(other), float(finite.max()) if finite.size else 0.0)
            near = np.abs(one - other) <= TOLERANCES[element_type] * scale
        wrong = ~(near & np.isfinite(one) & np.isfinite(other) | (one == other) | (np.isnan(one) & np.isnan(other)))
    if not wrong.any():
        return ""
    places = np.argwhere(wrong)
    first = tuple(map(int, places[0]))
    return (
        f"{port.name}, {port.spec} as {port.sharding or 'replicated'}: {len(places)} of {got.size} elements differ, "
        f"first at {first}: {got[first]} where it is {wanted[first]}"
    )
