# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Upstream's shard collectives as `convert-shard-to-mpi` takes them and gets them right.

What that pass does with others, as seen by running it:
- Elements of f16, bf16, i1 and index have no MPI datatype there: the ranks abort.
- Along all axes of a grid the order of the axes is lost, and blocks come in the order of the ranks.
- A gather of blocks of size 1 is taken for the identity, which is then no valid program.
- Without axes all ranks take part rather than none but oneself; tensors without elements and all_to_all are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import shard
from mlir_shard.host import ir
from mlir_shard.passes import diagnostic
from mlir_shard.runtime import carriers
from mlir_shard.runtime.carriers import Carrier
from mlir_shard.runtime.error import RunError

_linalg, _shard, _tensor = host.dialect("linalg"), host.dialect("shard"), host.dialect("tensor")

_REDUCTION = re.compile(r"#shard<partial (\w+)>")
_WITHOUT_LOWERING = frozenset(
    f"shard.{name}" for name in ("broadcast", "gather", "recv", "reduce", "scatter", "send", "shard", "shift")
)


@dataclass(frozen=True, slots=True)
class _Group:
    """The devices of a collective: those along `axes`, none of size 1, of the grid `grid`."""

    grid: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape[axis] for axis in self.axes)

    @property
    def in_order(self) -> tuple[_Group, ...]:
        """The groups of which collectives, one after the other from major to minor, do what one of this group does.

        This group alone where upstream keeps the order of its axes.
        """
        if len(self.axes) < len(self.shape) or self.axes == tuple(sorted(self.axes)):
            return (self,)
        return tuple(_Group(self.grid, self.shape, (axis,)) for axis in self.axes)


def legalize(module: Any) -> None:
    """Rewrites the collectives of a local module; RunError names one that cannot be lowered."""
    grids: dict[str, tuple[int, ...]] = {}
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "shard.grid":
            grids[op.attributes["sym_name"].value] = shard.grid_shape(op)
        elif op.name in _REWRITES or op.name in _WITHOUT_LOWERING:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in found:
        if op.name in _WITHOUT_LOWERING:
            raise _error(f"'{op.name}' has no lowering to MPI", op)
        grid = op.attributes["grid"].value
        if grid not in grids:
            raise _error(f"'{op.name}' is on the grid @{grid}, which the module does not define", op)
        shape = grids[grid]
        group = _Group(grid, shape, tuple(axis for axis in op.attributes["grid_axes"] if shape[axis] != 1))
        with ir.InsertionPoint(op), op.location:
            op.result.replace_all_uses_with(_REWRITES[op.name](op, group))
        op.erase()


def _error(message: str, op: Any) -> RunError:
    return RunError("the program cannot be lowered to MPI", [diagnostic.at("error", message, op.location)])


def _rewrite_all_reduce(op: Any, group: _Group) -> Any:
    value, carrier = op.operands[0], _carrier_for_reducing(op)
    if not group.axes or 0 in value.type.shape:
        return value
    carried = carrier.enter(value)
    reduction = ir.Attribute.parse(f"#shard<partial {carrier.reduction}>")
    axes = ir.DenseI16ArrayAttr.get(list(group.axes))
    reduced = _shard.AllReduceOp(carried.type, group.grid, carried, grid_axes=axes, reduction=reduction).result
    return carrier.leave(reduced)


def _rewrite_reduce_scatter(op: Any, group: _Group) -> Any:
    value, carrier, dim = op.operands[0], _carrier_for_reducing(op), op.attributes["scatter_dim"].value
    if not group.axes:
        return value
    if 0 in value.type.shape:
        return _empty(op.result.type)
    carried = carrier.enter(value)
    reduction = ir.Attribute.parse(f"#shard<partial {carrier.reduction}>")
    for part in group.in_order:
        shape = list(carried.type.shape)
        shape[dim] //= part.size
        axes = ir.DenseI16ArrayAttr.get(list(part.axes))
        carried = _shard.ReduceScatterOp(
            shard.resized(carried.type, shape), part.grid, carried, dim, grid_axes=axes, reduction=reduction
        ).result
    return carrier.leave(carried)


