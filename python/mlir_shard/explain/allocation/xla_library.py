# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of YNNPACK in programs of XLA:CPU: large reductions with the instructions around them.

Products and convolutions that are separate calls need no more memory than other instructions. A call grows from a
reduction over neighbors that the library supports, upwards over values without other uses, and downwards along single
uses, as in XLA's `LibraryRewriter`.
"""

from __future__ import annotations

from collections import deque

from mlir_shard.explain.allocation.instructions import Computation, Instruction
from mlir_shard.ir.op_names import op_names

LARGE = 4096
"""The least number of elements of an operand or the result of an instruction that the library computes."""
_TYPES = frozenset({"bf16", "f32", "f64", "i8", "ui8"})
_COMPUTED = frozenset(
    op_names(
        "stablehlo",
        "abs add ceil convert cosine divide exponential exponential_minus_one floor log log_plus_one logistic maximum "
        "minimum multiply negate power round_nearest_even rsqrt sign sine sqrt subtract tan tanh",
    )
)
_MOVED = frozenset({"view", *op_names("stablehlo", "broadcast_in_dim iota pad transpose")})
_PRODUCTS = frozenset(op_names("stablehlo", "dot dot_general"))
_REDUCTIONS = frozenset(op_names("stablehlo", "reduce reduce_window"))


def calls(computation: Computation) -> dict[int, Instruction]:
    """Returns the instructions that are part of calls, by `id`, each with the last one of its call."""
    returned = {id(value.definer) for value in computation.returned}
    found: dict[int, set[int]] = {}
    lasts: dict[int, Instruction] = {}
    taken: set[int] = set()
    for start in reversed(computation.instructions):
        if start.name in _REDUCTIONS and id(start) not in taken and is_reduced_by_library(start):
            members, last = _grown(start, taken, returned)
            taken.update(members)
            found[id(last)], lasts[id(last)] = members, last
    return {member: lasts[last] for last, members in found.items() for member in members}


def _is_product(one: Instruction) -> bool:
    """Returns whether a product is of two matrices of floats, or of small integers."""
    if len(one.results[0].tensor.shape) < 2 or one.operands[0].tensor.type not in _TYPES:
        return False
    rows, columns = one.results[0].tensor.shape[-2:]
    return rows != 1 and columns != 1


def is_reduced_by_library(one: Instruction) -> bool:
    """Returns whether the library supports a reduction."""
    given = one.operands[0].tensor
    return len(one.results) == 1 and given.elements >= LARGE and given.type in _TYPES


def _has(one: Instruction) -> bool:
    """Returns whether the library also computes a neighbor."""
    if one.name in _MOVED:
        return one.results[0].tensor.type in _TYPES
    if one.name in _PRODUCTS:
        return _is_product(one)
    if one.name in _REDUCTIONS:
        return is_reduced_by_library(one)
    if one.name not in _COMPUTED or len(one.operands) > 2:
        return False
    tensors = [value.tensor for value in (*one.results, *one.operands)]
    return all(tensor.type in _TYPES for tensor in tensors) and any(tensor.elements >= LARGE for tensor in tensors)


def _grown(start: Instruction, taken: set[int], returned: set[int]) -> tuple[set[int], Instruction]:
    members, last = {id(start)}, start
    inside = [start]
    has_changed = True
    while has_changed:
        has_changed = False
        above: deque[Instruction] = deque()
        seen: set[int] = set()

        def add_above(one: Instruction, above: deque[Instruction] = above, seen: set[int] = seen) -> None:
            for value in one.operands:
                definer = value.definer
                if id(definer) in members or id(definer) in taken or id(definer) in seen or id(definer) in returned:
                    continue
                users = [user for each in definer.results for user in each.users]
                if definer.op is not None and all(id(user) in members for user in users):
                    seen.add(id(definer))
                    above.append(definer)

        for member in inside:
            add_above(member)
        below = _only_user(last, returned)
        while above or below is not None:
            if above:
                one = above.popleft()
                if not _has(one):
                    continue
            else:
                assert below is not None
                one, below = below, None
                if id(one) in taken or id(one) in members or not _has(one):
                    continue
                last, below = one, _only_user(one, returned)
            members.add(id(one))
            inside.append(one)
            has_changed = True
            if one is not last:
                add_above(one)
    return members, last


def _only_user(one: Instruction, returned: set[int]) -> Instruction | None:
    users = list(dict.fromkeys(user for value in one.results for user in value.users))
    return users[0] if len(users) == 1 and id(one) not in returned else None
