# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The collectives in the text of a program that XLA has compiled, in the measure of `shard-communication-report`."""

from __future__ import annotations

import re
from math import prod

from mlir_shard.resharding.communication import CollectiveKind, Communication, GroupAxis, Received

_KINDS = {
    "all-gather": CollectiveKind.ALL_GATHER,
    "all-reduce": CollectiveKind.ALL_REDUCE,
    "all-to-all": CollectiveKind.ALL_TO_ALL,
    "collective-broadcast": CollectiveKind.BROADCAST,
    "collective-permute": CollectiveKind.COLLECTIVE_PERMUTE,
    "reduce-scatter": CollectiveKind.REDUCE_SCATTER,
}
_COLLECTIVE = re.compile(r"^ *(?:ROOT )?%?\S+ = (.*?) (" + "|".join(_KINDS) + r")(-start)?\((.*)$", re.MULTILINE)
_TENSOR = re.compile(r"\b(pred|bf16|[a-z]+\d+)\[([\d,]*)\]")
_ELEMENT_BYTES = re.compile(r"\d+$")


def hlo_collectives(text: str) -> list[Communication]:
    """In the order of the text. ValueError for those that begin in one instruction and end in another."""
    found = []
    for type_, name, start, rest in _COLLECTIVE.findall(text):
        if start:
            raise ValueError(f"an asynchronous {name} says in its type what goes in, too")
        tensors = [_tensor_bytes(*one) for one in _TENSOR.findall(type_)]
        result, element = sum(size for size, _ in tensors), min(element for _, element in tensors)
        found.append(_communication(_KINDS[name], result, element, rest))
    return found


def _communication(kind: CollectiveKind, result: int, element: int, attributes: str) -> Communication:
    if kind is CollectiveKind.COLLECTIVE_PERMUTE:
        pairs = re.findall(
            r"\{(\d+),(\d+)\}", attributes.partition("source_target_pairs=")[2].partition("}}")[0] + "}}"
        )
        moved = sum(source != target for source, target in pairs)
        received = Received(result if moved else 0, moved * result)
        return Communication(kind, (GroupAxis("", len(pairs)),), 1, result, result, element, received)
    groups, size = _groups(attributes)
    operand = result
    if kind is CollectiveKind.ALL_GATHER:
        operand = result // size
    elif kind is CollectiveKind.REDUCE_SCATTER:
        operand = result * size
    return Communication(kind, (GroupAxis("", size),), groups, operand, result, element)


def _groups(attributes: str) -> tuple[int, int]:
    """How many groups there are, and the devices of each."""
    if match := re.search(r"replica_groups=\[(\d+),(\d+)\]<=", attributes):
        return int(match[1]), int(match[2])
    if match := re.search(r"replica_groups=mesh\[(.*?)\] \{(.*?)\}", attributes):
        sizes = {name: int(number) for name, number in re.findall(r"'(\w+)'=(\d+)", match[1])}
        if re.search(r":\(", match[2]):
            raise ValueError(f"groups along a part of an axis: {match[0]}")
        size = prod(sizes[name] for name in re.findall(r"'(\w+)'", match[2]))
        return prod(sizes.values()) // size, size
    match = re.search(r"replica_groups=\{(\{.*?\})\}", attributes)
    if match is None:
        raise ValueError(f"a collective without groups: {attributes}")
    listed = re.findall(r"\{([\d,]*)\}", match[1])
    return len(listed), listed[0].count(",") + 1


def _tensor_bytes(element_type: str, sizes: str) -> tuple[int, int]:
    bits = _ELEMENT_BYTES.search(element_type)
    element = 1 if bits is None else -(-int(bits[0]) // 8)
    return element * prod(int(size) for size in sizes.split(",") if size), element
