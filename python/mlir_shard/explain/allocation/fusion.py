# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which instructions are fused, so that they have no memory, and the order in which what is left is run."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mlir_shard.explain.allocation.instructions import Computation, Instruction, Role, Value, read_values


class FusionRules(Protocol):
    """What a compiler fuses."""

    is_breadth_first: bool
    """Whether an instruction is run as soon as what it reads is there, in place of in the order of the program."""

    def takes(self, user: Instruction, producer: Instruction) -> bool:
        """Whether a user may have a producer fused into it."""
        ...

    def may_repeat(self, one: Instruction, *, is_kept: bool) -> bool:
        """Whether an instruction is fused into several others, or, if it is kept in memory, into some of its users."""
        ...


@dataclass(slots=True, eq=False)
class Kernel:
    """An instruction that is run, with those that are fused into it.

    Attributes:
        instruction: the last of them, whose results it has.
        reads: the values in memory that it reads; True where that is by elementwise instructions alone, so that its
            result may be where such a value was.
    """

    instruction: Instruction
    reads: dict[Value, bool] = field(default_factory=dict)


_Targets = dict[int, dict[int, Instruction]]


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
    for one in reversed(computation.instructions):
        own = {id(one): one}
        into: dict[int, Instruction] = {}
        is_kept = id(one) in returned or one.traits.role is not Role.FUSIBLE
        if one.traits.role is Role.FUSIBLE:
            users = [user for value in one.results for user in value.users]
            for user in users:
                if rules.takes(user, one):
                    into.update(targets[id(user)])
                else:
                    is_kept = True
            if into and (is_kept or len(into) > 1) and not rules.may_repeat(one, is_kept=is_kept):
                into, is_kept = {}, True
        targets[id(one)] = {**own, **into} if is_kept else into
    return targets


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
                continue
            if role is Role.FUSIBLE and id(last) in targets.get(id(producer), ()):
                if id(producer) not in seen:
                    seen.add(id(producer))
                    pending.append((producer, is_elementwise))
            else:
                kernel.reads[value] = kernel.reads.get(value, True) and is_elementwise


def _breadth_first(computation: Computation, made: Sequence[Kernel]) -> list[Kernel]:
    """The kernels in the order of XLA's `BFScheduler`: the users of what was run first come first."""
    definers: dict[int, Kernel | Value] = {id(value): value for value in computation.parameters}
    definers.update((id(value), kernel) for kernel in made for value in kernel.instruction.results)
    waits: dict[int, int] = {}
    users: dict[int, list[Kernel]] = {}
    for kernel in made:
        read = {id(definers[id(value)]) for value in kernel.reads if id(value) in definers}
        waits[id(kernel)] = len(read)
        for one in read:
            users.setdefault(one, []).append(kernel)
    order: list[Kernel] = []
    ready: deque[Kernel | Value] = deque(computation.parameters)
    ready.extend(kernel for kernel in made if not waits[id(kernel)])
    while ready:
        first = ready.popleft()
        if isinstance(first, Kernel):
            order.append(first)
        for user in users.get(id(first), ()):
            waits[id(user)] -= 1
            if not waits[id(user)]:
                ready.append(user)
    return order
