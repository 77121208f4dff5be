# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A global program with named arguments and results, and its local program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import mlir_shard
from mlir_shard.explain.difference.changes import Difference
from mlir_shard.explain.difference.compare import compare
from mlir_shard.explain.explanation import Explanation, explain
from mlir_shard.explain.memory import Engine, PeakMemory, peak_memory
from mlir_shard.explain.what_if import Change, Comparison, what_if
from mlir_shard.frontend.annotate import Specs, annotate
from mlir_shard.frontend.device_array import DeviceArray
from mlir_shard.frontend.display import program_html
from mlir_shard.frontend.executable import Executable, Pack, Unpack, with_names, with_unsigned
from mlir_shard.frontend.shardings import Shardings, shardings_of
from mlir_shard.host import ir
from mlir_shard.passes.registry import PassFailure
from mlir_shard.runtime import names
from mlir_shard.runtime.backends import MPI, SHARD, Backend, backend
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.interface import entry_function
from mlir_shard.runtime.static_shapes import Shapes, make_static
from mlir_shard.sharding import Mesh
from mlir_shard.tools.certified import certificate_file, check_file
from mlir_shard.transforms.communication.communication_report import CommunicationReport
from mlir_shard.transforms.communication.shard_communication_report import communication_report


def pack_in_order(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Returns the arguments of a program without pytrees: one array for each argument."""
    if kwargs:
        raise TypeError(f"the program has no argument named {next(iter(kwargs))!r}: its arguments are positional")
    return list(args)


def unpack_in_order(results: Sequence[DeviceArray]) -> Any:
    """Returns the results of a program without pytrees: a list, or the single result."""
    return results[0] if len(results) == 1 else list(results)


@dataclass(frozen=True, repr=False)
class Program:
    """A global program.

    Attributes:
        module: a module with global types, an `ir.Module` or its operation.
        mesh: the mesh of its annotations; None if the module defines its own.
        function: the name of the entry function.
        pack: flattens the arguments of a call to an array for each argument of the function.
        unpack: builds the result of a call from an array for each result of the function.
        updates: maps the numbers of arguments that stay on the devices to the results that replace them after each
            call.
        unsigned_arguments, unsigned_results: the numbers of arguments and results of signless types whose elements are
            unsigned.
    """

    module: Any
    mesh: Mesh | None = None
    function: str = "main"
    pack: Pack = pack_in_order
    unpack: Unpack = unpack_in_order
    updates: Mapping[int, int] = field(default_factory=dict)
    unsigned_arguments: frozenset[int] = frozenset()
    unsigned_results: frozenset[int] = frozenset()

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of the arguments in JAX or torch, or `arg0`, `arg1`, ..."""
        return names.argument_names(self._entry)

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the results in JAX, or `result0`, `result1`, ..."""
        return names.result_names(self._entry)

    @property
    def _entry(self) -> Any:
        return entry_function(self.module, self.function)

    def annotate(self, *, args: Specs = (), results: Specs = (), values: Mapping[str, Any] | None = None) -> Program:
        """Returns the program with additional annotations, see `mlir_shard.annotate`."""
        module = _clone(self.module)
        annotate(module, self.mesh, args=args, results=results, values=values, function=self.function)
        return replace(self, module=module)

    def with_shapes(self, shapes: Shapes) -> Program:
        """Returns the program with static shapes, see `mlir_shard.runtime.static_shapes.make_static`.

        Args:
            shapes: shapes of arguments, by index, name or pattern, and sizes of dimension variables of `jax.export`:
                `{"x": (32, 16), "batch": 32}`.

        Raises:
            PassFailure: a shape does not fit, or a dimension is left without a size.
        """
        module = _clone(self.module)
        make_static(module, shapes, self.function)
        return replace(self, module=module)

    def without_callbacks(self) -> Program:
        """Returns the program without callbacks into Python that have no results, such as `jax.debug.print`."""
        module = _clone(self.module)
        mlir_shard.run(module, "builtin.module(shard-drop-callbacks)")
        return replace(self, module=module)

    def shardings(self) -> Shardings:
        """Returns the sharding of each argument, op result and result after propagation."""
        module = _clone(self.module)
        mlir_shard.run(module, "builtin.module(shard-propagate)")
        return shardings_of(module, self.function)

    def explain(self, collectives: str = SHARD) -> Explanation:
        """Returns the causes of the program's shardings and communication; prints as text.

        Args:
            collectives: the dialect of the collectives of the local program, `shard` or `stablehlo`.

        Raises:
            PassFailure: the program cannot be partitioned.
        """
        return explain(self.module, collectives=collectives)

    def what_if(self, *changes: str, collectives: str = SHARD) -> Comparison:
        """Returns the effects of other annotations; the program is not modified.

        Args:
            changes: values and shardings in the syntax of sdy, such as `params.w1: [{}, {"model"}]`.
            collectives: as for `explain`.

        Raises:
            WhatIfError: a change cannot be made.
            PassFailure: the program cannot be partitioned.
        """
        return what_if(self.module, [Change.read(text) for text in changes], collectives=collectives)

    def partition(self, collectives: str = SHARD, *, certify: bool = False) -> LocalProgram:
        """Partitions the program and returns the local program.

        Args:
            collectives: the dialect of its collectives, `shard` or `stablehlo`.
            certify: whether to prove that the local program is correct, see docs/certificates.md.

        Raises:
            PassFailure: the program cannot be partitioned, or the local program cannot be proved correct.
        """
        if not certify:
            return self._partition(f"collectives={collectives}")
        with certificate_file() as path:
            local = self._partition(f"collectives={collectives} certificate={path}")
            verdict = check_file(self.module, local.module, path)
        if not verdict.is_proved:
            first = verdict.refusals[0]
            raise PassFailure(f"the local program is not proved: {first.failure.message}", first.op)
        return local

    def _partition(self, options: str) -> LocalProgram:
        module = _clone(self.module)
        mlir_shard.run(module, f"builtin.module(spmd-pipeline{{{options}}})")
        return LocalProgram(module, self.function)

    @property
    def memory(self) -> PeakMemory:
        """The predicted peak memory of a call on an MPI rank."""
        return self.partition().memory

    def diff(self, other: Any, collectives: str = SHARD) -> Difference:
        """Returns the changes from this program to another one, see `mlir_shard.diff`."""
        return compare(self.module, getattr(other, "module", other), collectives=collectives)

    def compile(self, engine: str | Backend = MPI, *, trust_native: bool = False, **options: Any) -> Executable:
        """Partitions the program and compiles it for an engine.

        Args:
            engine: `mpi` for processes on this machine, `pjrt` for devices of XLA, or a result of `backend`.
            trust_native: whether to run a module that contains native code, see docs/trust.md.
            options: options of `mlir_shard.runtime.backends.backend`, such as `timeout=60`, `collectives="stablehlo"`.

        Raises:
            RunError: the program cannot be partitioned or compiled.
        """
        chosen = backend(engine, **options) if isinstance(engine, str) else engine
        compiled = compile_module(
            self.module,
            function=self.function,
            pipelines=chosen.pipelines,
            with_unsharded=False,
            lower=chosen.lower,
            trust_native=trust_native,
        )
        names = self.argument_names
        named = with_names(compiled.sharded, names, self.result_names)
        program = with_unsigned(named, self.unsigned_arguments, self.unsigned_results)
        return Executable(program, chosen.engine, self.pack, self.unpack, names, self.updates)

    def __str__(self) -> str:
        return mlir_shard.print_module(self.module)

    def __repr__(self) -> str:
        return f"<Program {_signature(self._entry)}>"

    def _repr_html_(self) -> str:
        return program_html(f"Program {_signature(self._entry)}", str(self), [f"mesh {self.mesh}"] if self.mesh else [])


def _clone(module: Any) -> Any:
    return module.operation.clone()


_MOST_SHOWN = 8


def _signature(function: Any) -> str:
    """Returns the name of a function, its arguments with their types, and the types of its results, in one line."""
    type_ = function.attributes["function_type"].value
    named = [f"{name}: {of}" for name, of in zip(names.argument_names(function), type_.inputs, strict=True)]
    arguments, results = _listed(named), _listed(list(map(str, type_.results)))
    return f"@{ir.StringAttr(function.attributes['sym_name']).value}({arguments}) -> ({results})"


def _listed(items: Sequence[str]) -> str:
    more = len(items) - _MOST_SHOWN
    return ", ".join(items if more <= 0 else [*items[:_MOST_SHOWN], f"and {more} more"])


@dataclass(frozen=True, repr=False)
class LocalProgram:
    """The per-device program.

    Attributes:
        module: the operation of a module with local types and collectives.
        function: the name of the entry function.
    """

    module: Any
    function: str = "main"

    @cached_property
    def communication(self) -> CommunicationReport:
        """The collectives of the program with their bytes and predicted times; prints as a table."""
        return communication_report(self.module)

    @cached_property
    def memory(self) -> PeakMemory:
        """The predicted peak memory of a call on the engine of its collectives, per device, see docs/memory.md."""
        return self.memory_on()

    def memory_on(self, engine: Engine | None = None) -> PeakMemory:
        """Returns the predicted peak memory of a call on an engine, `mpi` or `pjrt`, per device."""
        return peak_memory(self.module, self.function, engine=engine)

    def __str__(self) -> str:
        return mlir_shard.print_module(self.module)

    def __repr__(self) -> str:
        return f"<LocalProgram {_signature(entry_function(self.module, self.function))}>"

    def _repr_html_(self) -> str:
        title = f"LocalProgram {_signature(entry_function(self.module, self.function))}"
        received = self.communication.bytes_received
        count = len(self.communication.collectives)
        return program_html(title, str(self), [f"collectives: {count}, by which a device receives {received:,} B"])
