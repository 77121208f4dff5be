# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves all-gathers behind elementwise ops, and to the narrower type of a cast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import shard, stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.ir.values import defining_op, element_size, users
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.rules import RuleCache
from mlir_shard.transforms.communication.collective_forms import (
    GATHERS,
    OnBlock,
    among,
    dim_of,
    num_bytes,
    on_block,
    received_bytes,
)
from mlir_shard.transforms.communication.device_uniformity import KnownUniform, UniformValues
from mlir_shard.transforms.communication.simplify import uniform
from mlir_shard.transforms.shardings import rule_cache

_CASTS = frozenset(
    ("arith.extf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp", "stablehlo.convert", "tosa.cast")
)


@dataclass(slots=True)
class _Blocks:
    """The local operands of an op, by number, and the all-gathers that only the op uses."""

    values: dict[int, Any]
    gathers: list[Any]


@register
class SinkGathers(ModulePass):
    """Moves an all-gather behind the elementwise op that is its only user, if devices then receive no more bytes: of
    two gathered operands only one tensor is gathered, and a cast to a narrower type comes first. An all-gather of a
    cast to a wider type moves before the cast.

    Other operands must be gathered in the same way or uniform across devices. Uniform operands are constants and
    broadcasts along the dimension, which are built as shards, and in `shard` all others, which are sliced if devices
    then receive fewer bytes.
    """

    name = "shard-sink-gathers"
    summary = "Sinks all-gathers below elementwise ops, and moves them to the narrower type of casts"
    needs = GATHERS

    def run(self, op: Any) -> bool:
        # Hashes are of results, as that of an op changes with its operands, and computed before all-gathers are erased.
        waiting = [(hash(gather.results[0]), gather) for gather in operations_named(op, *GATHERS)]
        if not waiting:
            return False
        rules, same, is_changed = rule_cache(), KnownUniform(), False
        gone: set[int] = set()
        for number, gather in waiting:
            current = None if number in gone else gather
            while current is not None:
                moved = _before_widening(current, same) or _behind_user(current, rules, same, gone)
                is_changed |= moved is not None
                current = moved
        return is_changed


def _before_widening(gather: Any, known: KnownUniform) -> Any | None:
    """Returns the new all-gather of the operand of a widening cast; None if no such cast exists."""
    cast = None if dim_of(gather) is None else defining_op(gather.operands[0], *_CASTS)
    if cast is None:
        return None
    narrow, wide = (element_size(value.type) or 0 for value in (cast.operands[0], cast.results[0]))
    if not _is_sent(cast.operands[0].type) or not 0 < narrow < wide:
        return None
    result = gather.results[0].type
    narrow_type = shard.resized(cast.operands[0].type, result.shape)
    moved = _gather_like(gather, cast.operands[0], narrow_type, ir.InsertionPoint(gather))
    attributes = dict(cast.attributes.items())
    widened = ir.Operation.create(
        cast.name, [result], [moved.results[0]], attributes, loc=cast.location, ip=ir.InsertionPoint(gather)
    )
    known.forget((gather.results[0], cast.results[0]))
    replace_with(gather, widened.results)
    if not list(cast.results[0].uses):
        cast.erase()
    return moved


def _behind_user(gather: Any, rules: RuleCache, known: KnownUniform, gone: set[int]) -> Any | None:
    """Returns the new all-gather of the result of the only user; None if it is not local or would receive more."""
    dim, using = dim_of(gather), users(gather.results[0])
    if dim is None or len(using) != 1 or using[0].block != gather.block:
        return None
    op, value = using[0], gather.results[0]
    part = on_block(op, value, dim, rules)
    if part is None or not _is_sent(op.results[0].type):
        return None
    whole = op.results[0].type
    blocks = value.type.shape[dim] // max(1, gather.operands[0].type.shape[dim])
    shape = list(whole.shape)
    shape[dim] //= max(1, blocks)
    block_type = shard.resized(whole, shape)
    before, after = received_bytes(gather), num_bytes(whole)
    if before is None or after is None:
        return None
    after -= num_bytes(block_type) or 0
    found = _blocks(gather, part, blocks, known.of(gather), is_slicing=after < before)
    if found is None or after > sum(received_bytes(one) or 0 for one in found.gathers):
        return None
    known.forget((op.results[0], *(one.results[0] for one in found.gathers)))
    for number, block in found.values.items():
        op.operands[number] = block
    op.results[0].set_type(block_type)
    moved = _gather_like(gather, op.results[0], whole, ir.InsertionPoint.after(op))
    op.results[0].replace_all_uses_except(moved.results[0], moved)
    for one in found.gathers:
        gone.add(hash(one.results[0]))
        one.erase()
    return moved


def _blocks(gather: Any, part: OnBlock, count: int, same: UniformValues, *, is_slicing: bool) -> _Blocks | None:
    """Returns the shards that replace sharded operands; None if one is not gathered and cannot be sliced."""
    op, found = part.op, _Blocks({}, [])
    if not same.has_captured(op):
        return None
    others: list[tuple[int, int]] = []
    for number, dim in enumerate(part.operand_dims):
        operand = op.operands[number]
        maker = None if dim is None else defining_op(operand, gather.name)
        if maker is not None and dim_of(maker) == dim and among(maker) == among(gather):
            found.values[number] = maker.operands[0]
            if users(operand) == [op] and maker.block == op.block and not any(maker == one for one in found.gathers):
                found.gathers.append(maker)
            continue
        # A device computes shards that others use.
        if not same.has(operand) or (dim is not None and operand.type.shape[dim] % count):
            return None
        if dim is not None:
            others.append((number, dim))
    for number, dim in others:
        block = _made_block(gather, op, op.operands[number], dim, count, is_slicing=is_slicing)
        if block is None:
            return None
        found.values[number] = block
    return found


def _made_block(gather: Any, op: Any, value: Any, dim: int, count: int, *, is_slicing: bool) -> Any | None:
    """Builds a shard of an operand that is not gathered in front of `op`; all shards are equal."""
    shape = list(value.type.shape)
    shape[dim] //= count
    type_ = shard.resized(value.type, shape)
    with ir.InsertionPoint(op), op.location:
        made = uniform(value, type_)
        if made is not None:
            return made
        broadcast = defining_op(value, "stablehlo.broadcast_in_dim")
        if broadcast is not None and dim not in elements(broadcast.attributes["broadcast_dimensions"]):
            dims = elements(broadcast.attributes["broadcast_dimensions"])
            return stablehlo.broadcast(broadcast.operands[0], shape, dims)
        if is_slicing and gather.name.startswith("shard."):
            return shard.all_slice(gather.attributes["grid"].value, value, shard.grid_axes(gather), dim, count)
    return None


def _gather_like(gather: Any, value: Any, type_: Any, place: Any) -> Any:
    attributes = dict(gather.attributes.items())
    return ir.Operation.create(gather.name, [type_], [value], attributes, loc=gather.location, ip=place)


def _is_sent(type_: Any) -> bool:
    """Returns whether every engine can send elements of a type: of whole bytes, and two or more for floats."""
    element = type_.element_type
    least = 16 if isinstance(element, ir.FloatType) else 8
    width: int = element.width if isinstance(element, (ir.FloatType, ir.IntegerType)) else 0
    return width >= least and width % 8 == 0
