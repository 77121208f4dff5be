# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fusion of instructions, which then have no memory, and the execution order of the remaining ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from mlir_shard.explain.allocation.instructions import Computation, Instruction, Role, Value, read_values


class FusionRules(Protocol):
    """The rules of a compiler for fusion."""

    is_breadth_first: bool
    """Whether an instruction runs as soon as its operands are available, instead of in program order."""

    def calls(self, computation: Computation) -> Mapping[int, Instruction]:
        """Returns the instructions that library calls compute, by `id`, each with the last instruction of its call."""
        ...

    def takes(self, user: Instruction, producer: Instruction) -> bool:
        """Returns whether a producer may be fused into a user."""
        ...

    def is_branching(self, one: Instruction) -> bool:
        """Returns whether an instruction with several users is fused only into users that fuse no other instruction."""
        ...

    def repeats(self, user: Instruction, producer: Instruction) -> bool:
        """Returns whether a user reads elements of a producer several times."""
        ...

    def may_repeat(self, one: Instruction) -> bool:
        """Returns whether an instruction may be fused into several others."""
        ...

    def is_whole_or_not(self, one: Instruction) -> bool:
        """Returns whether an instruction is fused either into all its users, along all paths, or into no user."""
        ...


@dataclass(slots=True, eq=False)
class Kernel:
    """An instruction that is run, with the instructions that are fused into it.

    Attributes:
        instruction: the last instruction, which defines the results.
        reads: the values in memory that it reads; True if only elementwise instructions read the value, so that the
            result may reuse its memory.
        reads_constants: whether its operands include constants; False if instructions are fused into it.
        rank: its place in a depth-first order, operands first.
    """

    instruction: Instruction
    reads: dict[Value, bool] = field(default_factory=dict)
    reads_constants: bool = False
    rank: int = 0


@dataclass(slots=True)
class _Fusion:
    """The fusion of an instruction.

    Attributes:
        users: the users that it is fused into, in any kernel, by `id`.
        count: the number of kernels that contain it, including its own if it is run; 2 for several.
        kernel: the kernel that contains it, by `id`, if only one does.
        is_kept: whether it is run.
        is_repeated: whether a kernel computes an element of it several times.
    """

    users: set[int] = field(default_factory=set)
    count: int = 0
    kernel: int = 0
    is_kept: bool = False
    is_repeated: bool = False

    def add(self, count: int, kernel: int) -> None:
        """Adds kernels."""
        if not self.count:
            self.count, self.kernel = count, kernel
        elif count != 1 or kernel != self.kernel:
            self.count = 2


def kernels(computation: Computation, rules: FusionRules) -> list[Kernel]:
    """Returns the kernels of a computation in execution order."""
    calls = rules.calls(computation)
    made = _reads(computation, _fusions(computation, rules, calls), calls)
    return _breadth_first(computation, made) if rules.is_breadth_first else made


def _fusions(computation: Computation, rules: FusionRules, calls: Mapping[int, Instruction]) -> dict[int, _Fusion]:
    returned = {id(value.definer) for value in computation.returned}
    found: dict[int, _Fusion] = {}
    paths = _Paths(computation, rules)
    for one in reversed(computation.instructions):
        fusion = found[id(one)] = _Fusion()
        call = calls.get(id(one), one)
        if id(one) in calls or one.traits.role is not Role.FUSIBLE:
            fusion.is_kept = call is one
            fusion.add(1, id(call))
            continue
        users = dict.fromkeys(user for value in one.results for user in value.users)
        takers = [user for user in users if id(user) not in calls and rules.takes(user, one)]
        is_kept = id(one) in returned or len(takers) < len(users)
        is_shared = is_kept or len(takers) > 1 or any(found[id(user)].count > 1 for user in takers)
        if is_shared and rules.is_branching(one):
            alone = [user for user in takers if _is_alone(user, one, found[id(user)])]
            is_kept, takers = is_kept or len(alone) < len(takers), alone
        for user in takers:
            fusion.add(found[id(user)].count, found[id(user)].kernel)
            fusion.is_repeated |= found[id(user)].is_repeated or rules.repeats(user, one)
        is_several = bool(takers) and (is_kept or fusion.count > 1)
        if (one.traits.is_expensive and fusion.is_repeated) or (is_several and not rules.may_repeat(one)):
            takers = []
        elif len(users) > 1 and rules.is_whole_or_not(one) and not paths.all_fused(one, users, is_kept=is_kept):
            paths.kept.add(id(one))
            takers = []
        if not takers:
            fusion = found[id(one)] = _Fusion()
        fusion.users = set(map(id, takers))
        fusion.is_kept = is_kept or not takers
        if fusion.is_kept:
            fusion.add(1, id(one))
    return found


def _is_alone(user: Instruction, producer: Instruction, fusion: _Fusion) -> bool:
    is_only = len(user.operands) == 1 and user.operands[0].definer is producer
    return is_only and fusion.is_kept and fusion.count == 1


