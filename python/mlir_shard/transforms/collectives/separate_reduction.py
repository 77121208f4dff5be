# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over devices of a mesh that is not part of the grid, by exchanges of tiles.

Each device of a group receives one part of the values of all, reduces it, and sends the others the result. It receives
as many bytes as in a ring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ir import shard, stablehlo
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.rules.reduction import Combiner
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axes import total_size
from mlir_shard.sharding.layout import block_size
from mlir_shard.transforms.collectives.builder import GridBuilder

_arith = dialect("arith")
# Names in `arith`, whose wrappers are imported only for programs with such reductions.
_FLOATS = {
    Combiner.SUM: "AddFOp",
    Combiner.PRODUCT: "MulFOp",
    Combiner.MAX: "MaximumFOp",
    Combiner.MIN: "MinimumFOp",
}
_INTEGERS = {
    Combiner.SUM: "AddIOp",
    Combiner.PRODUCT: "MulIOp",
    Combiner.MAX: "MaxSIOp",
    Combiner.MIN: "MinSIOp",
    Combiner.AND: "AndIOp",
    Combiner.OR: "OrIOp",
    Combiner.XOR: "XOrIOp",
}
# A sum of truth values is their disjunction.
_BOOLEANS = _INTEGERS | {
    Combiner.SUM: "OrIOp",
    Combiner.MAX: "OrIOp",
    Combiner.PRODUCT: "AndIOp",
    Combiner.MIN: "AndIOp",
}


Reshape = Callable[[Any, Sequence[int]], Any]
Combine = Callable[[Any, Any], Any]


def all_reduce(
    value: Any, mesh: Mesh, axes: Sequence[AxisRef], builder: GridBuilder, forms: tuple[Reshape, Reshape, Combine]
) -> Any:
    """Returns the reduction over the devices of the mesh along axes.

    Args:
        forms: functions that reshape a tensor; that return the row of a matrix with a number, as a matrix of one row;
            and that combine two tensors element by element.
    """
    reshape, row, combine = forms
    shape, group = list(value.type.shape), total_size(axes, mesh)
    elements = prod(shape)
    if group == 1 or not elements:
        return value
    part = block_size(elements, group)
    flat = builder.resized(reshape(value, [elements]), [group * part])

    def layout(*dims: Sequence[AxisRef]) -> TensorLayout:
        sizes = (group, group * part)[2 - len(dims) :]
        return TensorLayout(TensorSharding.closed_with(dims, mesh), mesh, sizes)

    matrix = reshape(flat, [1, group * part])
    parts = builder.exchange_tiles(matrix, layout(axes, ()), layout((), axes), [group, part])
    own = reduce(combine, (row(parts, [number]) for number in range(group)))
    whole = builder.exchange_tiles(reshape(own, [part]), layout(axes), layout(()), [group * part])
    return reshape(builder.resized(whole, [elements]), shape)


def upstream_forms(combiner: Combiner) -> tuple[Reshape, Reshape, Combine]:
    """Returns the forms in `tensor` and `arith`."""

    def row(value: Any, number: Sequence[int]) -> Any:
        return shard.extract_slice(value, [*number, 0], [1, value.type.shape[1]])

    def combine(left: Any, right: Any) -> Any:
        return getattr(_arith, _ops_of(left.type.element_type)[combiner])(left, right).result

    return shard.reshape, row, combine


def stablehlo_forms(name: str) -> tuple[Reshape, Reshape, Combine]:
    """Returns the forms in StableHLO, for the op of this name."""

    def row(value: Any, number: Sequence[int]) -> Any:
        (at,) = number
        return stablehlo.slice_(value, [at, 0], [at + 1, value.type.shape[1]])

    return stablehlo.reshape, row, lambda left, right: stablehlo.binary(name, left, right)


def can_combine(element_type: Any) -> bool:
    """Returns whether elements of a type can be combined on all targets."""
    return bool(_ops_of(element_type))


def _ops_of(element_type: Any) -> dict[Combiner, str]:
    if isinstance(element_type, ir.FloatType):
        return _FLOATS
    if isinstance(element_type, ir.IntegerType) and element_type.is_signless:
        return _BOOLEANS if element_type.width == 1 else _INTEGERS
    return {}
