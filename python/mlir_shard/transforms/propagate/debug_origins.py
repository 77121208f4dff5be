# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shardings that propagation starts from: constraints, manual computations, and the signatures of functions.

They count in this order where a value has several of them, as in Shardy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import shardable_value, sharding_of
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.propagation_edges import (
    computation_input_origin,
    computation_name,
    computation_output_origin,
    constraint_name,
    input_origin,
    output_origin,
)
from mlir_shard.transforms.operations import operations_named_in_post_order
from mlir_shard.transforms.propagate import debug_attributes


@dataclass(frozen=True, slots=True)
class Beginning:
    """A sharding that a value has or is asked to have, and what is said to be its origin."""

    value: Any
    sharding: TensorSharding | None
    origin: str


def name_origins(module: Any) -> list[Beginning]:
    """Gives all sharding constraints and manual computations of a module names, new ones where they have some.

    Returns what propagation starts from, the values being those that hold shardings (see `shardable_value`).
    """
    beginnings = [*_of_constraints(module), *_of_computations(module), *_of_functions(module)]
    holders = [(shardable_value(one.value), one) for one in beginnings]
    return [Beginning(holder, one.sharding, one.origin) for holder, one in holders if holder is not None]


def set_name(op: Any, name: str) -> None:
    """Says how origins call an op."""
    op.attributes[debug_attributes.SHARDING_ORIGIN_NAME] = ir.StringAttr.get(name, op.context)


def name_of(op: Any) -> str | None:
    """How origins call an op, None where they do not."""
    if debug_attributes.SHARDING_ORIGIN_NAME not in op.attributes:
        return None
    name: str = op.attributes[debug_attributes.SHARDING_ORIGIN_NAME].value
    return name


def _of_constraints(module: Any) -> Iterator[Beginning]:
    for number, op in enumerate(operations_named_in_post_order(module, "sdy.sharding_constraint")):
        name = constraint_name(number)
        set_name(op, name)
        asked = sharding_of(op.results[0])
        yield Beginning(op.results[0], asked, name)
        # One that asks for nothing, as between members of a group, is not why its operand has a sharding.
        if asked is not None and not (asked.is_fully_open and asked.is_fully_replicated):
            yield Beginning(op.operands[0], sharding_of(op.operands[0]), name)


def _of_computations(module: Any) -> Iterator[Beginning]:
    for number, op in enumerate(operations_named_in_post_order(module, "sdy.manual_computation")):
        name = computation_name(number)
        set_name(op, name)
        given = sdy.value(op.attributes["in_shardings"]).shardings
        for index, (argument, operand) in enumerate(zip(op.regions[0].blocks[0].arguments, op.operands, strict=True)):
            yield Beginning(argument, given[index], computation_input_origin(name, index))
            yield Beginning(operand, sharding_of(operand), computation_input_origin(name, index))
        for index, sharding in enumerate(sdy.value(op.attributes["out_shardings"]).shardings):
            yield Beginning(op.results[index], sharding, computation_output_origin(name, index))


def _of_functions(module: Any) -> Iterator[Beginning]:
    for function in module.operation.regions[0].blocks[0].operations:
        function = function.operation
        if function.name != "func.func" or not len(function.regions[0].blocks):
            continue
        block = function.regions[0].blocks[0]
        for index, argument in enumerate(block.arguments):
            yield Beginning(argument, sharding_of(argument), input_origin(index))
        for index, returned in enumerate(returned_values(block)):
            yield Beginning(returned, sdy.get_result_sharding(function, index), output_origin(index))


def returned_values(block: Any) -> Sequence[Any]:
    """What a block returns from its function; nothing where it ends otherwise."""
    last = block.operations[len(block.operations) - 1].operation
    return list(last.operands) if last.name == "func.return" else []
