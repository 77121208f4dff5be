# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finding the operations of a name natively: what a pass that changes few of many operations goes over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard.asm.arrays import ModuleArrays


def numbers_where(arrays: ModuleArrays, is_wanted: Callable[[str], bool]) -> list[int]:
    """The numbers of the operations whose name is wanted, in pre-order."""
    wanted = {index for index, op in enumerate(arrays.representatives()) if is_wanted(op.name)}
    if not wanted:
        return []
    return [number for number, signature in enumerate(arrays.signatures) if signature in wanted]


def numbers_named(arrays: ModuleArrays, *names: str) -> list[int]:
    """The numbers of the operations that have one of the names, in pre-order."""
    return numbers_where(arrays, names.__contains__)


def operations_where(root: Any, is_wanted: Callable[[str], bool]) -> list[Any]:
    """The operations below `root` whose name is wanted, in pre-order."""
    arrays = ModuleArrays(root)
    return [arrays.operation(number) for number in numbers_where(arrays, is_wanted)]


def operations_named(root: Any, *names: str) -> list[Any]:
    """The operations below `root` that have one of the names, in pre-order."""
    return operations_where(root, names.__contains__)


def operations_named_in_post_order(root: Any, *names: str) -> list[Any]:
    """The operations below `root` that have one of the names, each after those inside it."""
    arrays = ModuleArrays(root)
    # Pre-order numbers the operations inside one right after it, so the last of them says where it ends.
    ends = list(range(len(arrays)))
    for number in reversed(ends):
        parent = arrays.parents[number]
        if parent >= 0:
            ends[parent] = max(ends[parent], ends[number])
    numbers = sorted(numbers_named(arrays, *names), key=lambda number: (ends[number], -number))
    return [arrays.operation(number) for number in numbers]
