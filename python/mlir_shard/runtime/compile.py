# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compilation of a global module with sharding annotations to the per-device program and to the unsharded program."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mlir_shard
from mlir_shard.dialects.registered_function import specific_name
from mlir_shard.passes import diagnostic
from mlir_shard.passes.diagnostic import Diagnostic, reported
from mlir_shard.passes.registry import PassFailure
from mlir_shard.passes.resolution import PipelineError
from mlir_shard.runtime import interface
from mlir_shard.runtime.collectives.stablehlo_devices import set_devices
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.lowering.lowering_process import LoweringProcess
from mlir_shard.runtime.lowering.registered import drop_foreign_attributes, lower_registered
from mlir_shard.runtime.program import Lowered, Program
from mlir_shard.runtime.reference import verify
from mlir_shard.runtime.reference.precise import widen, widened
from mlir_shard.runtime.reference.unsharded import drop_sharding
from mlir_shard.runtime.trust import check_trusted
from mlir_shard.transforms.normalize.shard_drop_callbacks import callbacks

PROPAGATED, LOCAL = "propagated", "local"

# Is called with the name of a stage, `PROPAGATED` or `LOCAL`, and the module after it.
Watch = Callable[[str, Any], None]

# Lowers local modules, given as text with the name of the function to run, to the form that an engine takes.
Lower = Callable[[Sequence[str], str], list[Lowered]]


@dataclass(frozen=True, slots=True)
class Pipelines:
    """The pipelines that partition a global module: `propagate` decides all shardings, `spmdize` applies them."""

    propagate: str = "shard-propagate"
    spmdize: str = "shard-spmdize"


@dataclass(frozen=True, slots=True)
class Compiled:
    """The sharded program and, if requested, the unsharded program, which runs alone.

    coarsest: for each result of the unsharded program the coarsest float type in its computation, see
    `verify.coarsest_floats`. precise: compiles the unsharded program in f64; returns None if that is impossible.
    """

    sharded: Program
    unsharded: Program | None
    coarsest: tuple[str, ...] = ()
    precise: Callable[[], Program | None] = lambda: None


DEFAULT_PIPELINES = Pipelines()


def compile_module(
    module: Any,
    ranks: int | None = None,
    *,
    function: str = "main",
    pipelines: Pipelines = DEFAULT_PIPELINES,
    with_unsharded: bool = True,
    watch: Watch | None = None,
    lower: Lower | None = None,
    trust_native: bool = False,
) -> Compiled:
    """Compiles a function of a global module for `ranks` ranks, by default as many as its mesh has devices.

    Device d of the mesh is rank d. The module is not modified. `lower` produces the form that the engine runs, by
    default the LLVM dialect. Raises RunError if compilation fails, or the module has untrusted native code.
    """
    if not trust_native:
        check_trusted(module)
    chosen = LoweringProcess() if lower is None else lower
    with chosen.begun() if isinstance(chosen, LoweringProcess) else contextlib.nullcontext(chosen) as begun:
        return _compile(module, ranks, function, pipelines, with_unsharded, watch, begun)


def _compile(
    module: Any,
    ranks: int | None,
    function: str,
    pipelines: Pipelines,
    with_unsharded: bool,
    watch: Watch | None,
    lower: Lower,
) -> Compiled:
    entry = interface.name_of(interface.entry_function(module, function))
    propagated = _called_from_outside(module, entry)
    given: set[str] = set()
    _run(propagated, pipelines.propagate, given)
    if watch:
        watch(PROPAGATED, propagated)
    ranks = interface.check_ranks(propagated, ranks)
    arguments, results = interface.ports(interface.entry_function(propagated, entry), ranks)
    local = propagated.operation.clone()
    _run(local, pipelines.spmdize, given)
    if watch:
        watch(LOCAL, local)
    interface.check_local(interface.entry_function(local, entry), arguments, results)
    lower_registered(local)
    _check_callbacks(local)
    set_devices(local, ranks)
    texts = [_text(local, entry)]
    if with_unsharded:
        unsharded = _called_from_outside(module, entry)
        drop_sharding(unsharded)
        coarsest = verify.coarsest_floats(unsharded, interface.entry_function(unsharded, entry))
        # The decomposition of a composite defines its result.
        lower_registered(unsharded, composites=False)
        set_devices(unsharded, 1)
        texts.append(_text(unsharded, entry))
    lowered = lower(texts, entry)
    sharded = Program(lowered[0], entry, arguments, results, ranks)
    if not with_unsharded:
        return Compiled(sharded, None)
    whole_arguments, whole_results = tuple(map(interface.alone, arguments)), tuple(map(interface.alone, results))
    alone = Program(lowered[1], entry, whole_arguments, whole_results, 1)
    return Compiled(sharded, alone, coarsest, lambda: _precise(unsharded, alone, lower))


def _check_callbacks(local: Any) -> None:
    """Raises RunError, which names the callbacks into the process that traced the program, if any exist."""
    found = callbacks(local)
    if found:
        what = "calls back into the process that traced the program"
        messages = [diagnostic.at("error", f"'{specific_name(op)}' {what}", op.location) for op in found]
        raise RunError("devices are other processes than the one that traced the program", messages)


def _precise(unsharded: Any, alone: Program, lower: Lower) -> Program | None:
    if not widen(unsharded):
        return None
    try:
        (lowered,) = lower([_text(unsharded, alone.entry)], alone.entry)
    except RunError:
        return None
    return widened(alone, lowered)


def _called_from_outside(module: Any, entry: str) -> Any:
    """Returns a copy whose function `entry` is public: passes erase unused private functions."""
    copied = module.operation.clone()
    attributes = interface.entry_function(copied, entry).attributes
    if "sym_visibility" in attributes:
        del attributes["sym_visibility"]
    return copied


def _run(module: Any, pipeline: str, given: set[str]) -> None:
    def report_once(one: Diagnostic) -> None:
        # Both pipelines may emit the same warning.
        if (text := str(one)) not in given:
            given.add(text)
            print(text, file=sys.stderr, flush=True)

    try:
        with reported(report_once):
            mlir_shard.run(module, f"builtin.module({pipeline})")
    except PassFailure as failure:
        raise RunError(f"the program cannot be sharded by '{pipeline}'", failure.diagnostics) from failure
    except PipelineError as error:
        raise RunError(f"'{pipeline}' is not a pipeline: {error.message}") from error


def _text(module: Any, entry: str) -> str:
    """Returns a module as text with locations for errors, after making the entry take and return only tensors."""
    interface.cross_as_tensors(module, interface.entry_function(module, entry))
    text: str = module.operation.get_asm(enable_debug_info=True)
    return module.operation.get_asm(enable_debug_info=True) if drop_foreign_attributes(module, text) else text
