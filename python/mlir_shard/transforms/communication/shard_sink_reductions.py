# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds partial sums, or reduces them along dimensions, before devices combine them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import ADDITIONS, operations_named
from mlir_shard.ir.op_kinds import OpKinds, operations_of_results
from mlir_shard.ir.values import defining_op, has_one_use, users
from mlir_shard.passes.registry import Changes, ModulePass, register
from mlir_shard.rules.computed_bodies import is_zero, may_repeat_initial_values
from mlir_shard.rules.reduction import combiners_of_elements
from mlir_shard.transforms.accumulations import LINEAR, makers
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.communication.collective_forms import (
    AMONG,
    CHANNEL,
    GATHERS,
    REDUCES,
    adds,
    among,
    dim_of,
    num_bytes,
    reduction,
)
from mlir_shard.transforms.communication.communication_reading import CommunicationReader

_DOT = "stablehlo.dot_general"
_REDUCE = "stablehlo.reduce"
_bindings = host.module("_mlir_libs._stablehlo")


@dataclass(frozen=True, slots=True)
class _PartialSum:
    """A value that an all-reduce of partial sums can compute: an all-reduce, or a contraction of gathered operands.

    Ops that are linear in it may follow an all-reduce. collective: the all-reduce, or a gather, along the groups;
    gathers: the gathers that only the contraction uses.
    """

    op: Any
    collective: Any
    bytes_received: int
    gathers: tuple[Any, ...] = ()


@register
class SinkReductions(ModulePass):
    """Adds partial sums before they are reduced instead of after, so that one all-reduce replaces several.

    A contraction along a dimension on which both operands are gathered counts as such a sum: each device contracts its
    own shards. It is replaced if devices receive no more bytes in the all-reduce than in the collectives it replaces.
    Between an all-reduce and the addition may be transposes, reshapes and products with constants, and a summand may be
    zero, as in Python's `sum`.

    An all-reduce whose result is only reduced along a dimension, with the same combiner, is moved after that reduction.
    For example, in sums over the batch and then over positions, as in normalizations, only the last one is all-reduced.
    """

    name = "shard-sink-reductions"
    summary = "Adds partial sums before their reduction"
    needs = (*REDUCES, *GATHERS)

    def run(self, op: Any) -> bool | Changes:
        kinds = OpKinds(op, *REDUCES, *GATHERS, ignored=(CHANNEL,), neighbours=True)
        if not len(kinds):
            return False
        # By results, as the hash of an op changes with its operands.
        changed: dict[Any, Any] = {}
        reduced = {one.results[0] for one in kinds.where(_is_of_sum)}
        for one in kinds.where(_has_only_reduction):
            _sink_below_reductions(one, changed)
        for one in operations_of_results(op, ADDITIONS, REDUCES, 0, once=True, through=LINEAR):
            _sink_below_zero(one, reduced, changed)
        sums = (*REDUCES, *GATHERS)
        additions = operations_of_results(op, ADDITIONS, sums, 2, once=True, through=(*LINEAR, _DOT))
        _Sums(CommunicationReader(op), op, reduced, changed).sink_all(additions)
        return Changes(list(changed.values())) if changed else False


def _sink_below_reductions(collective: Any, changed: dict[Any, Any]) -> None:
    """Moves an all-reduce below the reductions that alone use its result, and adds the changed ops to `changed`."""
    while (op := _only_reduction(collective)) is not None:
        op.operands[0] = collective.operands[0]
        collective.move_after(op)
        collective.operands[0] = op.results[0]
        collective.results[0].set_type(op.results[0].type)
        op.results[0].replace_all_uses_except(collective.results[0], collective)
        changed |= {one.results[0]: one for one in (op, collective)}


def _sink_below_zero(addition: Any, reduced: set[Any], changed: dict[Any, Any]) -> None:
    """Moves an all-reduce below the addition of zero to it, as in `sum(gradients)`, so that more sums may be added."""
    for number in (0, 1):
        collective = _reduced_sum(addition.operands[number], reduced)
        if collective is not None and is_zero(addition.operands[1 - number]):
            _take_out(collective, changed)
            collective.move_after(addition)
            collective.operands[0] = addition.results[0]
            collective.results[0].set_type(addition.results[0].type)
            addition.results[0].replace_all_uses_except(collective.results[0], collective)
            changed |= {one.results[0]: one for one in (addition, collective)}
            return


def _is_of_sum(collective: Any) -> bool:
    """Returns whether an op is an all-reduce of one tensor by addition."""
    return collective.name in REDUCES and len(collective.operands) == 1 and adds(collective)


def _reduced_sum(value: Any, reduced: set[Any]) -> Any | None:
    """Returns the all-reduce whose sum is a value, possibly followed by ops that are linear in it, or None.

    `reduced` has the results of all such all-reduces.
    """
    for op in makers(value):
        if op.name in REDUCES:
            return op if op.results[0] in reduced else None
        if op.name not in LINEAR or num_bytes(op.operands[0].type) != num_bytes(value.type):
            return None
    return None


def _take_out(collective: Any, changed: dict[Any, Any]) -> None:
    """Replaces the result of an all-reduce by its operand."""
    for user in users(collective.results[0]):
        changed |= dict.fromkeys(user.results, user)
    collective.results[0].replace_all_uses_with(collective.operands[0])


def _has_only_reduction(collective: Any) -> bool:
    return collective.name in REDUCES and _reduction_behind(collective) is not None


def _only_reduction(collective: Any) -> Any | None:
    """Returns the only user of an all-reduce if it reduces dimensions with the same combiner; else None."""
    op = _reduction_behind(collective)
    # Each device would combine the initial value.
    return None if op is None or (op.name == _REDUCE and not may_repeat_initial_values(op)) else op


