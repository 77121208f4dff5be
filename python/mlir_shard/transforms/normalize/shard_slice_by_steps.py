# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `shard-slice-by-steps`."""

from __future__ import annotations

from typing import Any, NamedTuple

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.values import defining_op, uses_of
from mlir_shard.passes.registry import FunctionPass, register
from mlir_shard.rules.computed_bodies import integer_of
from mlir_shard.transforms.accumulations import LOOP, Counter, counters, last_op
from mlir_shard.transforms.normalize.batching_indices import is_negative

_SLICE, _RETURN = "stablehlo.dynamic_slice", "stablehlo.return"


class _Block(NamedTuple):
    """The block of `size` elements of a dimension that begins at `size` times the counter of a loop."""

    dim: int
    size: int
    counter: Any


@register
class SliceBySteps(FunctionPass):
    """Replaces slices of equal blocks, one in each iteration of a loop, by slices of size 1 of a dimension of blocks.

    `jax.lax.dynamic_slice_in_dim(batch, i * size, size)` in a `jax.lax.fori_loop` takes the microbatches of a batch.
    The batch is reshaped before the loop, so that `shard-iterate-unsharded` applies to it. The size of a block has to
    divide that of the dimension, and the loop has to count from one constant to another.
    """

    name = "shard-slice-by-steps"
    summary = "Makes blocks that a loop slices one after the other a dimension"
    needs = (LOOP,)

    def run(self, function: Any) -> bool:
        changed = False
        for loop in operations_named(function, LOOP):
            known = {} if sdy.SHARDING in loop.attributes else counters(loop)
            for number in range(len(loop.operands)) if known else ():
                blocks = _blocks_of(loop, number, known)
                if blocks:
                    _reshape(loop, number, blocks)
                    changed = True
        return changed


def _blocks_of(loop: Any, number: int, known: dict[Any, Counter]) -> list[tuple[Any, _Block]]:
    """Returns the slices of value `number` of a loop, with their blocks; none if it has other uses, or they differ."""
    condition, body = (region.blocks[0] for region in loop.regions)
    argument, found = body.arguments[number], []
    if uses_of(condition.arguments[number]) or uses_of(loop.results[number]):
        return []
    if last_op(body).operands[number] != argument:
        return []
    for user, place in uses_of(argument):
        block = _block(user, known) if user.name == _SLICE and place == 0 else None
        if block is not None:
            found.append((user, block))
        elif user.name != _RETURN or user.block != body or place != number:
            return []
    return found if len({block[:2] for _, block in found}) == 1 else []


def _block(op: Any, known: dict[Any, Counter]) -> _Block | None:
    shape, part = op.operands[0].type.shape, op.results[0].type.shape
    cut = [dim for dim, size in enumerate(shape) if size != part[dim]]
    if len(cut) != 1 or part[cut[0]] < 2 or shape[cut[0]] % part[cut[0]]:
        return None
    (dim,) = cut
    size, start = part[dim], op.operands[1 + dim]
    # JAX adds the size of the dimension to a start that is negative.
    choice = defining_op(start, "stablehlo.select")
    if choice is not None:
        start = choice.operands[2]
        if not is_negative(choice.operands[0], start):
            return None
    product = defining_op(start, "stablehlo.multiply")
    if product is None:
        return None
    for counter, factor in (list(product.operands), list(product.operands)[::-1]):
        if counter in known and integer_of(factor) == size:
            # The product of a narrow type must not overflow.
            return _Block(dim, size, counter) if known[counter].last * size < 2 ** (_width(start) - 1) else None
    return None


def _width(value: Any) -> int:
    width: int = value.type.element_type.width
    return width


def _reshape(loop: Any, number: int, blocks: list[tuple[Any, _Block]]) -> None:
    dim, size, _ = blocks[0][1]
    value = loop.operands[number]
    shape = list(value.type.shape)
    shape[dim : dim + 1] = [shape[dim] // size, size]
    with ir.InsertionPoint(loop), value.location:
        loop.operands[number] = stablehlo.reshape(value, shape)
    type_ = loop.operands[number].type
    for one in (loop.results[number], *(region.blocks[0].arguments[number] for region in loop.regions)):
        one.set_type(type_)
    for op, block in blocks:
        starts = list(op.operands)[1:]
        with ir.InsertionPoint(op), op.location:
            zero = stablehlo.splat(block.counter.type, 0)
            starts[dim : dim + 1] = [block.counter, zero]
            sliced = stablehlo.dynamic_slice(op.operands[0], starts, [*shape[:dim], 1, *shape[dim + 1 :]])
            result = stablehlo.reshape(sliced, list(op.results[0].type.shape))
        if sdy.SHARDING in op.attributes:
            result.owner.operation.attributes[sdy.SHARDING] = op.attributes[sdy.SHARDING]
        op.results[0].replace_all_uses_with(result)
        op.erase()
