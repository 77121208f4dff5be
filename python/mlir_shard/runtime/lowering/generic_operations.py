# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites of `linalg.generic` that prevent wrong results and missed fusion in the host's passes."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import index_arithmetic, shard
from mlir_shard.ir.editing import clone_with, inline_region, operations_named_in_post_order, replace_with
from mlir_shard.runtime.lowering.blas.contractions import index_of

_tensor = host.dialect("tensor")
_GENERIC, _FILL = "linalg.generic", "linalg.fill"
_PARALLEL = "#linalg.iterator_type<parallel>"
_MAPS = "indexing_maps"
_SEGMENTS = "operandSegmentSizes"
_ITERATORS = "iterator_types"


def prepare(module: Any) -> None:
    """Rewrites the generics of a module, in place, so that the host fuses the remaining ones correctly."""
    for op in operations_named_in_post_order(module, _GENERIC):
        _cut_operands(op)
        if not len(op.attributes[_ITERATORS]):
            if all(_has_one_element(result) for result in op.results):
                _to_scalars(op)
        elif all(str(one) == _PARALLEL for one in op.attributes[_ITERATORS]):
            _read_as_input(op)
    for op in operations_named_in_post_order(module, _GENERIC, _FILL):
        _repeat(op)


def _cut_operands(op: Any) -> None:
    """Slices off the elements of a generic's operands that its windows do not reach.

    `linalg-fold-unit-extent-dims` drops a loop of one iteration, and then assumes that the size of the operand is that
    of the loop within a window.
    """
    maps = [[index_of(one) for one in of.value.results] for of in op.attributes[_MAPS]]
    types = [operand.type for operand in op.operands]
    if not any(index and len(index) > 1 for of in maps for index in of):
        return
    sizes: dict[int, int] = {}
    for of, type_ in zip(maps, types, strict=True):
        for index, size in zip(of, getattr(type_, "shape", ()), strict=True):
            if index and len(index) == 1 and index[0][1] == 1:
                sizes[index[0][0]] = size
    for place, (of, type_) in enumerate(zip(maps, types, strict=True)):
        if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
            continue
        shape = list(type_.shape)
        for dim, index in enumerate(of):
            if index and len(index) > 1 and all(loop in sizes and times > 0 for loop, times in index):
                shape[dim] = min(shape[dim], 1 + sum(times * (sizes[loop] - 1) for loop, times in index))
        if shape != list(type_.shape):
            with ir.InsertionPoint(op), op.location:
                op.operands[place] = shard.extract_slice(op.operands[place], [0] * len(shape), shape)


def _repeat(op: Any) -> None:
    """Copies a generic that only broadcasts elements or a constant for each use, so that each copy fuses with its user.

    The host fuses only generics with one use; other results are materialized in memory.
    """
    if len(op.results) != 1 or not _repeats(op):
        return
    for use in list(op.results[0].uses)[1:]:
        user = use.owner.operation
        if user.name == _GENERIC and use.operand_number < ir.DenseI32ArrayAttr(user.attributes[_SEGMENTS])[0]:
            with ir.InsertionPoint(user):
                user.operands[use.operand_number] = clone_with(op, {}).results[0]


def _repeats(op: Any) -> bool:
    body = op.regions[0].blocks[0]
    (first, *more) = [one.operation for one in body.operations]
    if more or any("reduction" in str(one) for one in op.attributes.get(_ITERATORS, ())):
        return False
    value = first.operands[0]
    inputs = list(op.operands)[: ir.DenseI32ArrayAttr(op.attributes[_SEGMENTS])[0]]
    return value not in list(body.arguments)[len(inputs) :] and all(_is_smaller(one, op.results[0]) for one in inputs)


def _is_smaller(value: Any, result: Any) -> bool:
    return not isinstance(value.type, ir.RankedTensorType) or value.type.rank < result.type.rank


def _has_one_element(value: Any) -> bool:
    return all(size == 1 for size in value.type.shape)


def _to_scalars(op: Any) -> None:
    """Replaces a generic without loops by its body on the single elements of its operands."""
    pairs = zip(op.regions[0].blocks[0].arguments, op.operands, strict=True)
    with ir.InsertionPoint(op), op.location:
        taken = [_only_element(operand) if list(argument.uses) else operand for argument, operand in pairs]
        ends = zip(op.results, inline_region(op.regions[0], taken, op), strict=True)
        values = [_tensor.FromElementsOp(old.type, [value]).result for old, value in ends]
    replace_with(op, values)


def _only_element(operand: Any) -> Any:
    if not isinstance(operand.type, ir.RankedTensorType):
        return operand
    origin = [index_arithmetic.constant(0)] * len(operand.type.shape)
    return _tensor.ExtractOp(operand, origin).result


def _read_as_input(op: Any) -> None:
    """Adds the outputs that a generic reads to its inputs.

    `linalg-fuse-elementwise-ops` may fuse the generic with one that broadcasts its elements along other dimensions,
    which would then read the written elements again in each iteration.
    """
    (count, _), body = ir.DenseI32ArrayAttr(op.attributes[_SEGMENTS]), op.regions[0].blocks[0]
    arguments, operands, maps = list(body.arguments), list(op.operands), list(op.attributes[_MAPS])
    read = [place for place in range(count, len(operands)) if list(arguments[place].uses)]
    if not read:
        return
    order = [*range(count), *read, *range(count, len(operands))]
    attributes = dict(op.attributes.items())
    attributes[_MAPS] = ir.ArrayAttr.get([maps[place] for place in order], op.context)
    attributes[_SEGMENTS] = ir.DenseI32ArrayAttr.get([count + len(read), len(operands) - count], op.context)
    with ir.InsertionPoint(op), op.location:
        made = ir.Operation.create(
            _GENERIC,
            results=[result.type for result in op.results],
            operands=[operands[place] for place in order],
            attributes=attributes,
            regions=1,
        )
    block = made.regions[0].blocks.append(
        *(arguments[place].type for place in order), arg_locs=[op.location] * len(order)
    )
    # The first occurrence of an operand that occurs twice is the input, which takes over all uses.
    for new, place in zip(block.arguments, order, strict=True):
        arguments[place].replace_all_uses_with(new)
    for one in [inner.operation for inner in body.operations]:
        block.append(one)
    replace_with(op, made.results)
