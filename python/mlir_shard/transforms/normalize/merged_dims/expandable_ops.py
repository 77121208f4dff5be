# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops whose dimensions can be expanded into the dimensions that were merged to them.

An op is described by the dimensions of its operands and results that are expanded together, like the factors of its
sharding rule, and by its attributes after the expansion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import ops_below
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.rules.linalg_loops import is_structured, loops_of
from mlir_shard.transforms.normalize.merged_dims.expandable_tosa import expandable_tosa
from mlir_shard.transforms.normalize.merged_dims.expanded_dims import (
    Expandable,
    Expansion,
    Port,
    expanded_shape,
    places,
)

_bindings = host.module("_mlir_libs._stablehlo")
_linalg = host.dialect("linalg")
# Dialects of elementwise ops on tensors of one shape; an operand may also be a scalar.
_ELEMENTWISE = ("arith.", "math.", "stablehlo.")


def expandable(op: Any) -> Expandable | None:
    """Returns how an op can be expanded; None if it cannot."""
    types = [value.type for value in (*op.operands, *op.results)]
    if not all(type_.has_static_shape for type_ in types if isinstance(type_, ir.ShapedType)) or not len(op.results):
        return None
    if op.name in _READERS:
        return _READERS[op.name](op)
    if op.name.startswith("linalg.") and is_structured(op):
        return _structured(op)
    if op.name.startswith("tosa."):
        return expandable_tosa(op)
    is_tensor = isinstance(op.results[0].type, ir.RankedTensorType)
    if is_tensor and op.name.startswith(_ELEMENTWISE) and is_elementwise(op.name) and not len(op.regions):
        values = [*enumerate(op.operands), (-1, op.results[0])]
        rank = op.results[0].type.rank
        tensors = [number for number, value in values if value.type.rank == rank]
        return Expandable([[(number, dim) for number in tensors] for dim in range(rank)])
    return None


def computed(op: Any, operands: Sequence[Any], how: Expandable, of: Mapping[int, Expansion], point: Any) -> list[Any]:
    """Returns the results of the op on expanded operands."""
    if how.build is not None:
        with point:
            return how.build(operands, of)
    made = op.clone(ip=point)
    for number, operand in enumerate(operands):
        made.operands[number] = operand
    for number, result in enumerate(made.results):
        result.set_type(stablehlo.with_shape(result.type, expanded_shape(of[-1 - number])))
    for name, attribute in how.attributes(of).items():
        made.attributes[name] = attribute
    return list(made.results)


def _at(expansion: Expansion, dims: Sequence[int]) -> list[int]:
    known = places(expansion)
    return [place for dim in dims for place in known[dim]]


def _dot_general(op: Any) -> Expandable:
    numbers = _bindings.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    contracting = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    summed: list[list[Port]] = [[(0, left), (1, right)] for left, right in contracting]
    kept: list[list[Port]] = [[(0, left), (1, right)] for left, right in batch]
    for number, operand in enumerate(op.operands):
        used = {pair[number] for pair in (*batch, *contracting)}
        kept += [[(number, dim)] for dim in range(operand.type.rank) if dim not in used]

    def attributes(of: Mapping[int, Expansion]) -> Mapping[str, Any]:
        expanded = _bindings.DotDimensionNumbers.get(
            lhs_batching_dimensions=_at(of[0], [left for left, _ in batch]),
            rhs_batching_dimensions=_at(of[1], [right for _, right in batch]),
            lhs_contracting_dimensions=_at(of[0], [left for left, _ in contracting]),
            rhs_contracting_dimensions=_at(of[1], [right for _, right in contracting]),
        )
        return {"dot_dimension_numbers": expanded}

    return Expandable([*summed, *([*ports, (-1, dim)] for dim, ports in enumerate(kept))], attributes)


def _transpose(op: Any) -> Expandable:
    permutation = elements(op.attributes["permutation"])
    return Expandable(
        [[(0, source), (-1, dim)] for dim, source in enumerate(permutation)],
        lambda of: {"permutation": stablehlo.sizes(_at(of[0], permutation))},
    )