def _reduction_behind(collective: Any) -> Any | None:
    """Returns that reduction, for any initial values."""
    if len(collective.operands) != 1 or not has_one_use(collective.results[0]):
        return None
    (op,) = users(collective.results[0])
    is_reduction = op.name == _REDUCE or op.name.startswith("tosa.reduce_")
    if not is_reduction or op.block != collective.block or len(op.results) != 1:
        return None
    if op.operands[0] != collective.results[0] or combiners_of_elements(op) != (reduction(collective),):
        return None
    before, after = num_bytes(collective.results[0].type), num_bytes(op.results[0].type)
    return op if before is not None and after is not None and after < before else None


class _Sums:
    """Sums that are reduced in place of their summands.

    Args:
        reader: reads the bytes of collectives.
        root: the op that contains the sums.
        reduced: the results of all-reduces of one tensor by addition.
        changed: the changed ops, by their results.
    """

    def __init__(self, reader: CommunicationReader, root: Any, reduced: set[Any], changed: dict[Any, Any]) -> None:
        self._reader = reader
        self._root = root
        self._reduced = reduced
        self._changed = changed
        self._received: dict[Any, int] = {}

    @cached_property
    def _channels(self) -> Channels:
        return Channels.of(self._root)

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        """The numbers of additions in program order, by their results."""
        return {one.results[0]: number for number, one in enumerate(operations_named(self._root, *ADDITIONS))}

    def sink_all(self, additions: list[Any]) -> None:
        """Visits additions in order, including those whose operands are reduced only on the way."""
        left = deque(additions)
        # By number: an addition may add two sums that are reduced now.
        added: dict[int, Any] = {}
        while left or added:
            number = min(added, default=None)
            if number is None or (left and self._numbers[left[0].results[0]] < number):
                addition = left.popleft()
            else:
                addition = added.pop(number)
            reduced = self.sink(addition)
            if reduced is not None:
                found = [one for one in users(reduced) if one.name in ADDITIONS]
                added |= {self._numbers[one.results[0]]: one for one in found}

    def sink(self, addition: Any) -> Any | None:
        """Reduces the result of an addition instead of its operands, if this is possible and receives no more bytes.

        Returns the reduced result, or None.
        """
        # The destination of linalg.add is not a summand.
        left, right = (self._partial_sum(value) for value in list(addition.operands)[:2])
        if left is None or right is None or addition.operands[0].type != addition.results[0].type:
            return None
        if left.op == right.op or among(left.collective) != among(right.collective):
            return None
        # A value from outside of a loop is communicated once, and would be in each iteration.
        replaced = (one for part in (left, right) for one in (part.op, part.collective, *part.gathers))
        if any(one.block != addition.block for one in replaced):
            return None
        result = self._all_reduce(addition, left, right)
        if self._bytes_received(result.owner.operation) > left.bytes_received + right.bytes_received:
            result.owner.operation.erase()
            return None
        addition.results[0].replace_all_uses_except(result, result.owner.operation)
        for part in (left, right):
            if part.op.name in REDUCES:
                _take_out(part.op, self._changed)
                self._changed.pop(part.op.results[0], None)
                self._reduced.discard(part.op.results[0])
                part.op.erase()
            else:
                self._changed[part.op.results[0]] = part.op
                for side, gathered in enumerate(list(part.op.operands)):
                    part.op.operands[side] = gathered.owner.operation.operands[0]
                for gather in part.gathers:
                    gather.erase()
        self._changed |= {addition.results[0]: addition, result: result.owner.operation}
        self._reduced.add(result)
        return result

    def _all_reduce(self, addition: Any, left: _PartialSum, right: _PartialSum) -> Any:
        like = left.collective
        # The all-reduce serves the addition, and the ops that made the summands partial.
        location = ir.Location.fused([addition.location, left.op.location, right.op.location])
        attributes = {name: like.attributes[name] for name in AMONG if name in like.attributes}
        if CHANNEL in like.attributes:
            attributes[CHANNEL] = stablehlo.channel(self._channels.take())
        value = addition.results[0]
        with ir.InsertionPoint.after(addition), location:
            if like.name.startswith("shard."):
                return ir.Operation.create(REDUCES[0], [value.type], [value], attributes).results[0]
            return stablehlo.combining("all_reduce", value.type, [value], "add", **attributes)

    def _bytes_received(self, collective: Any) -> int:
        """Returns the bytes that a device receives, read once for the same devices and types."""
        key = (
            collective.name,
            among(collective),
            *(value.type for value in (*collective.operands, *collective.results)),
        )
        if key not in self._received:
            self._received[key] = self._reader.read(collective).bytes_received
        return self._received[key]

    def _partial_sum(self, value: Any) -> _PartialSum | None:
        if not has_one_use(value):
            return None
        reduce = _reduced_sum(value, self._reduced)
        if reduce is not None:
            return _PartialSum(reduce, reduce, self._bytes_received(reduce))
        dot = defining_op(value, _DOT)
        return None if dot is None else self._contraction(dot)

    def _contraction(self, dot: Any) -> _PartialSum | None:
        left, right = (defining_op(operand, *GATHERS) for operand in dot.operands)
        if left is None or right is None or left == right or among(left) != among(right):
            return None
        numbers = _bindings.DotDimensionNumbers(dot.attributes["dot_dimension_numbers"])
        contracted = zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True)
        if (dim_of(left), dim_of(right)) not in contracted:
            return None
        gathers = tuple(one for one in (left, right) if len(one.operands) == 1 and has_one_use(one.results[0]))
        return _PartialSum(dot, left, sum(map(self._bytes_received, gathers)), gathers)
