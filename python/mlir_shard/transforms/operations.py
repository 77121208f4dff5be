# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finding the operations of a name natively: what a pass that changes few of many operations goes over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard.asm.module import native_host
from mlir_shard.host import ir

ADDITIONS = ("arith.addf", "arith.addi", "linalg.add", "stablehlo.add", "tosa.add")


def first_names(root: Any) -> list[str]:
    """The names of the operations below `root`, each once, in the order in which they first come."""
    return [op.name for op in _operations(native_host().first_operations(root.operation._CAPIPtr))]


def operations_where(root: Any, is_wanted: Callable[[str], bool]) -> list[Any]:
    """The operations below `root` whose name is wanted, in pre-order; asked once per name."""
    names = [name for name in first_names(root) if is_wanted(name)]
    return operations_named(root, *names) if names else []


def operations_named(root: Any, *names: str) -> list[Any]:
    """The operations below `root` that have one of the names, in pre-order."""
    return _operations(native_host().operations_named(root.operation._CAPIPtr, names, post_order=False))


def operations_named_in_post_order(root: Any, *names: str) -> list[Any]:
    """The operations below `root` that have one of the names, each after those inside it."""
    return _operations(native_host().operations_named(root.operation._CAPIPtr, names, post_order=True))


def operations_with(root: Any, attribute: str) -> list[Any]:
    """`root` and the operations below it that have a discardable attribute of that name, in pre-order."""
    uses = native_host().attribute_uses(root.operation._CAPIPtr, [(attribute, False)], [])
    # The other places are the arguments and results in a function's signature.
    return [ir.Operation._CAPICreate(capsule) for capsule, _, place, _ in uses if place == 0]


def _operations(capsules: list[Any]) -> list[Any]:
    return [ir.Operation._CAPICreate(capsule) for capsule in capsules]
