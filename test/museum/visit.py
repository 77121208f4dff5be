# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an exhibit on each target and engine, and with jaxlib's partitioner, against the unsharded program."""

from __future__ import annotations

import functools
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from model_zoo.jax_models import expected, lowered, measured
from model_zoo.measurement import check_results
from model_zoo.program import Model
from random_programs import ranks_engine
from random_programs.ranks_engine import RanksEngine
from random_programs.xla_engine import XlaEngine

import mlir_shard
from mlir_shard.runtime.backends import MPI, PJRT, SHARD, STABLEHLO, backend
from mlir_shard.runtime.compile import Lower, Pipelines, compile_module
from mlir_shard.runtime.execution import run_program
from mlir_shard.runtime.pjrt import xla_module
from mlir_shard.runtime.program import Engine, Lowered, Program
from museum.exhibit import EXHIBITS, Exhibit

RIGHT = "right"
JAXLIB = "jaxlib"


@dataclass(frozen=True)
class Route:
    """A target, and an engine that runs its programs."""

    target: str
    engine_name: str
    pipelines: Pipelines
    lower: Lower
    engine: Engine

    @property
    def name(self) -> str:
        """The name in the table."""
        return f"{self.target} on {self.engine_name}"


def routes() -> tuple[Route, ...]:
    """Returns all routes; PJRT does not run collectives of `shard`."""
    ranks = RanksEngine()
    shard, stablehlo = backend(MPI).pipelines, backend(PJRT).pipelines
    return (
        Route(SHARD, "MPI", shard, ranks_engine.lower, ranks),
        Route(STABLEHLO, "MPI", stablehlo, ranks_engine.lower, ranks),
        Route(STABLEHLO, "PJRT", stablehlo, xla_module.lower, XlaEngine()),
    )


class Visit:
    """Visits exhibits, with or without jaxlib, which partitions in a process of its own because it may end that."""

    def __init__(self, *, with_jaxlib: bool) -> None:
        self._routes = routes()
        self._context = mlir_shard.create_context()
        self._with_jaxlib = with_jaxlib
        self._other: ProcessPoolExecutor | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the routes and partitioners."""
        return (*(route.name for route in self._routes), *([JAXLIB] if self._with_jaxlib else []))

    def verdicts(self, exhibit: Exhibit) -> list[str]:
        """Returns `RIGHT`, or the failure, for each column."""
        model = exhibit.make()
        with jax.enable_x64(_is_wide(model)):
            program, wanted = measured(model), expected(model)
            partitioned = functools.cache(lambda pipelines: _partitioned(program.text, pipelines, self._context))
            found = []
            for route in self._routes:
                run = functools.partial(_run, lambda route=route: partitioned(route.pipelines), program.arrays, route)
                found.append(_verdict(run, wanted))
        return [*found, *([self._by_jaxlib(exhibit)] if self._with_jaxlib else [])]

    def _by_jaxlib(self, exhibit: Exhibit) -> str:
        if self._other is None:
            self._other = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        try:
            return self._other.submit(jaxlib_verdict, exhibit.name).result()
        except BrokenProcessPool:
            self._other = None
            return "ends the process"


def jaxlib_verdict(name: str) -> str:
    """Returns the verdict of `Visit.verdicts` for jaxlib alone, on the exhibit of that name."""
    from museum.__main__ import load_exhibits

    load_exhibits()
    model = EXHIBITS[name].make()
    with jax.enable_x64(_is_wide(model)):
        return _verdict(lambda: jax.tree.leaves(lowered(model).compile()(*model.arguments)), expected(model))


def _partitioned(text: str, pipelines: Pipelines, context: Any) -> Program:
    """Returns the local program, before the lowering of each engine."""

    def as_it_is(texts: Sequence[str], _: str) -> list[Lowered]:
        return list(map(Lowered, texts))

    module = mlir_shard.parse(text, context)
    return compile_module(module, pipelines=pipelines, with_unsharded=False, lower=as_it_is).sharded


def _run(partitioned: Callable[[], Program], inputs: Sequence[Any], route: Route) -> list[Any]:
    program = partitioned()
    (lowered,) = route.lower([program.text], program.entry)
    results = run_program(replace(program, lowered=lowered), inputs, route.engine)
    for result in results:
        if result.disagreement:
            raise ValueError(result.disagreement)
    return [result.array for result in results]


def _verdict(run: Callable[[], Sequence[Any]], wanted: Sequence[Any]) -> str:
    try:
        results = run()
    except Exception as error:  # The museum shows every failure.
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        print(next((line for line in lines if "error" in line), lines[0]), file=sys.stderr)
        return "an error"
    try:
        check_results(results, wanted, None)
    except ValueError:
        return "wrong"
    return RIGHT


def _is_wide(model: Model) -> bool:
    """Returns True if an argument has 64 bits, for which JAX needs an option."""
    return any(np.asarray(leaf).dtype.itemsize == 8 for leaf in jax.tree.leaves(model.arguments))
