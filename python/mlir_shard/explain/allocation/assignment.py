# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The buffers of a local program with their lifetimes, on one time line that passes through loops and branches once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlir_shard.explain.allocation.buffers import Buffer, Kind
from mlir_shard.explain.allocation.fusion import FusionRules, Kernel, kernels
from mlir_shard.explain.allocation.instructions import Computation, Instruction, Role, Value


class BufferRules(FusionRules, Protocol):
    """The rules of a compiler for allocation."""

    is_in_place: bool
    """Whether an elementwise result reuses the memory of an operand that is not used again."""
    copies_parameters: bool
    """Whether loop-carried values stay in the same memory, and are copied in an iteration that reads them too late."""
    pointer_bytes: int
    """The bytes of each of several results in a table of their addresses; 0 without tables."""

    def staging(self, one: Instruction) -> tuple[int, int]:
        """Returns the bytes that an instruction needs besides its results, before and after its computation."""
        ...


class Assignment:
    """The buffers of a computation and of the computations that it runs.

    Args:
        computation: the computation of a function.
        rules: the rules of the compiler.
        called: returns the bytes that a function needs besides its arguments.
        donated: arguments whose memory may be overwritten, each with the number of the result that reuses it, if
            that is specified.

    Attributes:
        temporaries: the buffers of neither arguments nor results.
        results: the buffers of results that have memory of their own.
        aliased: the bytes of results in the memory of donated arguments.
        time: the end of the time line.
    """

    def __init__(
        self,
        computation: Computation,
        rules: BufferRules,
        called: Callable[[str], int],
        donated: Mapping[int, int | None] | None = None,
    ) -> None:
        self.temporaries: list[Buffer] = []
        self.results: list[Buffer] = []
        self.aliased = 0
        self.time = 0
        self._rules = rules
        self._called = called
        self._of: dict[int, Buffer] = {}
        self._tables: list[Buffer] = []
        given = dict(donated or {})
        for index in given:
            value = computation.parameters[index]
            self._of[id(value)] = Buffer(value.tensor.bytes, 0, 0, Kind.ARGUMENT, index=index)
        self._run(computation)
        self._return(computation, given)

    def _run(self, computation: Computation) -> list[Kernel]:
        order = kernels(computation, self._rules)
        tables = len(self._tables)
        for kernel in order:
            self.time += 2
            loop = loop_of(kernel.instruction)
            if loop is None:
                self._compute(kernel)
            else:
                self._loop(kernel, loop)
        # Tables of addresses are live to the end of the computation.
        for table in self._tables[tables:]:
            table.last = self.time
        del self._tables[tables:]
        return order

    def _compute(self, kernel: Kernel) -> None:
        one = kernel.instruction
        source = _viewed(one, kernel) if one.traits.is_view else None
        if source is not None:
            if (viewed := self._of.get(id(source))) is not None:
                self._of[id(one.results[0])] = viewed
            return
        number = one.op.number if one.op else -1
        kind = Kind.COLLECTIVE if one.traits.is_collective else Kind.TEMPORARY
        before, behind = self._rules.staging(one)
        for computation in one.blocks:
            self._run(computation)
            for value in computation.returned:
                self._extend(value, self.time)
        if callee := _callee(one):
            # The bytes that the function needs include its results.
            self.temporaries.append(Buffer(self._called(callee), self.time, self.time + 1, kind, number))
            self._end_reads(kernel)
            self.time += 2
        # Staged data is live with the operands, and then with the results.
        for size in (before, behind):
            if size:
                self.temporaries.append(Buffer(size, self.time, self.time + 2, kind, number))
                self._end_reads(kernel)
                self.time += 2
        for index, value in enumerate(one.results):
            shared = self._ended(one.operands[index], one) if index < one.traits.updates else None
            if shared is None:
                self._add(value, Buffer(value.tensor.bytes, self.time, self.time, kind, number, index, kernel.rank))
            else:
                shared.last = max(shared.last, self.time)
                self._of[id(value)] = shared
        if one.traits.fills:
            self._fill(one)
        if not (callee or before or behind):
            self._end_reads(kernel)
        self._add_table(one, self.time)

    def _fill(self, one: Instruction) -> None:
        """Places an inserted value inside the result, whose lifetime then begins with that of the value."""
        inserted, result = one.operands[1], self._of[id(one.results[0])]
        own = self._ended(inserted, one)
        is_own = own is not None and own.kind is Kind.TEMPORARY and own.size == inserted.tensor.bytes
        if own is not None and is_own and not _is_parameter(inserted) and own is not result:
            result.first = min(result.first, own.first)
            own.size = 0

    def _add_table(self, one: Instruction, start: int) -> None:
        if len(one.results) > 1 and self._rules.pointer_bytes:
            size = self._rules.pointer_bytes * len(one.results)
            table = Buffer(size, start, self.time, Kind.TEMPORARY, one.op.number if one.op else -1)
            self.temporaries.append(table)
            if not one.blocks:
                self._tables.append(table)

    def _ended(self, value: Value, user: Instruction) -> Buffer | None:
        """Returns the buffer of a value that only this instruction uses, and may overwrite; None for other values."""
        buffer = self._of.get(id(value))
        while buffer is not None and all(one is user for one in value.users):
            user = value.definer
            if not user.traits.is_view:
                return buffer
            value = user.operands[0]
        return None

    def _loop(self, kernel: Kernel, loop: Sequence[Carried]) -> None:
        one = kernel.instruction
        number = one.op.number if one.op else -1
        start = self.time
        carried: list[Buffer | None] = []
        for index, each in enumerate(loop):
            buffer = self._of.get(id(each.initial))
            if each.returned in each.parameters:
                carried.append(None)
            else:
                buffer = self._ended(each.initial, one)
                # If several values have the same initial value, the first one reuses its memory.
                if buffer is None or any(buffer is other for other in carried):
                    buffer = Buffer(each.result.tensor.bytes, start, start, Kind.TEMPORARY, number, index)
                    self.temporaries.append(buffer)
                carried.append(buffer)
            for value in (*each.parameters, each.result):
                if buffer is not None:
                    self._of[id(value)] = buffer
        order: list[Kernel] = []
        for computation in one.blocks:
            begin = self.time + 1
            order = self._run(computation)
        self.time += 2
        dependences = _Dependences(order)
        for each, buffer in zip(loop, carried, strict=True):
            own = self._of.get(id(each.returned))
            if buffer is None or own is buffer:
                continue
            if self._rules.copies_parameters:
                if not dependences.may_replace(each.parameters[-1], each.returned):
                    self.temporaries.append(
                        Buffer(buffer.size, begin, max(begin, buffer.last), Kind.TEMPORARY, number, buffer.index)
                    )
                self.temporaries = [one for one in self.temporaries if one is not own or own in carried]
            elif own is not None:
                own.last = max(own.last, self.time)
        for buffer in carried:
            if buffer is not None:
                buffer.last = self.time
        self._extend_reads(kernel, self.time)
        self._add_table(one, start)

    def _end_reads(self, kernel: Kernel) -> None:
        """Extends the lifetimes of the values that a kernel reads to its result, or to before it if it is in place."""
        results = kernel.instruction.results
        own = self._of.get(id(results[0])) if results else None
        for value, in_place in kernel.reads.items():
            buffer = self._of.get(id(value))
            if buffer is None:
                continue
            is_shared = (
                self._rules.is_in_place
                and in_place
                and own is not None
                and buffer is not own
                and value.tensor.bytes == results[0].tensor.bytes
                and value.tensor.type == results[0].tensor.type
            )
            buffer.last = max(buffer.last, self.time - 1 if is_shared else self.time)

    def _extend_reads(self, kernel: Kernel, time: int) -> None:
        for value in kernel.reads:
            self._extend(value, time)

    def _extend(self, value: Value, time: int) -> None:
        buffer = self._of.get(id(value))
        if buffer is not None and buffer.last < time:
            buffer.last = time

    def _add(self, value: Value, buffer: Buffer) -> None:
        self._of[id(value)] = buffer
        self.temporaries.append(buffer)

    def _return(self, computation: Computation, donated: Mapping[int, int | None]) -> None:
        """Finds the buffers of the results; values without a buffer, or returned twice, are copied."""
        taken: set[int] = set()
        arguments = {index: value for value, index in donated.items() if index is not None}
        for index, value in enumerate(computation.returned):
            buffer = self._of.get(id(value))
            argument = self._of.get(id(computation.parameters[arguments[index]])) if index in arguments else None
            if buffer is None or id(buffer) in taken:
                buffer = Buffer(value.tensor.bytes, self.time, self.time)
            taken.add(id(buffer))
            if buffer.kind is Kind.ARGUMENT:
                self.aliased += buffer.size
            elif argument is not None and argument.last < buffer.first:
                # The result is computed in the memory of the argument.
                self.aliased += buffer.size
            else:
                buffer.last, buffer.kind, buffer.index = self.time + 2, Kind.RESULT, index
                self.results.append(buffer)
        self.temporaries = [one for one in self.temporaries if id(one) not in taken]


