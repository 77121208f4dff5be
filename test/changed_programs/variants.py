# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variants of a module: renamed and reordered, with one changed annotation, or with one more operation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from mlir_shard import asm
from mlir_shard.dialects import sdy
from mlir_shard.dialects.parsing import parse
from mlir_shard.host import ir
from mlir_shard.ir.editing import functions, ops_below
from mlir_shard.sharding import AxisRef, DimensionSharding, TensorSharding
from mlir_shard.sharding.tensor import mesh_of

_SYMBOL = re.compile(r"@(\w+)")
_LOCATION = re.compile(r"^(#loc\d*) = (loc\(.*\))$", re.MULTILINE)


def reordered(text: str, random: Random, context: Any) -> Any:
    """Returns the module of a text with renamed functions, meshes and values, with operations and functions in a random
    order that their dependences allow, and with exchanged locations."""
    module = parse(text, context)
    _shuffle_functions(module, random)
    for op in [module.operation, *ops_below(module.operation)]:
        if op.name != "builtin.module":
            for region in op.regions:
                for block in region:
                    _shuffle_block(block, random)
    symbols = {op.attributes["sym_name"].value for op in module.operation.regions[0].blocks[0] if _is_symbol(op)}
    text = asm.print_operation(module.operation, debug_info=True)
    renamed = _SYMBOL.sub(lambda one: f"@other_{one[1]}" if one[1] in symbols else one[0], text)
    found = _LOCATION.findall(renamed)
    # Locations that refer to others keep their place, so that none refers to itself.
    names = [name for name, location in found if "#loc" not in location]
    locations = [location for _, location in found if "#loc" not in location]
    random.shuffle(locations)
    # Locations in the input file would be taken for positions in the input.
    locations = [location.replace('loc("-":', 'loc("other":') for location in locations]
    exchanged = dict(zip(names, locations, strict=True))
    return parse(_LOCATION.sub(lambda one: f"{one[1]} = {exchanged.get(one[1], one[2])}", renamed), context)


def _is_symbol(op: Any) -> bool:
    return "sym_name" in op.attributes


def _shuffle_functions(module: Any, random: Random) -> None:
    found = list(functions(module).values())
    random.shuffle(found)
    last = list(module.operation.regions[0].blocks[0])[-1]
    for function in found:
        if function != last.operation:
            function.move_after(last)


def _shuffle_block(block: Any, random: Random) -> None:
    ops = [op.operation for op in block]
    if len(ops) < 3:
        return
    numbers = {op: number for number, op in enumerate(ops)}
    before = [set(_definers(op, block, numbers)) - {number} for number, op in enumerate(ops)]
    *left, last = range(len(ops))
    done = set[int]()
    while left:
        chosen = random.choice([number for number in left if before[number] <= done])
        left.remove(chosen)
        done.add(chosen)
        ops[chosen].move_before(ops[last])


def _definers(op: Any, block: Any, numbers: dict[Any, int]) -> Iterator[int]:
    """Yields the numbers of operations of a block whose results an operation uses, also inside its regions."""
    for one in [op, *ops_below(op)]:
        for operand in one.operands:
            owner = operand.owner
            if not isinstance(owner, ir.Block) and owner.operation in numbers:
                yield numbers[owner.operation]


def reannotated(text: str, random: Random, context: Any) -> Any | None:
    """Returns the module of a text with another sharding in one annotation, which moves, adds or drops an axis, or None
    if no annotation can be changed."""
    module = parse(text, context)
    meshes = sdy.meshes(module)
    candidates = [(value, other) for value in _annotated(module) for other in _others(sdy.get_sharding(value), meshes)]
    if not candidates:
        return None
    value, other = random.choice(candidates)
    sdy.set_sharding(value, other)
    return module


def _annotated(module: Any) -> Iterator[Any]:
    for function in functions(module).values():
        yield from (value for value in function.regions[0].blocks[0].arguments if sdy.get_sharding(value))
        for op in ops_below(function):
            if op.name not in ("sdy.manual_computation", "sdy.named_computation", "func.call"):
                yield from (value for value in op.results if sdy.get_sharding(value))


def _others(sharding: TensorSharding | None, meshes: dict[str, Any]) -> Iterator[TensorSharding]:
    mesh = None if sharding is None else mesh_of(sharding, meshes)
    if sharding is None or mesh is None or not mesh.axes or not sharding.rank:
        return
    dims = sharding.dim_shardings
    turned = replace(sharding, dim_shardings=(*dims[1:], dims[0]))
    if [dim.axes for dim in turned.dim_shardings] != [dim.axes for dim in dims]:
        yield turned
    used = {axis.name for axis in sharding.used_axes}
    for axis in mesh.axes:
        if axis.name not in used:
            first = DimensionSharding((*dims[0].axes, AxisRef(axis.name)), dims[0].is_closed)
            yield replace(sharding, dim_shardings=(first, *dims[1:]))
    if sharding.sharding_axes:
        yield replace(sharding, dim_shardings=tuple(DimensionSharding((), dim.is_closed) for dim in dims))


INSERTED = "stablehlo.negate"


def edited(text: str, random: Random, context: Any) -> Any | None:
    """Returns the module of a text in which all users of one value use its negation; None without such a value."""
    module = parse(text, context)
    candidates = [value for op in ops_below(module.operation) if _may_follow(op) for value in op.results]
    candidates = [value for value in candidates if _is_float(value.type) and list(value.uses)]
    if not candidates:
        return None
    value = random.choice(candidates)
    uses = [(use.owner, use.operand_number) for use in value.uses]
    with ir.InsertionPoint.after(value.owner.operation), value.owner.location:
        inserted = ir.Operation.create(INSERTED, results=[value.type], operands=[value])
    for user, number in uses:
        user.operands[number] = inserted.result
    return module


def _may_follow(op: Any) -> bool:
    # An operation in a region of a structured operation computes on elements, an operation of a called function counts
    # once for each call, and an annotation does not compute its value.
    is_in_main = op.parent.name == "func.func" and op.parent.attributes["sym_name"].value == "main"
    return is_in_main and not op.name.startswith("sdy.") and op.name != "func.call"


def _is_float(type_: Any) -> bool:
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.F32Type | ir.F64Type)
