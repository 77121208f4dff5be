# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A body that every device computes on its own values, on one device: each operation for all of them, then the next.

So where a collective is reached the operands of all devices are there. An operation that has the same operands on
several devices is computed once. Loops and branches that hold collectives are gone through by all devices together,
which needs what decides about them to be the same on all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mlir_shard.host import ir
from mlir_shard.runtime.collective_checks import error
from mlir_shard.runtime.stablehlo_collectives import on_one_device
from mlir_shard.runtime.stablehlo_collectives.processes import Processes

CALL, MANUAL, NAMED = "func.call", "sdy.manual_computation", "sdy.named_computation"
_BRANCHES = frozenset({"stablehlo.case", "stablehlo.if"})
_WHILE = "stablehlo.while"
_SHARED = frozenset({CALL, MANUAL, *on_one_device.COLLECTIVES})

Known = dict[Any, Any]
Values = list[list[Any]]


class Manual(Protocol):
    """Computes a manual computation in such a body, for the operands of each device."""

    def __call__(self, op: Any, devices: Sequence[int], operands: Values, known: Sequence[Known]) -> Values:
        """The results on each of `devices`, at the current insertion point."""
        ...


class BodiesInStep:
    """Bodies of one module. RunError at an operation that cannot be computed so."""

    def __init__(self, functions: Mapping[str, Any], processes: Processes, manual: Manual) -> None:
        self._functions = functions
        self._processes = processes
        self._manual = manual

    def results(self, block: Any, devices: Sequence[int], arguments: Values, known: Sequence[Known]) -> Values:
        """What a block returns on each device for its arguments there, at the current insertion point.

        known: for each device what stands for the values from around the block.
        """
        values = [
            dict(of_device) | dict(zip(block.arguments, given, strict=True))
            for of_device, given in zip(known, arguments, strict=True)
        ]
        *inner, terminator = [one.operation for one in block.operations]
        for op in inner:
            with op.location:
                computed = self._computed(op, devices, values)
            for of_device, results in zip(values, computed, strict=True):
                of_device.update(zip(op.results, results, strict=True))
        return [_mapped(terminator.operands, of_device) for of_device in values]

    def _computed(self, op: Any, devices: Sequence[int], known: list[Known]) -> Values:
        operands = [_mapped(op.operands, of_device) for of_device in known]
        if op.name in on_one_device.COLLECTIVES:
            return on_one_device.results(op, devices, operands, self._processes)
        if op.name == MANUAL:
            return self._manual(op, devices, operands, known)
        if not self._holds_collectives(op):
            return _copied(op, operands, known)
        if op.name == CALL:
            body = self._functions[op.attributes["callee"].value].regions[0].blocks[0]
            return self.results(body, devices, operands, [{} for _ in devices])
        if op.name == NAMED:
            return self.results(op.regions[0].blocks[0], devices, operands, known)
        if op.name in _BRANCHES:
            return self._branches(op, devices, operands, known)
        if op.name == _WHILE:
            return self._loop(op, devices, operands, known)
        raise error(f"'{op.name}' with collectives in it has no meaning on one device", op)

    def _holds_collectives(self, op: Any) -> bool:
        found = False

        def visit(one: Any) -> Any:
            nonlocal found
            if one.name == CALL:
                callee = self._functions.get(one.attributes["callee"].value)
                found = found or (callee is not None and any(map(self._holds_collectives, _inner(callee))))
            found = found or one.name in _SHARED - {CALL}
            return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

        op.walk(visit, ir.WalkOrder.PRE_ORDER)
        return found

    def _branches(self, op: Any, devices: Sequence[int], operands: Values, known: list[Known]) -> Values:
        (decides,) = _the_same(operands, op, "takes the same branch")
        types = [result.type for _ in devices for result in op.results]
        made = ir.Operation.create(op.name, types, [decides], regions=len(op.regions))
        for old, new in zip(op.regions, made.regions, strict=True):
            with ir.InsertionPoint(new.blocks.append()):
                returned = self.results(old.blocks[0], devices, [[] for _ in devices], known)
                _return([value for of_device in returned for value in of_device])
        count = len(op.results)
        return [list(made.results)[place * count : (place + 1) * count] for place in range(len(devices))]

    def _loop(self, op: Any, devices: Sequence[int], operands: Values, known: list[Known]) -> Values:
        """What all devices carry alike is carried once, so that it is seen that they stop at the same time."""
        alike = {index for index, of_devices in enumerate(zip(*operands, strict=True)) if _is_one(of_devices)}
        while True:
            made, differing = self._loop_carrying(op, devices, operands, known, alike)
            if not differing:
                return _spread(list(made.results), alike, len(op.operands), len(devices))
            made.erase()
            alike -= differing

    def _loop_carrying(
        self, op: Any, devices: Sequence[int], operands: Values, known: list[Known], alike: set[int]
    ) -> tuple[Any, set[int]]:
        """The loop, and what of `alike` is not carried alike."""
        count = len(op.operands)
        carried = _gathered(operands, alike, count)
        types = [value.type for value in carried]
        made = ir.Operation.create(op.name, types, carried, regions=2)
        returned: list[Values] = []
        for old, new in zip(op.regions, made.regions, strict=True):
            block = new.blocks.append(*types, arg_locs=[op.location] * len(types))
            with ir.InsertionPoint(block):
                arguments = _spread(list(block.arguments), alike, count, len(devices))
                returned.append(self.results(old.blocks[0], devices, arguments, known))
        conditions, values = returned
        differing = {index for index in alike if not _is_one([of_device[index] for of_device in values])}
        if not differing:
            (stops,) = _the_same(conditions, op, "goes around as often")
            for region, results in zip(made.regions, ([stops], _gathered(values, alike, count)), strict=True):
                with ir.InsertionPoint(region.blocks[0]):
                    _return(results)
        return made, differing


