# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that reused plans of isomorphic ops give what planning each op alone gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from mlir_shard.ir.editing import ops_below
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import PassFailure

Partition = Callable[[Any, bool], None]


def verify_repetition() -> Any:
    """The option `verify-repetition` of a pass or pipeline."""
    return option(False, "plan each op alone as well, and fail where an op becomes something else by a reused plan")


def partition_verified(module: Any, partition: Partition) -> None:
    """Partitions `module` with plans reused, a copy of it without, and raises PassFailure at the first difference.

    Args:
        module: the `ir.Operation` of a module.
        partition: partitions a module in place; its second argument says whether plans are reused.
    """
    names = {str(op.location): op.name for op in ops_below(module)}
    alone = module.operation.clone().operation
    partition(alone, False)
    partition(module, True)
    numbers: tuple[dict[Any, int], dict[Any, int]] = {}, {}
    for reused, single in zip_longest(list(ops_below(module)), list(ops_below(alone))):
        if reused is not None and single is not None and _text(reused, numbers[0]) == _text(single, numbers[1]):
            continue
        shown = single or reused
        name = names.get(str(shown.location), shown.name)
        made = ["nothing" if one is None else f"'{one.name}'" for one in (reused, single)]
        raise PassFailure(
            f"'{name}' op becomes something else by the plan of an op like it ({made[0]}) than planned alone "
            f"({made[1]}): a rule that is registered as pure looks at more than isomorphic ops agree in",
            shown.location,
        )


def _text(op: Any, numbers: dict[Any, int]) -> tuple[Any, ...]:
    """What an operation is but for its regions' contents, with values numbered in the order in which they come."""
    for value in (*op.results, *(one for region in op.regions for block in region.blocks for one in block.arguments)):
        numbers.setdefault(value, len(numbers))
    return (
        op.name,
        str(op.location),
        tuple((name, str(op.attributes[name])) for name in op.attributes),
        tuple(numbers.setdefault(value, len(numbers)) for value in op.operands),
        tuple(str(value.type) for value in op.results),
        tuple(tuple(str(one.type) for one in block.arguments) for region in op.regions for block in region.blocks),
    )
