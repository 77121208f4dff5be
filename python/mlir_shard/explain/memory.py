# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory that a rank needs to run a local program, predicted from the program alone: see docs/memory.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mlir_shard.explain.allocation.assignment import Assignment
from mlir_shard.explain.allocation.buffers import Buffer, Kind, into_results, live_at, most_live, packed_size
from mlir_shard.explain.allocation.instructions import Reader
from mlir_shard.explain.allocation.local_values import LocalValues
from mlir_shard.explain.allocation.mpi_rules import MpiRules
from mlir_shard.explain.allocation.xla_rules import XlaRules
from mlir_shard.explain.memory_curve import MemoryPoint, memory_curve
from mlir_shard.explain.places import Place, place_of
from mlir_shard.garbage import no_collections
from mlir_shard.ir.editing import contents
from mlir_shard.passes.registry import PassFailure
from mlir_shard.runtime.interface import donated_arguments, entry_function, name_of
from mlir_shard.runtime.names import argument_names

Engine = Literal["mpi", "pjrt"]

_ALIGNMENT = 64
_MOST_LISTED = 10
_ALIASED = "tf.aliasing_output"


@dataclass(frozen=True, slots=True)
class LiveValue:
    """A value in memory.

    Attributes:
        bytes: its size.
        kind: `argument`, `result`, `temporary` or `collective`.
        name: the name of the operation that computes it, or of the argument.
        place: the place of that operation or argument in the user's program.
    """

    bytes: int
    kind: str
    name: str
    place: str


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """The most memory that a rank needs at once for a call of a local program, in bytes.

    Attributes:
        engine: the compiler whose buffers are predicted: XLA for `pjrt`, this package's lowering for `mpi`.
        arguments: the bytes of all arguments, which are live from the beginning to the end.
        results: the bytes of results in memory of their own at the peak; for XLA those of all such results, and of the
            table of their addresses.
        aliased: the bytes of results in the memory of donated arguments, which need no other memory.
        constants: the bytes of constants that are part of the executable, without splats.
        temporaries: the bytes of intermediate values at the peak; for XLA those of the memory that is shared by all.
        collectives: the bytes that collectives receive and stage at the peak.
        at: the operation at the peak, and its place; empty if nothing is computed.
        live: the largest values at the peak, the largest first.
    """

    engine: Engine
    arguments: int
    results: int
    aliased: int
    constants: int
    temporaries: int
    collectives: int
    at: str
    live: tuple[LiveValue, ...]

    @property
    def peak(self) -> int:
        """The sum of all parts, in bytes."""
        return self.without_constants + self.constants

    @property
    def without_constants(self) -> int:
        """The bytes that a call needs; constants are live as long as the executable."""
        return self.arguments + self.results + self.temporaries + self.collectives

    def as_data(self) -> dict[str, Any]:
        """Returns the prediction in the types of JSON, in bytes."""
        return {**asdict(self), "peak": self.peak}


def peak_memory(module: Any, function: str = "main", *, engine: Engine | None = None) -> PeakMemory:
    """Predicts the most memory that a rank needs to run a local program.

    Args:
        module: a local module, or its operation.
        function: the name of the function that is run.
        engine: the engine that runs it; by default `pjrt` for a program of StableHLO alone, else `mpi`.

    Raises:
        PassFailure: tensors are of dynamic shape, or control flow is not structured.
    """
    return memory_over_program(module, function, engine=engine)[0]


def memory_over_program(
    module: Any, function: str = "main", *, engine: Engine | None = None
) -> tuple[PeakMemory, list[MemoryPoint]]:
    """Predicts the peak memory, as `peak_memory` does, and the live bytes at each operation.

    XLA's memory may have gaps, and so be larger than the live bytes.
    """
    chosen = engine or _engine_of(module)
    rules = XlaRules() if chosen == "pjrt" else MpiRules()
    entry = entry_function(module, function)
    # Instructions and values live to the end, and garbage collection would take half the time.
    with no_collections():
        prediction = _Prediction(LocalValues(module, rules.opens), rules, entry)
        peak = prediction.predicted(chosen)
        return peak, memory_curve(prediction.buffers, prediction.named, always=prediction.always)


def _engine_of(module: Any) -> Engine:
    names = contents(module).operations
    return "pjrt" if all(name.partition(".")[0] in ("builtin", "func", "stablehlo") for name in names) else "mpi"