def _rewrite_all_gather(op: Any, group: _Group) -> Any:
    return _all_gather(op, op.operands[0], group, op.attributes["gather_axis"].value)


def _rewrite_all_to_all(op: Any, group: _Group) -> Any:
    """Gathers along one dimension, then keeps a block of the other: right, and moves more than it has to."""
    split, concatenated = op.attributes["split_axis"].value, op.attributes["concat_axis"].value
    gathered = _all_gather(op, op.operands[0], group, concatenated)
    return shard.all_slice(group.grid, gathered, group.axes, split, group.size) if group.axes else gathered


def _all_gather(op: Any, value: Any, group: _Group, dim: int) -> Any:
    if not group.axes:
        return value
    shape = list(value.type.shape)
    if 0 in shape:
        shape[dim] *= group.size
        return _empty(shard.resized(value.type, shape))
    carrier = carriers.for_moving(value.type.element_type)
    if carrier is None:
        raise _error(f"'{op.name}' of {value.type}: its elements cannot be sent", op)
    carried = carrier.enter(value)
    for part in reversed(group.in_order):
        if carried.type.shape[dim] == 1:
            carried = _gather_single(carried, part, dim)
        else:
            carried = shard.all_gather(part.grid, carried, part.axes, dim, part.size)
    return carrier.leave(carried)


def _gather_single(value: Any, group: _Group, dim: int) -> Any:
    """Gathers along a dimension of size 1, by a gather of the flattened tensor: its blocks are then longer than 1."""
    shape = list(value.type.shape)
    others = shape[:dim] + shape[dim + 1 :]
    flat = _reshape(value, [prod(shape)])
    if prod(shape) == 1:
        # Still of size 1: every device sends its element twice, and one of each two is kept.
        pair = _tensor.ConcatOp(shard.resized(flat.type, [2]), 0, [flat, flat]).result
        pairs = _reshape(shard.all_gather(group.grid, pair, group.axes, 0, group.size), [group.size, 2])
        kept = _tensor.ExtractSliceOp(
            shard.resized(flat.type, [group.size, 1]), pairs, [], [], [], [0, 0], [group.size, 1], [1, 1]
        ).result
        return _reshape(_reshape(kept, [group.size]), [*shape[:dim], group.size, *shape[dim + 1 :]])
    gathered = shard.all_gather(group.grid, flat, group.axes, 0, group.size)
    stacked = _reshape(gathered, [group.size, *others])
    order = [*range(1, dim + 1), 0, *range(dim + 1, len(shape))]
    initial = _empty(shard.resized(value.type, [stacked.type.shape[index] for index in order]))
    return _linalg.transpose(stacked, outs=[initial], permutation=order).operation.results[0]


def _reshape(value: Any, shape: Sequence[int]) -> Any:
    """To or from one dimension."""
    if list(value.type.shape) == list(shape):
        return value
    type_ = shard.resized(value.type, shape)
    if len(shape) == 1:
        return _tensor.CollapseShapeOp(type_, value, [list(range(value.type.rank))]).result
    if value.type.rank != 1:
        return _reshape(_reshape(value, [prod(shape)]), shape)
    return _tensor.ExpandShapeOp(type_, value, [list(range(len(shape)))], [], list(shape)).result


def _empty(type_: Any) -> Any:
    return _tensor.empty(type_.shape, type_.element_type)


def _carrier_for_reducing(op: Any) -> Carrier:
    value, kind = op.operands[0], _REDUCTION.fullmatch(str(op.attributes["reduction"]))
    if op.result.type.element_type != value.type.element_type:
        raise _error(f"'{op.name}' of {value.type} to {op.result.type}: it cannot change the type of elements", op)
    carrier = carriers.for_reducing(value.type.element_type, kind[1]) if kind else None
    if carrier is None:
        raise _error(f"'{op.name}' of {value.type} by {op.attributes['reduction']} has no lowering to MPI", op)
    return carrier


_REWRITES = {
    "shard.all_gather": _rewrite_all_gather,
    "shard.all_reduce": _rewrite_all_reduce,
    "shard.all_to_all": _rewrite_all_to_all,
    "shard.reduce_scatter": _rewrite_reduce_scatter,
}
