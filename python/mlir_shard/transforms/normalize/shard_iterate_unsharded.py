# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `shard-iterate-unsharded`."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.values import defining_op, uses_of
from mlir_shard.passes.registry import FunctionPass, register
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.rules.stablehlo.layout import reshape_with_minor
from mlir_shard.transforms.accumulations import LOOP, last_op

_RESHAPE = "stablehlo.reshape"
_SLICE, _UPDATE = "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"
# Results that are read like the operand.
_SAME_ELEMENTS = ("stablehlo.convert", "stablehlo.optimization_barrier")


@register
class IterateUnsharded(FunctionPass):
    """Gives reshapes a sharding rule by which axes shard the dimensions that a loop iterates over last.

    `jax.lax.scan(step, init, batch.reshape(k, n // k, ...))` computes a batch in `k` steps. By the rule of the reshape,
    the axis of the batch shards the dimension of steps, although each step reads one element of it: its devices would
    send that element to all others in each step, and then compute the same. With the rule of this pass, the axis shards
    the elements of a step. The batch is resharded once, in which a device receives at most the size of its shard.

    A dimension is iterated over if the result of the reshape is an operand of a loop that does not change it, and the
    loop reads it by dynamic slices of size 1 only. The same holds for a loop that writes its results by dynamic updates
    of size 1, which a reshape then merges into those of the batch.
    """

    name = "shard-iterate-unsharded"
    summary = "Propagates shardings to the dimensions that a loop does not iterate over"
    needs = (LOOP,)

    def run(self, function: Any) -> bool:
        changed = False
        for op in operations_named(function, _RESHAPE):
            if sdy.SHARDING_RULE in op.attributes or not has_static_shapes(op):
                continue
            for side, dim in ((1, _read_dim(op.results[0])), (0, _written_dim(op.operands[0]))):
                rule = None if dim is None else reshape_with_minor(op, side, dim)
                if rule is not None:
                    op.attributes[sdy.SHARDING_RULE] = sdy.attribute(rule)
                    changed = True
                    break
        return changed


def _read_dim(value: Any) -> int | None:
    """Returns the dimension of a value of which loops read one element at a time; None if it has other uses."""
    found: set[int | None] = set()
    is_in_loop = False
    for user, number in uses_of(value):
        if user.name == LOOP:
            if uses_of(user.results[number]):
                return None
            is_in_loop = True
            for region in user.regions:
                found |= _dims_read_in(region.blocks[0].arguments[number])
        elif user.name in _SAME_ELEMENTS:
            dim = _read_dim(user.results[number])
            is_in_loop |= dim is not None
            found.add(dim)
        else:
            return None
    return found.pop() if is_in_loop and len(found) == 1 else None


def _dims_read_in(argument: Any) -> set[int | None]:
    """Returns the dimensions of an argument of a loop that slices take one element of; with None for other uses."""
    found: set[int | None] = set()
    for user, number in uses_of(argument):
        if user.name == _SLICE and not number:
            found.add(_single_dim(argument.type.shape, user.results[0].type.shape))
        elif user.name != "stablehlo.return" or number != ir.BlockArgument(argument).arg_number:
            found.add(None)
    return found


def _written_dim(value: Any) -> int | None:
    """Returns the dimension of a result of a loop of which each iteration writes one element; None if none is."""
    loop = defining_op(value, LOOP)
    if loop is None:
        return None
    number, body = ir.OpResult(value).result_number, loop.regions[1].blocks[0]
    update = defining_op(last_op(body).operands[number], _UPDATE)
    if update is None or update.operands[0] != body.arguments[number]:
        return None
    return _single_dim(value.type.shape, update.operands[1].type.shape)


def _single_dim(shape: Any, part: Any) -> int | None:
    """Returns the only dimension along which a part of a tensor is smaller, if its size is 1."""
    smaller = [dim for dim, size in enumerate(shape) if part[dim] != size]
    return smaller[0] if len(smaller) == 1 and part[smaller[0]] == 1 else None
