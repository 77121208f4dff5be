# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The collectives in the text of a program compiled by XLA, in the measure of `shard-communication-report`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from group_axes import axes_of_groups

from mlir_shard.resharding.cost.communication import CollectiveKind, Communication, GroupAxis, Received

_KINDS = {
    "all-gather": CollectiveKind.ALL_GATHER,
    "all-reduce": CollectiveKind.ALL_REDUCE,
    "all-to-all": CollectiveKind.ALL_TO_ALL,
    "collective-broadcast": CollectiveKind.BROADCAST,
    "collective-permute": CollectiveKind.COLLECTIVE_PERMUTE,
    "reduce-scatter": CollectiveKind.REDUCE_SCATTER,
}
_COLLECTIVE = re.compile(r"^ *(?:ROOT )?%?\S+ = (.*?) (" + "|".join(_KINDS) + r")(-start)?\((.*)$")
_TENSOR = re.compile(r"\b(pred|bf16|[a-z]+\d+)\[([\d,]*)\]")
_ELEMENT_BYTES = re.compile(r"\d+$")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) \(.*\{$")
_LOOP = re.compile(r" while\(.*body=%?([\w.-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CALLED = re.compile(r"(?:calls|to_apply)=%?([\w.-]+)")


def hlo_collectives(text: str, mesh: Mapping[str, int] | None = None) -> list[Communication]:
    """Returns the collectives in the order of the text, each once. Raises ValueError for asynchronous collectives.

    With `mesh`, groups along its axes have these axes in the result.
    """
    return [communication for _, communication in _found(text, mesh)]


def repeated_hlo_collectives(text: str, mesh: Mapping[str, int] | None = None) -> list[tuple[Communication, int]]:
    """Returns `hlo_collectives`, each with its number of executions in loops. Raises ValueError if that is unknown."""
    times = _times(text)
    return [(communication, times[computation]) for computation, communication in _found(text, mesh)]


def _found(text: str, mesh: Mapping[str, int] | None) -> list[tuple[str, Communication]]:
    """Returns the collectives, each with the name of its computation."""
    found, computation = [], ""
    for line in text.splitlines():
        if begins := _COMPUTATION.match(line):
            computation = begins[2]
        elif match := _COLLECTIVE.match(line):
            type_, name, start, rest = match.groups()
            if start:
                raise ValueError(f"an asynchronous {name} says in its type what goes in, too")
            tensors = [_tensor_bytes(*one) for one in _TENSOR.findall(type_)]
            result, element = sum(size for size, _ in tensors), min(element for _, element in tensors)
            found.append((computation, _communication(_KINDS[name], result, element, rest, mesh)))
    return found


def _times(text: str) -> dict[str, int]:
    """Returns the number of executions of each computation."""
    uses: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    computation = entry = ""
    for line in text.splitlines():
        if begins := _COMPUTATION.match(line):
            computation = begins[2]
            entry = computation if begins[1] else entry
        elif loop := _LOOP.search(line):
            trips = _TRIPS.search(line)
            if trips is None:
                raise ValueError(f"a loop that does not say how often it goes around: {line.strip()}")
            uses[computation].append((loop[1], int(trips[1])))
        else:
            uses[computation] += [(called, 1) for called in _CALLED.findall(line)]
    times: defaultdict[str, int] = defaultdict(int)

    def visit(name: str, count: int) -> None:
        times[name] += count
        for used, trips in uses[name]:
            visit(used, count * trips)

    visit(entry, 1)
    return times


def _communication(
    kind: CollectiveKind, result: int, element: int, attributes: str, mesh: Mapping[str, int] | None
) -> Communication:
    if kind is CollectiveKind.COLLECTIVE_PERMUTE:
        pairs = re.findall(
            r"\{(\d+),(\d+)\}", attributes.partition("source_target_pairs=")[2].partition("}}")[0] + "}}"
        )
        moved = sum(source != target for source, target in pairs)
        received = Received(result if moved else 0, moved * result)
        return Communication(kind, (GroupAxis("", len(pairs)),), 1, result, result, element, received)
    axes, groups = _groups(attributes, mesh)
    size = prod(axis.size for axis in axes)
    operand = result
    if kind is CollectiveKind.ALL_GATHER:
        operand = result // size
    elif kind is CollectiveKind.REDUCE_SCATTER:
        operand = result * size
    return Communication(kind, axes, groups, operand, result, element)


def _groups(attributes: str, mesh: Mapping[str, int] | None) -> tuple[tuple[GroupAxis, ...], int]:
    """Returns the axes of the groups, and the number of groups."""
    if match := re.search(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", attributes):
        count, size = int(match[1]), int(match[2])
        if mesh is None:
            return (GroupAxis("", size),), count
        devices = np.arange(count * size).reshape(tuple(map(int, match[3].split(","))))
        devices = devices.transpose(tuple(map(int, match[4].split(",")))) if match[4] else devices
        return axes_of_groups(devices.reshape(count, size), mesh), count
    if match := re.search(r"replica_groups=mesh\[(.*?)\](?:, device_ids=\((.*?)\)\)?)? \{(.*?)\}", attributes):
        sizes = {name: int(number) for name, number in re.findall(r"'(\w+)'=(\d+)", match[1])}
        if re.search(r":\(", match[3]):
            raise ValueError(f"groups along a part of an axis: {match[0]}")
        names = re.findall(r"'(\w+)'", match[3])
        size = prod(sizes[name] for name in names)
        if mesh is None:
            return (GroupAxis("", size),), prod(sizes.values()) // size
        # XLA's names of the axes are not those of `mesh`.
        numbers = [list(sizes).index(name) for name in names]
        devices = _device_ids(prod(sizes.values()), match[2]).reshape(tuple(sizes.values()))
        devices = np.moveaxis(devices, numbers, range(-len(numbers), 0))
        return axes_of_groups(devices.reshape(-1, size), mesh), devices.size // size
    match = re.search(r"replica_groups=\{(\{.*?\})\}", attributes)
    if match is None:
        raise ValueError(f"a collective without groups: {attributes}")
    listed = [list(map(int, one.split(","))) for one in re.findall(r"\{([\d,]+)\}", match[1])]
    axes = (GroupAxis("", len(listed[0])),) if mesh is None else axes_of_groups(listed, mesh)
    return axes, len(listed)


def _device_ids(count: int, order: str | None) -> Any:
    """Returns the devices of a mesh in its order, which is `[2,4]T(1,0)` for a transposed grid."""
    devices = np.arange(count)
    if order is None:
        return devices
    match = re.match(r"\[([\d,]+)\](?:T\(([\d,]+))?", order)
    if match is None:
        raise ValueError(f"devices in an order that is not a transposed grid: {order}")
    devices = devices.reshape(tuple(map(int, match[1].split(","))))
    return devices.transpose(tuple(map(int, match[2].split(",")))) if match[2] else devices


def _tensor_bytes(element_type: str, sizes: str) -> tuple[int, int]:
    bits = _ELEMENT_BYTES.search(element_type)
    element = 1 if bits is None else -(-int(bits[0]) // 8)
    return element * prod(int(size) for size in sizes.split(",") if size), element