def _is_parameter(value: Value) -> bool:
    """Returns whether a value is a parameter, or a view of one."""
    while value.definer.traits.is_view:
        value = value.definer.operands[0]
    return value.definer.traits.role is Role.PARAMETER


def _viewed(view: Instruction, kernel: Kernel) -> Value | None:
    """Returns the value in memory that a view refers to, also through fused views; None if it is computed."""
    value = view.operands[0]
    while value not in kernel.reads and value.definer.traits.is_view:
        value = value.definer.operands[0]
    return value if value in kernel.reads else None


class _Dependences:
    """The dependences between the kernels of a body, which hold in any order of execution."""

    def __init__(self, order: Sequence[Kernel]) -> None:
        self._order = order
        self._sources: list[int] = []
        self._definers: dict[int, int] = {}
        for number, kernel in enumerate(order):
            bits = 1 << number
            for value in kernel.reads:
                if (definer := self._definers.get(id(value))) is not None:
                    bits |= self._sources[definer]
            self._sources.append(bits)
            self._definers.update((id(value), number) for value in kernel.instruction.results)

    def may_replace(self, before: Value, after: Value) -> bool:
        """Returns whether `after` may overwrite `before`: all kernels that read `before` run earlier, or in place."""
        definer = self._definers.get(id(after))
        while definer is not None and (kernel := self._order[definer]).instruction.traits.is_view:
            definer = self._definers.get(id(kernel.instruction.operands[0]))
        if definer is None:
            return not before.users
        for number, kernel in enumerate(self._order):
            if before not in kernel.reads:
                continue
            if number == definer:
                one = kernel.instruction
                if not kernel.reads[before] and before not in one.operands[: one.traits.updates]:
                    return False
            elif not self._sources[definer] >> number & 1:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Carried:
    """A loop-carried value: its initial value, parameters in regions, value after an iteration, and result."""

    initial: Value
    parameters: tuple[Value, ...]
    returned: Value
    result: Value


def loop_of(one: Instruction) -> list[Carried] | None:
    """Returns the values that a loop carries; None for other instructions."""
    parameters: Sequence[tuple[Value, ...]]
    if one.name == "stablehlo.while":
        condition, body = one.blocks
        parameters = list(zip(condition.parameters, body.parameters, strict=True))
        initial = one.operands
    elif one.name == "scf.for":
        (body,) = one.blocks
        parameters = [(value,) for value in body.parameters[1:]]
        initial = one.operands[3:]
    elif one.name == "scf.while" and len(one.operands) == len(one.results):
        condition, body = one.blocks
        parameters = list(zip(condition.parameters, body.parameters, strict=True))
        initial = one.operands
    else:
        return None
    return [Carried(*each) for each in zip(initial, parameters, body.returned, one.results, strict=True)]


def _callee(one: Instruction) -> str:
    if one.op is None or one.name != "func.call":
        return ""
    return str(one.op.signature.op.attributes["callee"].value)
