# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions that a compiler makes from a block of a local program, as far as memory depends on them.

They are simplified as in compilers: equal instructions are merged, an instruction on constants alone is a constant, an
instruction that only changes the type is replaced by its operand, and unused ones are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from mlir_shard.explain.allocation.local_values import Block, LocalValues, Op, Signature, Tensor


class Role(Enum):
    """The role of an instruction in fusion."""

    PARAMETER = auto()
    CONSTANT = auto()
    FUSIBLE = auto()
    OPAQUE = auto()


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of an instruction that memory depends on.

    Attributes:
        role: the role in fusion.
        is_elementwise: whether an element of the result depends on the elements of operands at the same place.
        is_expensive: whether fusion must not repeat its computation.
        is_folded: whether it is a constant if its operands are constants.
        is_pure: whether it is dropped if it is unused, and merged with equal ones.
        is_collective: whether it communicates.
        is_view: whether its result is in the memory of its operand, unless that is fused into it.
        updates: the number of first operands that are overwritten by results, one each.
        fills: whether the second operand is computed at its place in the result, unless it has other users.
    """

    role: Role
    is_elementwise: bool = False
    is_expensive: bool = False
    is_folded: bool = False
    is_pure: bool = True
    is_collective: bool = False
    is_view: bool = False
    updates: int = 0
    fills: bool = False


class Emit(Protocol):
    """A function that makes an instruction for the operation being read, or finds an equal one; returns its results."""

    def __call__(
        self, name: str, traits: Traits, operands: Sequence[Value], tensors: Sequence[Tensor], key: object = None
    ) -> list[Value]:
        """Returns the results; instructions of one name with equal keys, operands and types of results are equal."""
        ...


class Rules(Protocol):
    """The rules of a compiler for operations."""

    def opens(self, name: str) -> bool:
        """Returns whether operations of a name run their regions, as loops do."""
        ...

    def traits(self, signature: Signature) -> Traits:
        """Returns the traits of the operations of a signature."""
        ...

    def expand(self, op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
        """Returns the results of an operation that is expanded to several instructions or dropped; None for others.

        Args:
            op: the operation.
            operands: the values of its operands.
            tensors: their types in the program, which may have other shapes than the values.
            emit: makes an instruction.
        """
        ...


@dataclass(slots=True, eq=False)
class Instruction:
    """An instruction with its results.

    Attributes:
        op: the operation that it comes from; None for a parameter.
        name: the name of the operation, or of an instruction that the operation is expanded to.
        operands: the values that it reads, with repetitions.
        results: the values that it defines.
        blocks: the computations that it runs.
    """

    op: Op | None
    name: str
    traits: Traits
    operands: list[Value]
    results: list[Value] = field(default_factory=list)
    blocks: list[Computation] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Value:
    """A result of an instruction; `users` has each instruction that reads it once, in order."""

    tensor: Tensor
    definer: Instruction
    users: list[Instruction] = field(default_factory=list)


@dataclass(slots=True)
class Computation:
    """The instructions of a block in order, its parameters, and the values that it returns."""

    parameters: list[Value]
    instructions: list[Instruction]
    returned: list[Value]


_PARAMETER = Traits(Role.PARAMETER)
_FOLDED = Traits(Role.CONSTANT)


class Reader:
    """A reader of the blocks of a program as computations."""

    def __init__(self, program: LocalValues, rules: Rules) -> None:
        self._program, self._rules = program, rules
        self._traits: dict[int, Traits] = {}

    def computation(self, block: Block, outer: Mapping[int, Value] | None = None) -> Computation:
        """Returns the computation of a block; `outer` has the values defined around it."""
        known = dict(outer or {})
        parameters = [self._parameter(number) for number in block.arguments]
        known.update(zip(block.arguments, parameters, strict=True))
        made: list[Instruction] = []
        equal: dict[tuple[object, ...], Instruction] = {}
        tensors = self._program.tensors
        for op in block.ops[:-1]:
            operands = [known[one] for one in op.operands]

            def emit(
                name: str,
                traits: Traits,
                operands: Sequence[Value],
                tensors: Sequence[Tensor],
                key: object = None,
                op: Op = op,
            ) -> list[Value]:
                if traits.is_folded and all(one.definer.traits.role is Role.CONSTANT for one in operands):
                    traits = _FOLDED
                named = (name, key, tuple(tensors), *map(id, operands))
                found = equal.get(named)
                if found is None:
                    found = equal[named] = _made(op, name, traits, operands, tensors)
                    made.append(found)
                return found.results

            results = self._rules.expand(op, operands, [tensors[one] for one in op.operands], emit)
            if results is None:
                traits = self._traits_of(op.signature)
                if traits.is_pure and not op.blocks and not op.captured:
                    results = emit(op.name, traits, operands, op.signature.results, op.signature.number)
                else:
                    operands = operands + [known[one] for one in dict.fromkeys(op.captured) if one in known]
                    instruction = _made(op, op.name, traits, operands, op.signature.results)
                    instruction.blocks = [self.computation(inner, known) for inner in op.blocks]
                    made.append(instruction)
                    results = instruction.results
            known.update(zip(op.results, results, strict=False))
        returned = [known[one] for one in block.ops[-1].operands] if block.ops else []
        return Computation(parameters, _used(parameters, made, returned), returned)

    def _parameter(self, number: int) -> Value:
        (value,) = _made(None, "parameter", _PARAMETER, [], [self._program.tensors[number]]).results
        return value

    def _traits_of(self, signature: Signature) -> Traits:
        known = self._traits.get(signature.number)
        if known is None:
            known = self._traits[signature.number] = self._rules.traits(signature)
        return known


def _made(
    op: Op | None, name: str, traits: Traits, operands: Sequence[Value], tensors: Sequence[Tensor]
) -> Instruction:
    made = Instruction(op, name, traits, [] if traits.role is Role.CONSTANT else list(operands))
    made.results = [Value(tensor, made) for tensor in tensors]
    return made


def _used(parameters: Sequence[Value], made: Sequence[Instruction], returned: Sequence[Value]) -> list[Instruction]:
    """Returns the instructions that are used, and adds them to the users of values of the same computation."""
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
    """Yields the operands of an instruction, and the outer values that its computations read."""
    yield from instruction.operands
    for computation in instruction.blocks:
        own = {id(one) for inner in computation.instructions for one in inner.results}
        own.update(map(id, computation.parameters))
        for inner in computation.instructions:
            yield from (one for one in read_values(inner) if id(one) not in own)
        yield from (one for one in computation.returned if id(one) not in own)
