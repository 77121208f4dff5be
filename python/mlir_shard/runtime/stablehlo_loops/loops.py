# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over the elements of tensors, at the current insertion point.

In a loop the scalars of a program are tensors of rank 0, on which StableHLO says what an operation does with unsigned
and complex numbers too; `scalar_code` takes the tensors away again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.runtime import index_arithmetic as index

_arith, _scf, _tensor = host.dialect("arith"), host.dialect("scf"), host.dialect("tensor")

# Of the position in the loop and what it carries, what it carries then.
Body = Callable[[Any, list[Any]], Sequence[Any]]
NestBody = Callable[[list[Any], list[Any]], Sequence[Any]]


def loop(start: Any, stop: Any, carried: Sequence[Any], body: Body, step: Any | None = None) -> list[Any]:
    """What is carried after all positions from `start` to before `stop`, indices."""
    made = _scf.ForOp(start, stop, index.constant(1) if step is None else step, list(carried))
    with host.ir.InsertionPoint(made.body):
        _scf.YieldOp(list(body(made.induction_variable, list(made.inner_iter_args))))
    return list(made.results)


def nest(sizes: Sequence[int], carried: Sequence[Any], body: NestBody) -> list[Any]:
    """What is carried after all positions in a box of those sizes, in row-major order."""

    def at(position: list[Any], rest: Sequence[int], now: Sequence[Any]) -> list[Any]:
        if not rest:
            return list(body(position, list(now)))
        first, *others = rest
        return loop(index.constant(0), index.constant(first), now, lambda one, held: at([*position, one], others, held))

    return at([], sizes, carried)


def read(tensor: Any, position: Sequence[Any]) -> Any:
    """The element at a position, as a tensor of rank 0."""
    return boxed(_tensor.ExtractOp(tensor, list(position)).result)


def write(scalar: Any, tensor: Any, position: Sequence[Any]) -> Any:
    """The tensor with a scalar, a tensor of rank 0, at a position."""
    return _tensor.InsertOp(unboxed(scalar), tensor, list(position)).result


def boxed(element: Any) -> Any:
    """An element as a tensor of rank 0."""
    return _tensor.FromElementsOp(host.ir.RankedTensorType.get([], element.type), [element]).result


def unboxed(scalar: Any) -> Any:
    """The element of a tensor of rank 0."""
    return _tensor.ExtractOp(scalar, []).result


def empty(type_: Any) -> Any:
    """A tensor to be written to."""
    return _tensor.EmptyOp(list(type_.shape), type_.element_type).result


def inlined(region: Any, scalars: Sequence[Any]) -> list[Any]:
    """What a region returns for scalars. Its operations are moved here, so this can be done once."""
    block = region.blocks[0]
    for argument, scalar in zip(block.arguments, scalars, strict=True):
        argument.replace_all_uses_with(scalar)
    *inner, terminator = [op.operation for op in block.operations]
    here = index.constant(0).owner
    for op in inner:
        op.move_before(here)
    return list(terminator.operands)


def both(left: Any, right: Any) -> Any:
    """Whether both truth values hold."""
    return _arith.AndIOp(left, right).result


def either(left: Any, right: Any) -> Any:
    """Whether one of two truth values holds."""
    return _arith.OrIOp(left, right).result


def negation(value: Any) -> Any:
    """Whether a truth value does not hold."""
    return _arith.XOrIOp(value, _arith.ConstantOp(value.type, 1).result).result


def truth(value: bool) -> Any:
    """A truth value."""
    return _arith.ConstantOp(host.ir.IntegerType.get_signless(1), int(value)).result