def _copied(op: Any, operands: Values, known: list[Known]) -> Values:
    """The results of copies of an operation, one for each different set of operands."""
    made: dict[tuple[Any, ...], list[Any]] = {}
    found = []
    from_around = _used_inside(op)
    for given, of_device in zip(operands, known, strict=True):
        key = (*given, *_mapped(from_around, of_device))
        if key not in made:
            copied = op.clone()
            _use(copied, of_device)
            made[key] = list(copied.results)
        found.append(made[key])
    return found


def _used_inside(op: Any) -> list[Any]:
    """What the regions of an operation use."""
    used: list[Any] = []

    def visit(one: Any) -> Any:
        if one != op:
            used.extend(one.operands)
        return ir.WalkResult.ADVANCE

    if len(op.regions):
        op.walk(visit)
    return used


def _use(op: Any, values: Mapping[Any, Any]) -> None:
    """Has an operation and what is in it use other values for those of the body it was copied from."""

    def visit(one: Any) -> Any:
        for index, operand in enumerate(one.operands):
            if operand in values:
                one.operands[index] = values[operand]
        return ir.WalkResult.ADVANCE

    op.walk(visit)


def _inner(function: Any) -> list[Any]:
    return [one.operation for block in function.regions[0].blocks for one in block.operations]


def _mapped(values: Sequence[Any], known: Known) -> list[Any]:
    return [known.get(value, value) for value in values]


def _is_one(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)


def _the_same(values: Values, op: Any, does: str) -> list[Any]:
    if not _is_one(values):
        wrong = f"it is not known whether each device {does}"
        raise error(f"'{op.name}' with collectives in it has no meaning on one device: {wrong}", op)
    return values[0]


def _gathered(values: Values, alike: set[int], count: int) -> list[Any]:
    """What devices carry, one after the other, with what is alike once."""
    return [of_device[index] for index in range(count) for of_device in (values[:1] if index in alike else values)]


def _spread(carried: Sequence[Any], alike: set[int], count: int, devices: int) -> Values:
    """For each device what it carries."""
    rest = iter(carried)
    by_index = []
    for index in range(count):
        by_index.append([next(rest)] * devices if index in alike else [next(rest) for _ in range(devices)])
    return [list(of_device) for of_device in zip(*by_index, strict=True)]


def _return(values: Sequence[Any]) -> None:
    ir.Operation.create("stablehlo.return", [], list(values))
