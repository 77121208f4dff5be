# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the body of a manual computation for one device: each operation for all devices, then the next operation.

Thus the operands of all devices are available at a collective, which becomes data movement.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import ops_below, ops_in, use_values
from mlir_shard.runtime.collectives import stablehlo_devices
from mlir_shard.runtime.collectives.point_to_point import error
from mlir_shard.runtime.collectives.stablehlo_calls import Reduction
from mlir_shard.runtime.collectives.stablehlo_devices import Groups, Processes

# Returns the results of an operation on a group of devices, given the values of an operand on them, in order.
_InGroup = Callable[[Any, Sequence[Any]], Sequence[Any]]
ValuesOfDevices = Sequence[Sequence[Any]]


def collective_results(
    op: Any, devices: Sequence[int], operands: ValuesOfDevices, processes: Processes
) -> list[list[Any]]:
    """Returns the results of a collective on each of `devices` for its operands there, at the current insertion point.

    Raises RunError if a group contains both these and other devices.
    """
    if op.name in _NUMBERS:
        numbers = [_NUMBERS[op.name](processes, device) for device in devices]
        element_type = op.results[0].type.element_type
        return [[stablehlo.reshape(stablehlo.numbers([number], element_type), [])] for number in numbers]
    by_operand = [[of_device[index] for of_device in operands] for index in range(len(op.operands))]
    if op.name == "stablehlo.collective_permute":
        found = [_permuted(op, devices, values, processes) for values in by_operand]
    else:
        groups = _groups_among(op, stablehlo_devices.groups_of(op, processes), devices)
        found = [_in_groups(op, devices, values, groups) for values in by_operand]
    return [list(of_device) for of_device in zip(*found, strict=True)]


def _groups_among(op: Any, groups: Groups, devices: Sequence[int]) -> Groups:
    among = []
    for group in groups:
        members = [device for device in group if device in devices]
        if members and len(members) != len(group):
            raise error(f"'{op.name}' communicates along axes that are not manual: {list(group)}", op)
        if members:
            among.append(group)
    return tuple(among)


def _in_groups(op: Any, devices: Sequence[int], values: Sequence[Any], groups: Groups) -> list[Any]:
    by_device: dict[int, Any] = {}
    for group in groups:
        of_group = [values[devices.index(device)] for device in group]
        by_device.update(zip(group, _IN_GROUPS[op.name](op, of_group), strict=True))
    # Devices in no group receive zeros.
    return [
        by_device[device] if device in by_device else stablehlo.splat(value.type, 0)
        for device, value in zip(devices, values, strict=True)
    ]


def _permuted(op: Any, devices: Sequence[int], values: Sequence[Any], processes: Processes) -> list[Any]:
    pairs = stablehlo_devices.pairs_of(op, processes)
    for pair in pairs:
        if (pair[0] in devices) != (pair[1] in devices):
            raise error(f"'{op.name}' communicates along axes that are not manual: {list(pair)}", op)
    senders = {receiver: sender for sender, receiver in pairs}
    return [
        values[devices.index(senders[device])] if device in senders else stablehlo.splat(value.type, 0)
        for device, value in zip(devices, values, strict=True)
    ]


def _all_gather(op: Any, values: Sequence[Any]) -> list[Any]:
    return [stablehlo.concatenate(values, op.attributes["all_gather_dim"].value)] * len(values)


def _all_to_all(op: Any, values: Sequence[Any]) -> list[Any]:
    split, concat = (op.attributes[f"{name}_dimension"].value for name in ("split", "concat"))
    blocks = [_blocks(value, split, len(values)) for value in values]
    return [stablehlo.concatenate([of_sender[place] for of_sender in blocks], concat) for place in range(len(values))]


def _all_reduce(op: Any, values: Sequence[Any]) -> list[Any]:
    return [_reduced(op, values)] * len(values)


def _reduce_scatter(op: Any, values: Sequence[Any]) -> list[Any]:
    return _blocks(_reduced(op, values), op.attributes["scatter_dimension"].value, len(values))


def _broadcast(op: Any, values: Sequence[Any]) -> list[Any]:
    return [values[0]] * len(values)


def _reduced(op: Any, values: Sequence[Any]) -> Any:
    reduction = Reduction(op)
    return functools.reduce(reduction.combined, map(reduction.promoted, values))


def _blocks(value: Any, dim: int, count: int) -> list[Any]:
    shape = list(value.type.shape)
    size = shape[dim] // count
    found = []
    for place in range(count):
        starts = [place * size if one == dim else 0 for one in range(len(shape))]
        limits = [(place + 1) * size if one == dim else extent for one, extent in enumerate(shape)]
        found.append(stablehlo.slice_(value, starts, limits))
    return found


_IN_GROUPS: dict[str, _InGroup] = {
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _broadcast,
    "stablehlo.cross-replica-sum": _all_reduce,
    "stablehlo.reduce_scatter": _reduce_scatter,
}
_NUMBERS: dict[str, Callable[[Processes, int], int]] = {
    "stablehlo.partition_id": Processes.partition_of,
    "stablehlo.replica_id": Processes.replica_of,
}
COLLECTIVES = frozenset((*_IN_GROUPS, *_NUMBERS, "stablehlo.collective_permute"))
"""The operations that `collective_results` computes."""
CALL = "func.call"
MANUAL = "sdy.manual_computation"
NAMED = "sdy.named_computation"
_BRANCHES = frozenset({"stablehlo.case", "stablehlo.if"})
_WHILE = "stablehlo.while"
_SHARED = frozenset({CALL, MANUAL, *COLLECTIVES})
Known = dict[Any, Any]
Values = list[list[Any]]


