# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which instructions are fused, so that they have no memory, and the order in which what is left is run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from mlir_shard.explain.allocation.instructions import Computation, Instruction, Role, Value, read_values


class FusionRules(Protocol):
    """What a compiler fuses."""

    is_breadth_first: bool
    """Whether an instruction is run as soon as what it reads is there, in place of in the order of the program."""

    def calls(self, computation: Computation) -> Mapping[int, Instruction]:
        """Returns the instructions that calls of libraries compute, by `id`, each with the last one of its call."""
        ...

    def takes(self, user: Instruction, producer: Instruction) -> bool:
        """Whether a user may have a producer fused into it."""
        ...

    def is_branching(self, one: Instruction) -> bool:
        """Whether an instruction that several others read is only fused where nothing else is."""
        ...

    def repeats(self, user: Instruction, producer: Instruction) -> bool:
        """Whether a user reads elements of a producer several times."""
        ...

    def may_repeat(self, one: Instruction) -> bool:
        """Whether an instruction may be fused into several others."""
        ...

    def is_whole_or_not(self, one: Instruction) -> bool:
        """Whether an instruction is fused into all its users, by all ways, or into none."""
        ...


@dataclass(slots=True, eq=False)
class Kernel:
    """An instruction that is run, with those that are fused into it.

    Attributes:
        instruction: the last of them, whose results it has.
        reads: the values in memory that it reads; True where that is by elementwise instructions alone, so that its
            result may be where such a value was.
        reads_constants: whether constants are among its operands: they are where nothing is fused into it.
        rank: its place in a depth-first order, operands first.
    """

    instruction: Instruction
    reads: dict[Value, bool] = field(default_factory=dict)
    reads_constants: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class _Target:
    """What an instruction is fused into; `is_repeated` if that computes an element of it several times."""

    instruction: Instruction
    is_repeated: bool = False


_Targets = dict[int, dict[int, _Target]]


def kernels(computation: Computation, rules: FusionRules) -> list[Kernel]:
    """Returns what is run of a computation, in order."""
    targets = _targets(computation, rules)
    made = [
        Kernel(one)
        for one in computation.instructions
        if one.traits.role is not Role.CONSTANT and id(one) in targets[id(one)]
    ]
    for kernel in made:
        _read(kernel, targets)
    return _breadth_first(computation, made) if rules.is_breadth_first else made


def _targets(computation: Computation, rules: FusionRules) -> _Targets:
    """For each instruction those that it is fused into; itself where it is run, with or without such."""
    returned = {id(value.definer) for value in computation.returned}
    targets: _Targets = {}
    paths = _Paths(computation, rules)
    calls = rules.calls(computation)
    for one in reversed(computation.instructions):
        own = {id(one): _Target(one)}
        if last := calls.get(id(one)):
            targets[id(one)] = {id(last): _Target(last)}
            continue
        if one.traits.role is not Role.FUSIBLE:
            targets[id(one)] = own
            continue
        users = dict.fromkeys(user for value in one.results for user in value.users)
        into: dict[int, _Target] = {}
        is_kept = id(one) in returned
        for user in users:
            if id(user) in calls or not rules.takes(user, one):
                is_kept = True
                continue
            repeats = rules.repeats(user, one)
            for key, target in targets[id(user)].items():
                known = into.get(key)
                is_repeated = target.is_repeated or repeats or (known is not None and known.is_repeated)
                into[key] = _Target(target.instruction, is_repeated)
        if len(into) + is_kept > 1 and rules.is_branching(one):
            alone = {key: target for key, target in into.items() if _is_alone(target.instruction, one)}
            is_kept = is_kept or len(alone) < len(into)
            into = alone
        is_several = bool(into) and (is_kept or len(into) > 1)
        is_repeated = any(target.is_repeated for target in into.values())
        if (one.traits.is_expensive and is_repeated) or (is_several and not rules.may_repeat(one)):
            into, is_kept = {}, True
        elif len(users) > 1 and rules.is_whole_or_not(one) and not paths.all_fused(one, users, is_kept=is_kept):
            paths.kept.add(id(one))
            into, is_kept = {}, True
        targets[id(one)] = {**own, **into} if is_kept else into
    return targets


def _is_alone(user: Instruction, producer: Instruction) -> bool:
    return len(user.operands) == 1 and user.operands[0].definer is producer


class _Paths:
    """Whether all ways from an instruction to its users are fused.

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
        """The instructions that each one depends on, itself among them, as bits of a number."""
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
        """Whether an instruction can be fused into all its users, by all ways."""
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


def _read(kernel: Kernel, targets: _Targets) -> None:
    """Adds what a kernel reads, through the instructions that are fused into it."""
    last = kernel.instruction
    pending, seen = [(last, True)], {id(last)}
    while pending:
        one, is_elementwise = pending.pop()
        is_elementwise = is_elementwise and one.traits.is_elementwise
        for value in read_values(one):
            producer = value.definer
            role = producer.traits.role
            if role is Role.CONSTANT:
                kernel.reads_constants = True
                continue
            if producer is not last and id(last) in targets.get(id(producer), ()):
                if id(producer) not in seen:
                    seen.add(id(producer))
                    pending.append((producer, is_elementwise))
            else:
                kernel.reads[value] = kernel.reads.get(value, True) and is_elementwise
    kernel.reads_constants = kernel.reads_constants and len(seen) == 1


def _breadth_first(computation: Computation, made: Sequence[Kernel]) -> list[Kernel]:
    """The kernels in the order of XLA's `BFScheduler`: the users of what was run first come first."""
    constants = object()
    definers: dict[int, object] = {id(value): value for value in computation.parameters}
    definers.update((id(value), kernel) for kernel in made for value in kernel.instruction.results)
    waits: dict[int, int] = {}
    users: dict[int, list[Kernel]] = {}
    for kernel in made:
        read = {id(definers[id(value)]) for value in kernel.reads if id(value) in definers}
        if kernel.reads_constants:
            read.add(id(constants))
        waits[id(kernel)] = len(read)
        for one in read:
            users.setdefault(one, []).append(kernel)
    order: list[Kernel] = []
    ready: deque[object] = deque([*computation.parameters, constants])
    ready.extend(kernel for kernel in made if not waits[id(kernel)])
    while ready:
        first = ready.popleft()
        if isinstance(first, Kernel):
            order.append(first)
        for user in users.get(id(first), ()):
            waits[id(user)] -= 1
            if not waits[id(user)]:
                ready.append(user)
    _rank(made, definers)
    return order


def _rank(made: Sequence[Kernel], definers: Mapping[int, object]) -> None:
    """Ranks kernels depth-first from those that nothing reads, operands first."""
    read = {id(value) for kernel in made for value in kernel.reads}
    starts = [one for one in made if all(id(value) not in read for value in one.instruction.results)]
    seen: set[int] = set()
    rank = 0
    pending: list[tuple[Kernel, bool]] = [(one, False) for one in reversed(starts)]
    while pending:
        kernel, is_done = pending.pop()
        if is_done:
            kernel.rank = rank
            rank += 1
        elif id(kernel) not in seen:
            seen.add(id(kernel))
            pending.append((kernel, True))
            below = [definers.get(id(value)) for value in kernel.reads]
            pending.extend((one, False) for one in reversed(below) if isinstance(one, Kernel) and id(one) not in seen)
