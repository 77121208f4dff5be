# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that a loop of StableHLO accumulates: it carries each from iteration to iteration, and only adds to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mlir_shard.host import ir
from mlir_shard.ir.values import defining_op, has_one_use, users, uses_of
from mlir_shard.rules.computed_bodies import constant_of, integer_of

LOOP = "stablehlo.while"
_ADD, _COMPARE = "stablehlo.add", "stablehlo.compare"
_MULTIPLY, _DIVIDE, _CONVERT = "stablehlo.multiply", "stablehlo.divide", "stablehlo.convert"
_BARRIER = "stablehlo.optimization_barrier"
_REARRANGED = (_CONVERT, "stablehlo.reshape", "stablehlo.transpose")
LINEAR = (_MULTIPLY, _DIVIDE, _CONVERT, "stablehlo.negate", "stablehlo.reshape", "stablehlo.transpose")


@dataclass(slots=True)
class Accumulation:
    """A value that a loop accumulates.

    Attributes:
        number: its number among the values that the loop carries.
        summands: the values that an iteration adds, in order.
        additions: the additions, from the last one; no others use their results.
    """

    number: int
    summands: list[Any] = field(default_factory=list)
    additions: list[Any] = field(default_factory=list)


def accumulations(loop: Any) -> Iterator[Accumulation]:
    """Yields the tensors that a loop accumulates."""
    return (one for number in range(len(loop.operands)) if (one := _accumulation(loop, number)) is not None)


def _accumulation(loop: Any, number: int) -> Accumulation | None:
    condition, body = (region.blocks[0] for region in loop.regions)
    argument = body.arguments[number]
    is_tensor = isinstance(argument.type, ir.RankedTensorType)
    if not is_tensor or list(condition.arguments[number].uses) or not has_one_use(argument):
        return None
    found, is_added_to = Accumulation(number), False
    left = [last_op(body).operands[number]]
    while left:
        value = left.pop()
        addition = defining_op(value, _ADD)
        if value == argument:
            is_added_to = True
        elif addition is not None and addition.block == body and has_one_use(value):
            found.additions.append(addition)
            left += reversed(list(addition.operands))
        else:
            found.summands.append(value)
    return found if is_added_to and found.additions else None


def makers(summand: Any) -> Iterator[Any]:
    """Yields the op that makes a summand, and those that make the operand in which each op before is linear.

    All are in the block of the addition, and nothing else uses their results.
    """
    value = summand
    while value is not None and has_one_use(value):
        (user,), op = users(value), defining_op(value)
        if op is None or op.block != user.block:
            return
        yield op
        value = _linear_operand(op)


def _linear_operand(op: Any) -> Any | None:
    """Returns the operand in which an op is linear, up to errors of rounding; None if it is in none."""
    if op.name not in LINEAR:
        return None
    operands, element = list(op.operands), op.results[0].type.element_type
    if op.name == _CONVERT:
        floats = operands[0].type.element_type, element
        is_wider = all(isinstance(one, ir.FloatType) for one in floats) and floats[0].width <= floats[1].width
        return operands[0] if is_wider else None
    if op.name == _DIVIDE:
        return operands[0] if isinstance(element, ir.FloatType) and constant_of(operands[1]) is not None else None
    if op.name == _MULTIPLY:
        factors = [one for one in operands if constant_of(one) is None]
        return factors[0] if len(factors) == 1 else None
    return operands[0]


def shared_values(loops: Iterable[Any]) -> dict[Any, int]:
    """Returns the values in loops that are the same in each iteration, with the number of iterations that share them.

    They are the arguments that a loop carries unchanged, and results of ops that only rearrange or convert such values.
    A loop comes after those around it. Values of one iteration, or of an unknown number, are left out.
    """
    found: dict[Any, int] = {}
    for loop in loops:
        count, body = iterations(loop) or 1, loop.regions[1].blocks[0]
        for argument, operand, after in zip(body.arguments, loop.operands, last_op(body).operands, strict=True):
            if argument == after and count > 1:
                _share(argument, count * found.get(operand, 1), found)
    return found


def _share(value: Any, count: int, found: dict[Any, int]) -> None:
    """Adds a value, and the results of ops of its block that only rearrange or convert it."""
    left = [value]
    while left:
        value = left.pop()
        found[value] = count
        for user, number in uses_of(value):
            if user.name == _BARRIER:
                left.append(user.results[number])
            elif user.name in _REARRANGED:
                left.append(user.results[0])


class Counter(NamedTuple):
    """The first and the last number of a value that a loop carries and increases by a constant in each iteration."""

    first: int
    last: int


def counters(loop: Any) -> dict[Any, Counter]:
    """Returns the arguments of the body of a loop that count from a constant of 0 or more, if `iterations` is known."""
    count, body = iterations(loop), loop.regions[1].blocks[0]
    found: dict[Any, Counter] = {}
    if not count:
        return found
    for number, operand in enumerate(loop.operands):
        first, step = integer_of(operand), _step(body, number)
        if first is not None and first >= 0 and step is not None:
            found[body.arguments[number]] = Counter(first, first + (count - 1) * step)
    return found


def iterations(loop: Any) -> int | None:
    """Returns the number of iterations of a loop that counts from one constant to another; None if it does not."""
    condition, body = (region.blocks[0] for region in loop.regions)
    compare = defining_op(last_op(condition).operands[0], _COMPARE)
    if compare is None or "LT" not in str(compare.attributes["comparison_direction"]):
        return None
    number = next((at for at, one in enumerate(condition.arguments) if one == compare.operands[0]), None)
    if number is None:
        return None
    first, last, step = integer_of(loop.operands[number]), integer_of(compare.operands[1]), _step(body, number)
    return None if first is None or last is None or step is None else max(0, -((first - last) // step))


def _step(body: Any, number: int) -> int | None:
    """Returns the positive constant that an iteration adds to a carried value; None if it is not one."""
    addition = defining_op(last_op(body).operands[number], _ADD)
    if addition is None or addition.operands[0] != body.arguments[number]:
        return None
    step = integer_of(addition.operands[1])
    return step if step is not None and step > 0 else None


def last_op(block: Any) -> Any:
    """Returns the last op of a block."""
    return block.operations[len(block.operations) - 1].operation