def _broadcast(op: Any) -> Expandable:
    dims, (operand,), (result,) = elements(op.attributes["broadcast_dimensions"]), op.operands, op.results
    # A repeated dimension of size 1 is not expanded; it maps to the last expanded dimension of the result's.
    sources = {dim: source for source, dim in enumerate(dims) if operand.type.shape[source] == result.type.shape[dim]}
    factors: list[list[Port]] = []
    for dim in range(result.type.rank):
        factors.append([(0, sources[dim]), (-1, dim)] if dim in sources else [(-1, dim)])

    def attributes(of: Mapping[int, Expansion]) -> Mapping[str, Any]:
        known = places(of[-1])
        expanded = [place for dim in dims for place in (known[dim] if dim in sources else known[dim][-1:])]
        return {"broadcast_dimensions": stablehlo.sizes(expanded)}

    return Expandable(factors, attributes)


def _reduce(op: Any) -> Expandable:
    reduced, count = elements(op.attributes["dimensions"]), len(op.results)
    rank = op.operands[0].type.rank
    kept = [dim for dim in range(rank) if dim not in reduced]
    factors = [
        [(number, dim) for number in range(count)]
        + ([(-1 - number, kept.index(dim)) for number in range(count)] if dim in kept else [])
        for dim in range(rank)
    ]
    return Expandable(factors, lambda of: {"dimensions": stablehlo.sizes(_at(of[0], reduced))})


def _slice(op: Any) -> Expandable:
    """Returns how a slice is expanded: along the dimensions of which it keeps all elements."""
    (before,), (after,) = ([one.type.shape for one in side] for side in (op.operands, op.results))
    names = ("start_indices", "limit_indices", "strides")
    return Expandable(
        [[(0, dim), (-1, dim)] for dim, size in enumerate(before) if size == after[dim]],
        lambda of: {
            name: stablehlo.sizes(_spread(of[-1], elements(op.attributes[name]), filler))
            for name, filler in zip(names, (0, None, 1), strict=True)
        },
    )


def _pad(op: Any) -> Expandable:
    """Returns how a pad is expanded: along the dimensions that it does not pad."""
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    padded = list(zip(*(elements(op.attributes[name]) for name in names), strict=True))
    return Expandable(
        [[(0, dim), (-1, dim)] for dim, amounts in enumerate(padded) if not any(amounts)],
        lambda of: {name: stablehlo.sizes(_spread(of[-1], elements(op.attributes[name]), 0)) for name in names},
    )


def _spread(expansion: Expansion, numbers: Sequence[int], filler: int | None) -> list[int]:
    """Returns numbers of dimensions for the expanded ones: `filler`, or the size if None, where one is expanded."""
    found: list[int] = []
    for sizes, number in zip(expansion, numbers, strict=True):
        found += [number] if len(sizes) == 1 else sizes if filler is None else [filler] * len(sizes)
    return found


def _along_one(op: Any, name: str) -> Expandable:
    """Returns how an op along one dimension, which an attribute names, is expanded: along the others."""
    along, count = op.attributes[name].value, len(op.operands)
    factors = [[(number, dim) for number in range(-1, count)] for dim in range(op.results[0].type.rank) if dim != along]
    return Expandable(factors, lambda of: {name: stablehlo.integer(places(of[-1])[along][0])})


def _barrier(op: Any) -> Expandable:
    ranks = [result.type.rank for result in op.results]
    return Expandable([[(number, dim), (-1 - number, dim)] for number, rank in enumerate(ranks) for dim in range(rank)])


def _iota(op: Any) -> Expandable:
    along, rank = op.attributes["iota_dimension"].value, op.results[0].type.rank
    return Expandable(
        [[(-1, dim)] for dim in range(rank) if dim != along],
        lambda of: {"iota_dimension": stablehlo.integer(places(of[-1])[along][0])},
    )


