# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of tosa whose dimensions can be expanded; a matmul, which has one dimension of each kind, becomes another op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.values import defining_op
from mlir_shard.rules.tosa import compute
from mlir_shard.transforms.normalize.merged_dims.expanded_dims import (
    Expandable,
    Expansion,
    Port,
    expanded_shape,
    places,
)

_arith, _linalg, _tensor = host.dialect("arith"), host.dialect("linalg"), host.dialect("tensor")
# The number of tensor operands of ops that also have a shift or zero points.
_TENSORS = {"tosa.mul": 2, "tosa.negate": 1}
_REDUCTIONS = op_names("tosa", "reduce_all reduce_any reduce_max reduce_min reduce_product reduce_sum")


def expandable_tosa(op: Any) -> Expandable | None:
    """Returns how an op of tosa can be expanded; None if it cannot."""
    if op.name == "tosa.matmul":
        return _matmul(op)
    if op.name == "tosa.transpose":
        return _transpose(op)
    if op.name in _REDUCTIONS:
        return _reduction(op)
    return _elementwise(op) if op.name in compute.NAMES else None


def _elementwise(op: Any) -> Expandable:
    shape = op.results[0].type.shape
    operands = list(op.operands)[: _TENSORS.get(op.name)]
    factors: list[list[Port]] = []
    stretched = set()
    for dim, size in enumerate(shape):
        ports = [(number, dim) for number in range(len(operands))]
        stretched |= {port for port in ports if operands[port[0]].type.shape[dim] != size}
        factors.append([*ports, (-1, dim)])
    return Expandable(factors, stretched=frozenset(stretched))


def _transpose(op: Any) -> Expandable:
    permutation = elements(op.attributes["perms"])

    def attributes(of: Mapping[int, Expansion]) -> Mapping[str, Any]:
        known = places(of[0])
        expanded = [place for source in permutation for place in known[source]]
        return {"perms": ir.DenseI32ArrayAttr.get(expanded)}

    return Expandable([[(0, source), (-1, dim)] for dim, source in enumerate(permutation)], attributes)


def _reduction(op: Any) -> Expandable:
    axis = op.attributes["axis"].value
    kept = [dim for dim in range(op.results[0].type.rank) if dim != axis]

    def attributes(of: Mapping[int, Expansion]) -> Mapping[str, Any]:
        return {"axis": ir.IntegerAttr.get(op.attributes["axis"].type, places(of[0])[axis][0])}

    return Expandable([[(0, dim), (-1, dim)] for dim in kept], attributes)


def _matmul(op: Any) -> Expandable | None:
    """Returns how a floating-point matmul with zero points of 0 is expanded, to a `linalg.generic`; None for others."""
    left, right = (operand.type for operand in list(op.operands)[:2])
    result = op.results[0].type
    is_float = all(isinstance(one.element_type, ir.FloatType) for one in (left, right, result))
    if not is_float or left.shape[0] != right.shape[0] or not _are_zero(list(op.operands)[2:]):
        return None
    batch, rows, columns, summed = factors = [
        [(0, 0), (1, 0), (-1, 0)],
        [(0, 1), (-1, 1)],
        [(1, 2), (-1, 2)],
        [(0, 2), (1, 1)],
    ]

    def build(operands: Sequence[Any], of: Mapping[int, Expansion]) -> list[Any]:
        sizes = [of[ports[0][0]][ports[0][1]] for ports in factors]
        loops = places(tuple(sizes))
        count = sum(map(len, sizes))
        indexing = [
            [place for dim in dims for place in loops[factors.index(dim)]]
            for dims in ((batch, rows, summed), (batch, summed, columns), (batch, rows, columns))
        ]
        maps = [ir.AffineMap.get(count, 0, [ir.AffineDimExpr.get(place) for place in one]) for one in indexing]
        kinds = ["reduction" if place in loops[-1] else "parallel" for place in range(count)]
        with op.location:
            type_ = stablehlo.with_shape(result, expanded_shape(of[-1]))
            zero = _arith.ConstantOp(type_.element_type, ir.FloatAttr.get(type_.element_type, 0.0)).result
            empty = _tensor.EmptyOp(list(type_.shape), type_.element_type).result
            made = _linalg.GenericOp(
                [type_],
                list(operands)[:2],
                [_linalg.fill(zero, outs=[empty])],
                ir.ArrayAttr.get(list(map(ir.AffineMapAttr.get, maps))),
                ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]),
            ).operation
            elements = [left.element_type, right.element_type, result.element_type]
            block = made.regions[0].blocks.append(*elements, arg_locs=[op.location] * 3)
            with ir.InsertionPoint(block):
                *factors_of, sum_ = block.arguments
                wide = [_widened(one, result.element_type) for one in factors_of]
                product = _arith.MulFOp(*wide).result
                _linalg.YieldOp([_arith.AddFOp(sum_, product).result])
        return list(made.results)

    return Expandable(factors, build=build)


def _are_zero(values: Sequence[Any]) -> bool:
    constants = [defining_op(value, "tosa.const") for value in values]
    return all(
        one is not None
        and (known := one.attributes["values"]).is_splat
        and ir.FloatAttr(known.get_splat_value()).value == 0
        for one in constants
    )


def _widened(value: Any, type_: Any) -> Any:
    return value if value.type == type_ else _arith.ExtFOp(type_, value).result