def _reads(computation: Computation, fusions: Mapping[int, _Fusion], calls: Mapping[int, Instruction]) -> list[Kernel]:
    """Returns the kernels in program order, with the values that they read.

    The values that an instruction reads, directly or through fused instructions, are the bits of a number.
    """
    values: list[Value] = []
    bits: dict[int, int] = {}
    every: dict[int, int] = {}
    moved: dict[int, int] = {}
    made: list[Kernel] = []
    for one in computation.instructions:
        if one.traits.role is Role.CONSTANT:
            continue
        read = through = direct = 0
        has_constants = has_fused = False
        call = calls.get(id(one))
        for value in read_values(one):
            producer = value.definer
            if producer.traits.role is Role.CONSTANT:
                has_constants = True
                continue
            fusion = fusions.get(id(producer))
            is_inside = call is not None and calls.get(id(producer)) is call
            if fusion is not None and (is_inside or id(one) in fusion.users):
                has_fused = True
                read |= every[id(producer)]
                through |= moved[id(producer)] if one.traits.is_elementwise else every[id(producer)]
                continue
            bit = bits.get(id(value))
            if bit is None:
                bit = bits[id(value)] = 1 << len(values)
                values.append(value)
            read |= bit
            direct |= bit
            if not one.traits.is_elementwise:
                through |= bit
        every[id(one)], moved[id(one)] = read, through
        if fusions[id(one)].is_kept:
            order = [*_set_bits(direct), *_set_bits(read & ~direct)]
            found = {values[number]: not through >> number & 1 for number in order}
            made.append(Kernel(one, found, has_constants and not has_fused))
    return made


def _set_bits(number: int) -> Iterator[int]:
    digits = bin(number)[:1:-1]
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)


class _Paths:
    """The paths from instructions to their users, and whether all of them are fused.

    kept: the instructions that are not fused at all.
    """

    def __init__(self, computation: Computation, rules: FusionRules) -> None:
        self._instructions, self._rules = computation.instructions, rules
        self.kept: set[int] = set()
        self._found: dict[tuple[int, int], bool] = {}

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {id(one): number for number, one in enumerate(self._instructions)}

    @cached_property
    def _sources(self) -> list[int]:
        """The instructions that each instruction depends on, including itself, as bits of a number."""
        found: list[int] = []
        for number, one in enumerate(self._instructions):
            bits = 1 << number
            for value in read_values(one):
                at = self._numbers.get(id(value.definer))
                if at is not None:
                    bits |= found[at]
            found.append(bits)
        return found

    def all_fused(self, producer: Instruction, users: Iterable[Instruction], *, is_kept: bool) -> bool:
        """Returns whether an instruction can be fused into all its users along all paths."""
        return not is_kept and all(self._is_fused(producer, user) for user in users)

    def _is_fused(self, producer: Instruction, user: Instruction) -> bool:
        if user is producer:
            return True
        key = (id(producer), id(user))
        known = self._found.get(key)
        if known is None:
            known = self._found[key] = self._computed(producer, user)
        return known

    def _computed(self, producer: Instruction, user: Instruction) -> bool:
        number = self._numbers[id(producer)]
        for value in dict.fromkeys(user.operands):
            between = value.definer
            at = self._numbers.get(id(between))
            if at is None or not self._sources[at] >> number & 1:
                continue
            if id(between) in self.kept or between.traits.role is not Role.FUSIBLE:
                return False
            if not self._rules.takes(user, between) or not self._is_fused(producer, between):
                return False
        return True


def _breadth_first(computation: Computation, made: Sequence[Kernel]) -> list[Kernel]:
    """Returns the kernels in the order of XLA's `BFScheduler`: users of kernels that run first come first."""
    parameters = computation.parameters
    constants, first = len(parameters), len(parameters) + 1
    # Parameters, constants and kernels are numbered in this order.
    numbers = {id(value): number for number, value in enumerate(parameters)}
    for number, kernel in enumerate(made, first):
        numbers.update((id(value), number) for value in kernel.instruction.results)
    sources: list[list[int]] = []
    waits = [0] * first
    users: list[list[int]] = [[] for _ in range(first + len(made))]
    for number, kernel in enumerate(made, first):
        read = dict.fromkeys(numbers[id(value)] for value in kernel.reads if id(value) in numbers)
        if kernel.reads_constants:
            read[constants] = None
        for one in read:
            users[one].append(number)
        waits.append(len(read))
        sources.append(list(read))
    ready = deque(range(first))
    ready.extend(number for number in range(first, len(waits)) if not waits[number])
    order: list[Kernel] = []
    while ready:
        number = ready.popleft()
        if number >= first:
            order.append(made[number - first])
        for user in users[number]:
            waits[user] -= 1
            if not waits[user]:
                ready.append(user)
    _rank(made, sources, users, first)
    return order


def _rank(made: Sequence[Kernel], sources: Sequence[Sequence[int]], users: Sequence[Sequence[int]], first: int) -> None:
    """Ranks kernels depth-first from those without users, operands first."""
    seen = [False] * len(made)
    rank = 0
    pending = [(number, False) for number in reversed(range(len(made))) if not users[number + first]]
    while pending:
        number, is_done = pending.pop()
        if is_done:
            made[number].rank = rank
            rank += 1
        elif not seen[number]:
            seen[number] = True
            pending.append((number, True))
            pending.extend((one - first, False) for one in reversed(sources[number]) if one >= first)