class Manual(Protocol):
    """A function that builds a manual computation in such a body, for the operands of each device."""

    def __call__(self, op: Any, devices: Sequence[int], operands: Values, known: Sequence[Known]) -> Values:
        """Returns the results on each of `devices`, at the current insertion point."""
        ...


class BodiesInStep:
    """The builder of bodies of one module. It raises RunError at an operation that one device cannot compute."""

    def __init__(self, functions: Mapping[str, Any], processes: Processes, manual: Manual) -> None:
        self._functions = functions
        self._processes = processes
        self._manual = manual

    def results(self, block: Any, devices: Sequence[int], arguments: Values, known: Sequence[Known]) -> Values:
        """Returns the results of a block on each device for its arguments there, at the current insertion point.

        known: for each device the replacements of values defined outside the block.
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
        if op.name in COLLECTIVES:
            return collective_results(op, devices, operands, self._processes)
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
        raise error(f"'{op.name}' with collectives cannot run on one device", op)

    def _holds_collectives(self, op: Any) -> bool:
        for one in ops_in(op):
            callee = self._functions.get(one.attributes["callee"].value) if one.name == CALL else None
            if one.name in _SHARED - {CALL} or (callee is not None and self._holds_collectives(callee)):
                return True
        return False

    def _branches(self, op: Any, devices: Sequence[int], operands: Values, known: list[Known]) -> Values:
        (decides,) = _the_same(operands, op, "take different branches")
        types = [result.type for _ in devices for result in op.results]
        made = ir.Operation.create(op.name, types, [decides], regions=len(op.regions))
        for old, new in zip(op.regions, made.regions, strict=True):
            with ir.InsertionPoint(new.blocks.append()):
                returned = self.results(old.blocks[0], devices, [[] for _ in devices], known)
                _return([value for of_device in returned for value in of_device])
        count = len(op.results)
        return [list(made.results)[place * count : (place + 1) * count] for place in range(len(devices))]

    def _loop(self, op: Any, devices: Sequence[int], operands: Values, known: list[Known]) -> Values:
        """Returns the results of a loop. Uniform values are carried once, so that all devices stop together."""
        uniform = {index for index, of_devices in enumerate(zip(*operands, strict=True)) if _is_one(of_devices)}
        while True:
            made, differing = self._loop_carrying(op, devices, operands, known, uniform)
            if not differing:
                return _spread(list(made.results), uniform, len(op.operands), len(devices))
            made.erase()
            uniform -= differing

    def _loop_carrying(
        self, op: Any, devices: Sequence[int], operands: Values, known: list[Known], uniform: set[int]
    ) -> tuple[Any, set[int]]:
        """Returns the loop, and the indices in `uniform` of values that diverge in it."""
        count = len(op.operands)
        carried = _gathered(operands, uniform, count)
        types = [value.type for value in carried]
        made = ir.Operation.create(op.name, types, carried, regions=2)
        returned: list[Values] = []
        for old, new in zip(op.regions, made.regions, strict=True):
            block = new.blocks.append(*types, arg_locs=[op.location] * len(types))
            with ir.InsertionPoint(block):
                arguments = _spread(list(block.arguments), uniform, count, len(devices))
                returned.append(self.results(old.blocks[0], devices, arguments, known))
        conditions, values = returned
        differing = {index for index in uniform if not _is_one([of_device[index] for of_device in values])}
        if not differing:
            (stops,) = _the_same(conditions, op, "run different numbers of iterations")
            for region, results in zip(made.regions, ([stops], _gathered(values, uniform, count)), strict=True):
                with ir.InsertionPoint(region.blocks[0]):
                    _return(results)
        return made, differing


def _copied(op: Any, operands: Values, known: list[Known]) -> Values:
    """Returns the results of copies of an operation, one for each distinct list of operands."""
    made: dict[tuple[Any, ...], list[Any]] = {}
    found = []
    from_around = [operand for one in ops_below(op) for operand in one.operands]
    for given, of_device in zip(operands, known, strict=True):
        key = (*given, *_mapped(from_around, of_device))
        if key not in made:
            copied = op.clone()
            use_values(copied, of_device)
            made[key] = list(copied.results)
        found.append(made[key])
    return found


def _mapped(values: Sequence[Any], known: Known) -> list[Any]:
    return [known.get(value, value) for value in values]


def _is_one(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)


def _the_same(values: Values, op: Any, does: str) -> list[Any]:
    if not _is_one(values):
        wrong = f"devices may {does}"
        raise error(f"'{op.name}' with collectives cannot run on one device: {wrong}", op)
    return values[0]


def _gathered(values: Values, uniform: set[int], count: int) -> list[Any]:
    """Returns the values that a loop carries: each value of all devices, or once if it is uniform."""
    return [of_device[index] for index in range(count) for of_device in (values[:1] if index in uniform else values)]


def _spread(carried: Sequence[Any], uniform: set[int], count: int, devices: int) -> Values:
    """Returns the carried values of each device."""
    rest = iter(carried)
    by_index = []
    for index in range(count):
        by_index.append([next(rest)] * devices if index in uniform else [next(rest) for _ in range(devices)])
    return [list(of_device) for of_device in zip(*by_index, strict=True)]


def _return(values: Sequence[Any]) -> None:
    ir.Operation.create("stablehlo.return", [], list(values))