class _Prediction:
    def __init__(self, program: LocalValues, rules: XlaRules | MpiRules, entry: Any) -> None:
        self._program, self._rules, self._entry = program, rules, entry
        self._reader = Reader(program, rules)
        self._needs: dict[str, int] = {}
        # The buffers of the entry, and the bytes of results that are live from the beginning.
        self.buffers: list[Buffer] = []
        self.always = 0

    def predicted(self, engine: Engine) -> PeakMemory:
        """Returns the memory of the entry."""
        name = name_of(self._entry)
        if name not in self._program.functions:
            raise PassFailure(f"@{name} has no body", self._entry)
        computation = self._reader.computation(self._program.functions[name])
        assigned = Assignment(computation, self._rules, self._needed, _donations(self._entry))
        arguments = sum(value.tensor.bytes for value in computation.parameters)
        if engine == "pjrt":
            return self._of_xla(assigned, arguments, len(computation.returned))
        return self._of_mpi(assigned, arguments)

    def _needed(self, name: str) -> int:
        """Returns the bytes that a function needs besides its arguments."""
        if name not in self._needs:
            block = self._program.functions.get(name)
            if block is None:
                self._needs[name] = 0
            else:
                assigned = Assignment(self._reader.computation(block), self._rules, self._needed)
                self._needs[name] = most_live(assigned.temporaries + assigned.results)[0]
        return self._needs[name]

    def _of_xla(self, assigned: Assignment, arguments: int, count: int) -> PeakMemory:
        temporaries = into_results(assigned.temporaries, assigned.results)
        heap = packed_size(temporaries, _ALIGNMENT)
        results = sum(one.size for one in assigned.results)
        if count > 1:
            results += count * self._rules.pointer_bytes
        self.buffers, self.always = temporaries, results
        _, time = most_live(temporaries)
        live = live_at(temporaries, time)
        collectives = sum(one.size for one in live if one.kind is Kind.COLLECTIVE)
        return self._memory("pjrt", arguments, results, assigned.aliased, heap - collectives, collectives, live)

    def _of_mpi(self, assigned: Assignment, arguments: int) -> PeakMemory:
        every = self.buffers = assigned.temporaries + assigned.results
        _, time = most_live(every)
        live = live_at(every, time)
        results, temporaries, collectives = (
            sum(one.size for one in live if one.kind is kind) for kind in (Kind.RESULT, Kind.TEMPORARY, Kind.COLLECTIVE)
        )
        return self._memory("mpi", arguments, results, assigned.aliased, temporaries, collectives, live)

    def _memory(
        self,
        engine: Engine,
        arguments: int,
        results: int,
        aliased: int,
        temporaries: int,
        collectives: int,
        live: Sequence[Buffer],
    ) -> PeakMemory:
        last = max((one for one in live if one.op >= 0), key=lambda one: one.first, default=None)
        at = "" if last is None else "{0.name} at {0.place}".format(self._shown(last))
        entry = enumerate(argument_names(self._entry))
        block = self._entry.regions[0].blocks[0]
        tensors = self._program.tensors
        given = [
            LiveValue(tensors[number].bytes, "argument", name, str(place_of(block.arguments[index].location)))
            for (index, name), number in zip(
                entry, self._program.functions[name_of(self._entry)].arguments, strict=True
            )
        ]
        largest = sorted(live, key=lambda one: -one.size)[:_MOST_LISTED]
        listed = sorted([*given, *map(self._shown, largest)], key=lambda one: -one.bytes)[:_MOST_LISTED]
        constants = self._program.constant_bytes
        return PeakMemory(engine, arguments, results, aliased, constants, temporaries, collectives, at, tuple(listed))

    def named(self, number: int) -> tuple[str, Place]:
        """Returns the name and the place of an operation."""
        op = self._program.arrays.operation(number)
        return op.name, place_of(op.location)

    def _shown(self, buffer: Buffer) -> LiveValue:
        if buffer.op < 0:
            return LiveValue(buffer.size, buffer.kind.name.lower(), f"result {buffer.index}", "")
        name, place = self.named(buffer.op)
        return LiveValue(buffer.size, buffer.kind.name.lower(), name, str(place))


def _donations(entry: Any) -> Mapping[int, int | None]:
    """Returns the donated arguments, each with the result that reuses its memory; None if no result does."""
    attributes = entry.attributes.get("arg_attrs") or ()
    donated = donated_arguments(entry)
    type_ = entry.attributes["function_type"].value
    found: dict[int, int | None] = {
        index: attributes[index][_ALIASED].value if _ALIASED in attributes[index] else None for index in sorted(donated)
    }
    # XLA gives an argument that is donated without a result to the first free result of its type.
    free = [index for index in range(len(type_.results)) if index not in found.values()]
    for argument, result in found.items():
        if result is None:
            same = next((index for index in free if type_.results[index] == type_.inputs[argument]), None)
            if same is not None:
                found[argument] = same
                free.remove(same)
    return found
