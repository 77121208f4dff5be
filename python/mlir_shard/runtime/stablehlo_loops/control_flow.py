# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow of StableHLO as that of scf, whose regions are the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime.stablehlo_loops import loops

_arith, _scf = host.dialect("arith"), host.dialect("scf")
_EQUAL = 0


def while_(op: Any) -> list[Any]:
    """The condition is the region before, the body the one after."""
    made = ir.Operation.create("scf.while", _types(op), list(op.operands), regions=2)
    for region, new in zip(op.regions, made.regions, strict=True):
        region.blocks[0].append_to(new)
    condition, body = (region.blocks[0] for region in made.regions)
    end = _end(condition)
    with ir.InsertionPoint(end), end.location:
        _scf.ConditionOp(loops.unboxed(end.operands[0]), list(condition.arguments))
    end.erase()
    _yield(body)
    return list(made.results)


def if_(op: Any) -> list[Any]:
    """The first region where the operand holds."""
    return _choose(loops.unboxed(op.operands[0]), _types(op), *(region.blocks[0] for region in op.regions))


def case(op: Any) -> list[Any]:
    """The region of the operand's number, the last one where there is none."""
    if len(op.regions) == 1:
        return loops.inlined(op.regions[0], [])
    return _case(loops.unboxed(op.operands[0]), 0, [region.blocks[0] for region in op.regions], _types(op))


def _case(number: Any, first: int, blocks: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    """The choice among two or more blocks, the first of which has the number `first`."""
    is_first = _arith.CmpIOp(_EQUAL, number, _arith.ConstantOp(number.type, first).result).result
    if len(blocks) == 2:
        return _choose(is_first, types, *blocks)
    made = _if(is_first, types)
    _move(blocks[0], made.regions[0])
    with ir.InsertionPoint(made.regions[1].blocks.append()):
        _scf.YieldOp(_case(number, first + 1, blocks[1:], types))
    return list(made.results)


def barrier(op: Any) -> list[Any]:
    """Nothing: no pass from here on moves what it should not."""
    return list(op.operands)


def _choose(condition: Any, types: Sequence[Any], then: Any, otherwise: Any) -> list[Any]:
    made = _if(condition, types)
    _move(then, made.regions[0])
    _move(otherwise, made.regions[1])
    return list(made.results)


def _if(condition: Any, types: Sequence[Any]) -> Any:
    return ir.Operation.create("scf.if", list(types), [condition], regions=2)


def _move(block: Any, region: Any) -> None:
    block.append_to(region)
    _yield(region.blocks[0])


def _yield(block: Any) -> None:
    end = _end(block)
    with ir.InsertionPoint(end), end.location:
        _scf.YieldOp(list(end.operands))
    end.erase()


def _end(block: Any) -> Any:
    return list(block.operations)[-1].operation


def _types(op: Any) -> list[Any]:
    return [result.type for result in op.results]
