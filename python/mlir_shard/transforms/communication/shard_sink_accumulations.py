# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reduces or gathers sums that a loop accumulates after the loop, not in each iteration."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import operations_named_in_post_order
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.rules.computed_bodies import is_zero
from mlir_shard.transforms.accumulations import LOOP, Accumulation, accumulations, last_op, makers
from mlir_shard.transforms.communication.collective_forms import GATHERS, REDUCES, adds, among, dim_of

_RETURN = "stablehlo.return"


@dataclass(frozen=True, slots=True)
class _Summand:
    """A summand, and the collective that makes it, possibly followed by linear ops; None for a local summand."""

    value: Any
    collective: Any | None = None

    @property
    def key(self) -> Hashable:
        """A key that summands share if they can be added before one collective for all."""
        one = self.collective
        return None if one is None else (one.name, among(one), dim_of(one))

    def take_before(self) -> Any:
        """Returns the summand without the collective, which is erased."""
        if self.collective is None:
            return self.value
        (operand,), (result,) = self.collective.operands, self.collective.results
        value = operand if self.value == result else self.value
        result.replace_all_uses_with(operand)
        self.collective.erase()
        return value


_Part = tuple[int, Callable[[Any], Any]]
"""The number of a value that the new loop carries, and a function that builds its collective after the loop."""


@register
class SinkAccumulations(ModulePass):
    """Moves all-reduces and all-gathers of summands that a `stablehlo.while` accumulates, so that they follow the loop.

    The accumulation of gradients adds the gradient of each microbatch, which is all-reduced, to a value that the loop
    carries. The pass adds the partial sums of each device in the loop, and all-reduces the result once. An all-gathered
    summand is accumulated before it is gathered, and added to the others after the loop. An initial value that is not
    zero is added after the loop.

    The accumulated value must have no other uses in the loop. Between the collective of a summand and the addition may
    be transposes, reshapes, products with constants, and conversions to wider floating-point types. A reduce-scatter
    stays, as each device would accumulate the sum of all shards. Communication increases only for a loop without
    iterations.
    """

    name = "shard-sink-accumulations"
    summary = "Reduces sums that loops accumulate after the loops"
    needs = (LOOP,)

    def run(self, op: Any) -> bool:
        # Inner loops come first: a collective after one may make a summand of the loop around it.
        changed = [_sink(loop) for loop in operations_named_in_post_order(op, LOOP)]
        return any(changed)


def _sink(loop: Any) -> bool:
    """Moves the collectives of all accumulated values after a loop; returns whether there are any."""
    found = [(one, _summands(one)) for one in accumulations(loop)]
    found = [(one, summands) for one, summands in found if summands.keys() - {None}]
    if not found:
        return False
    carried = _CarriedValues(loop)
    parts = {one.number: _carry(one, summands, carried) for one, summands in found}
    results = carried.rebuild()
    sums = dict(enumerate(results[: len(loop.results)]))
    with ir.InsertionPoint(loop):
        for number, of_one in parts.items():
            sums[number] = _sum([build(results[part]) for part, build in of_one])
    for number, value in sums.items():
        loop.results[number].replace_all_uses_with(value)
    loop.erase()
    return True


def _summands(one: Accumulation) -> dict[Hashable, list[_Summand]]:
    """Returns the summands by key."""
    found: dict[Hashable, list[_Summand]] = {}
    for value in one.summands:
        summand = _Summand(value, _collective_of(value))
        found.setdefault(summand.key, []).append(summand)
    return found


def _collective_of(summand: Any) -> Any | None:
    if not stablehlo.has_zero(summand.type.element_type):
        return None
    for op in makers(summand):
        if op.name in REDUCES and len(op.operands) == 1 and adds(op):
            return op
        # A linear op after a gather would apply to shards.
        if op.name in GATHERS and dim_of(op) is not None and op.results[0] == summand:
            return op
    return None


class _CarriedValues:
    """The values that a loop carries, which may change their type or become more, until the loop is built again."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._blocks = [region.blocks[0] for region in loop.regions]
        self._initial = list(loop.operands)
        self.yielded = list(last_op(self._blocks[1]).operands)

    def initial(self, number: int) -> Any:
        return self._initial[number]

    def accumulate(self, number: int | None, values: Iterable[Any]) -> int:
        """Accumulates values from zeros in place of a carried value, or in a new one; returns its number."""
        values = list(values)
        type_ = values[0].type
        if number is None:
            number = len(self._initial)
            for block in self._blocks:
                block.add_argument(type_, self._loop.location)
            self._initial.append(None)
            self.yielded.append(None)
        for block in self._blocks:
            block.arguments[number].set_type(type_)
        with ir.InsertionPoint(self._loop), self._loop.location:
            self._initial[number] = stablehlo.splat(type_, 0)
        self.add(number, values)
        return number

    def add(self, number: int, values: Iterable[Any]) -> int:
        """Makes the loop add values to a carried one; returns its number."""
        end = last_op(self._blocks[1])
        with ir.InsertionPoint(end):
            self.yielded[number] = _sum([self._blocks[1].arguments[number], *values])
        if number < len(end.operands):
            end.operands[number] = self.yielded[number]
        return number

    def rebuild(self) -> list[Any]:
        """Builds the loop with the carried values before the present one; returns the results."""
        loop = self._loop
        with ir.InsertionPoint(loop), loop.location:
            attributes = {name: loop.attributes[name] for name in loop.attributes}
            types = [value.type for value in self._initial]
            made = ir.Operation.create(LOOP, types, self._initial, attributes, regions=2)
        for region, block in zip(made.regions, self._blocks, strict=True):
            block.append_to(region)
        end = last_op(self._blocks[1])
        with ir.InsertionPoint(end), end.location:
            ir.Operation.create(_RETURN, operands=self.yielded)
        end.erase()
        return list(made.results)


def _carry(one: Accumulation, by_key: dict[Hashable, list[_Summand]], carried: _CarriedValues) -> list[_Part]:
    """Carries the sums of the summands of each key; returns the parts of the accumulated value."""
    parts: list[_Part] = []
    place: int | None = one.number
    local, initial = by_key.pop(None, []), carried.initial(one.number)
    if local:
        place = None
        parts.append((carried.add(one.number, [summand.value for summand in local]), lambda value: value))
    elif not is_zero(initial):
        parts.append((one.number, lambda _: initial))
    for summands in by_key.values():
        build = _builder_of(summands[0].collective)
        parts.append((carried.accumulate(place, [summand.take_before() for summand in summands]), build))
        place = None
    for addition in one.additions:
        addition.erase()
    return parts


def _builder_of(collective: Any) -> Callable[[Any], Any]:
    """Returns a function that builds a collective of another value like this one."""
    name, result, location = collective.name, collective.results[0].type, collective.location
    attributes = {name: collective.attributes[name] for name in collective.attributes}

    def build(value: Any) -> Any:
        with location:
            if name == REDUCES[1]:
                return stablehlo.combining("all_reduce", value.type, [value], "add", **attributes)
            type_ = value.type if name in REDUCES else result
            return ir.Operation.create(name, [type_], [value], attributes).results[0]

    return build


def _sum(values: list[Any]) -> Any:
    return reduce(_added, values)


def _added(left: Any, right: Any) -> Any:
    owner = right.owner
    with (owner.owner if isinstance(owner, ir.Block) else owner).location:
        return stablehlo.binary("add", left, right)