def _constant(op: Any, name: str = "value") -> Expandable | None:
    value = op.attributes[name]
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return None

    def attributes(of: Mapping[int, Expansion]) -> Mapping[str, Any]:
        type_ = stablehlo.with_shape(op.results[0].type, [size for sizes in of[-1] for size in sizes])
        return {name: ir.DenseElementsAttr.get_splat(type_, value.get_splat_value())}

    return Expandable([[(-1, dim)] for dim in range(op.results[0].type.rank)], attributes)


def _linalg_transpose(op: Any) -> Expandable:
    permutation = elements(op.attributes["permutation"])
    return Expandable(
        [[(0, source), (1, dim), (-1, dim)] for dim, source in enumerate(permutation)],
        lambda of: {"permutation": stablehlo.sizes(_at(of[0], permutation))},
    )


def _filled(op: Any) -> Expandable:
    return Expandable([[(1, dim), (-1, dim)] for dim in range(op.results[0].type.rank)])


def _empty(op: Any) -> Expandable:
    return Expandable([[(-1, dim)] for dim in range(op.results[0].type.rank)])


def _structured(op: Any) -> Expandable | None:
    """Returns how a structured op of linalg is expanded, to a `linalg.generic`; None if it uses `linalg.index`."""
    if any(one.name == "linalg.index" for one in ops_below(op)):
        return None
    loops, maps = loops_of(op), [attribute.value for attribute in _linalg.get_indexing_maps(op)]
    first_result = len(op.operands) - len(op.results)
    factors: list[list[Port]] = [[] for _ in range(loops.count)]
    others = loops.bound | {loop for windows in loops.windows for loop in windows.values()}
    for number, dims in enumerate(loops.dims):
        for dim, loop in enumerate(dims):
            if loop is not None and loop not in others:
                factors[loop] += [(number, dim)]
                if number >= first_result:
                    factors[loop] += [(first_result - number - 1, dim)]

    def attributes(of: Mapping[int, Expansion]) -> Mapping[str, Any]:
        sizes = [of[ports[0][0]][ports[0][1]] if ports else (0,) for ports in factors]
        known = places(tuple(sizes))
        count = sum(map(len, sizes))
        renumbered = ir.AffineMap.get(count, 0, [ir.AffineDimExpr.get(place[0]) for place in known])
        expanded = []
        for map_ in maps:
            results: list[Any] = []
            for expr in map_.results:
                if isinstance(expr, ir.AffineDimExpr):
                    results += [ir.AffineDimExpr.get(place) for place in known[expr.position]]
                else:
                    results.append(expr.compose(renumbered))
            expanded.append(ir.AffineMapAttr.get(ir.AffineMap.get(count, 0, results)))
        kinds = ["reduction" if loop in loops.reductions else "parallel" for loop in range(loops.count)]
        if "iterator_types" in op.attributes:
            kinds = [str(one).partition("<")[2].rstrip(">") for one in op.attributes["iterator_types"]]
        iterators = [
            ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")
            for kind, place in zip(kinds, known, strict=True)
            for _ in place
        ]
        return {"indexing_maps": ir.ArrayAttr.get(expanded), "iterator_types": ir.ArrayAttr.get(iterators)}

    def build(operands: Sequence[Any], of: Mapping[int, Expansion]) -> list[Any]:
        body = op.clone()
        types = [stablehlo.with_shape(one.type, expanded_shape(of[-1 - i])) for i, one in enumerate(op.results)]
        segments = {"operandSegmentSizes": op.attributes["operandSegmentSizes"]}
        made = ir.Operation.create(
            "linalg.generic", types, operands, {**attributes(of), **segments}, regions=1, loc=op.location
        )
        body.regions[0].blocks[0].append_to(made.regions[0])
        body.erase()
        return list(made.results)

    return Expandable([ports for ports in factors if ports], build=build)


_READERS: Mapping[str, Callable[[Any], Expandable | None]] = {
    "arith.constant": _constant,
    "linalg.fill": _filled,
    "linalg.transpose": _linalg_transpose,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": partial(_along_one, name="dimension"),
    "stablehlo.constant": _constant,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.iota": _iota,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.pad": _pad,
    "stablehlo.reduce": _reduce,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
    "tensor.empty": _empty,
    "tosa.const": partial(_constant, name="values"),
}
