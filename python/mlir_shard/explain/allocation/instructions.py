# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions that a compiler makes of a block of a local program, as far as memory depends on them.

Simplified as compilers do: equal instructions are one, what has constant operands alone is a constant, what only
changes the type is its operand, and what is not used is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from mlir_shard.explain.allocation.local_values import Block, LocalValues, Op, Signature, Tensor


class Role(Enum):
    """How an instruction takes part in fusion."""

    PARAMETER = auto()
    CONSTANT = auto()
    FUSIBLE = auto()
    OPAQUE = auto()


@dataclass(frozen=True, slots=True)
class Traits:
    """What memory depends on in operations of a signature.

    Attributes:
        role: in fusion.
        is_elementwise: whether an element of the result depends on the elements of operands at the same place.
        is_expensive: whether it is computed once, whatever it is fused into.
        is_folded: whether it is a constant where its operands are.
        is_pure: whether it is dropped when it is not used, and is one with those that are equal.
        is_collective: whether it communicates.
        updates: how many of its first operands are overwritten by results, one each.
    """

    role: Role
    is_elementwise: bool = False
    is_expensive: bool = False
    is_folded: bool = False
    is_pure: bool = True
    is_collective: bool = False
    updates: int = 0


class Rules(Protocol):
    """How a compiler treats operations."""

    def opens(self, name: str) -> bool:
        """Whether operations of a name run their regions, as loops do."""
        ...

    def traits(self, signature: Signature) -> Traits:
        """Returns the traits of the operations of a signature."""
        ...

    def is_view(self, op: Op, operands: Sequence[Tensor]) -> bool:
        """Whether each result of an operation is in the memory of the operand of its number."""
        ...


@dataclass(slots=True, eq=False)
class Instruction:
    """An instruction with its results.

    Attributes:
        op: the operation that it is of, None for a parameter.
        operands: the values that it reads, each as often as it is one.
        results: the values that it defines.
        blocks: the computations that it runs.
    """

    op: Op | None
    traits: Traits
    operands: list[Value]
    results: list[Value] = field(default_factory=list)
    blocks: list[Computation] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.op.name if self.op else ""


@dataclass(slots=True, eq=False)
class Value:
    """A result of an instruction; `users` has each instruction that reads it once, in order."""

    tensor: Tensor
    definer: Instruction
    users: list[Instruction] = field(default_factory=list)


@dataclass(slots=True)
class Computation:
    """The instructions of a block in order, its parameters, and what it returns."""

    parameters: list[Value]
    instructions: list[Instruction]
    returned: list[Value]


_PARAMETER = Traits(Role.PARAMETER)
_FOLDED = Traits(Role.CONSTANT)


class Reader:
    """Makes computations of the blocks of a program."""

    def __init__(self, program: LocalValues, rules: Rules) -> None:
        self._program, self._rules = program, rules
        self._traits: dict[int, Traits] = {}

    def computation(self, block: Block, outer: Mapping[int, Value] | None = None) -> Computation:
        """Returns the computation of a block; `outer` has the values around it."""
        known = dict(outer or {})
        parameters = [self._parameter(number) for number in block.arguments]
        known.update(zip(block.arguments, parameters, strict=True))
        made: list[Instruction] = []
        equal: dict[tuple[int, ...], Instruction] = {}
        for op in block.ops[:-1]:
            operands = [known[one] for one in op.operands]
            tensors = [self._program.tensors[one] for one in op.operands]
            if 0 < len(op.results) <= len(operands) and self._rules.is_view(op, tensors):
                known.update(zip(op.results, operands, strict=False))
                continue
            traits = self._traits_of(op.signature)
            key = (op.signature.number, *map(id, operands))
            is_kept = not traits.is_pure or op.blocks or op.captured
            instruction = None if is_kept else equal.get(key)
            if instruction is None:
                instruction = equal[key] = self._instruction(op, traits, operands, known)
                made.append(instruction)
            known.update(zip(op.results, instruction.results, strict=True))
        returned = [known[one] for one in block.ops[-1].operands] if block.ops else []
        return Computation(parameters, _used(parameters, made, returned), returned)

    def _parameter(self, number: int) -> Value:
        instruction = Instruction(None, _PARAMETER, [])
        value = Value(self._program.tensors[number], instruction)
        instruction.results.append(value)
        return value

    def _traits_of(self, signature: Signature) -> Traits:
        known = self._traits.get(signature.number)
        if known is None:
            known = self._traits[signature.number] = self._rules.traits(signature)
        return known

    def _instruction(self, op: Op, traits: Traits, operands: list[Value], known: Mapping[int, Value]) -> Instruction:
        operands = operands + [known[one] for one in dict.fromkeys(op.captured) if one in known]
        if traits.is_folded and all(one.definer.traits.role is Role.CONSTANT for one in operands):
            traits, operands = _FOLDED, []
        instruction = Instruction(op, traits, operands)
        instruction.results = [Value(tensor, instruction) for tensor in op.signature.results]
        instruction.blocks = [self.computation(block, known) for block in op.blocks]
        return instruction


def _used(parameters: Sequence[Value], made: Sequence[Instruction], returned: Sequence[Value]) -> list[Instruction]:
    """The instructions that are used, with the users of their values in the same computation."""
    wanted = {id(value.definer) for value in returned}
    kept: list[tuple[Instruction, list[Value]]] = []
    for instruction in reversed(made):
        if id(instruction) in wanted or not instruction.traits.is_pure:
            read = list(dict.fromkeys(read_values(instruction)))
            kept.append((instruction, read))
            wanted.update(id(value.definer) for value in read)
    kept.reverse()
    own = {id(value) for value in parameters}
    for instruction, read in kept:
        own.update(map(id, instruction.results))
        for value in read:
            if id(value) in own:
                value.users.append(instruction)
    return [instruction for instruction, _ in kept]


def read_values(instruction: Instruction) -> Iterator[Value]:
    """The operands of an instruction, and the values from outside that its computations read."""
    yield from instruction.operands
    for computation in instruction.blocks:
        own = {id(one) for inner in computation.instructions for one in inner.results}
        own.update(map(id, computation.parameters))
        for inner in computation.instructions:
            yield from (one for one in read_values(inner) if id(one) not in own)
        yield from (one for one in computation.returned if id(one) not in own)
