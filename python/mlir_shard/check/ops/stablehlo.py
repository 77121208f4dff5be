# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of StableHLO: the dimensions that they work along, and their effect on indices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.ops.places import dims_in
from mlir_shard.check.ops.reading import Reading, numbers_of, reads, reduction_kind
from mlir_shard.check.ops.structured import initial
from mlir_shard.check.ops.tensors import Value, Window

_POINTWISE = (
    "abs add and atan2 cbrt ceil clamp complex convert cosine count_leading_zeros divide exponential "
    "exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or "
    "popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt shift_left "
    "shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor"
)


@reads(*(f"stablehlo.{name}" for name in _POINTWISE.split()))
def _pointwise(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    shape, element = reading.type_of(op.results[0].type)
    values = [value if value.rank == len(shape) else reading.tensors.broadcast(value, shape, ()) for value in values]
    name = op.name.partition(".")[2]
    return [reading.tensors.computed((op.name, element, *reading.key(op)), name, values, element)]


@reads(
    *(
        f"chlo.{name}"
        for name in (
            "erf",
            "erfc",
            "erf_inv",
            "lgamma",
            "digamma",
            "square",
            "acosh",
            "asinh",
            "atanh",
            "sinh",
            "cosh",
            "acos",
            "asin",
            "atan",
            "tan",
        )
    )
)
def _chlo(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.pointwise((op.name, reading.type_of(op.results[0].type)[1], *reading.key(op)), values)]


@reads("stablehlo.compare")
def _compare(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    found = re.search(r"(EQ|NE|LT|LE|GT|GE)", str(op.attributes["comparison_direction"]))
    assert found is not None
    name = ("compare", found[1], *reading.key(op, ("comparison_direction",)))
    return [reading.tensors.compared(name, *values)]


@reads("stablehlo.select")
def _select(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    shape = reading.type_of(op.results[0].type)[0]
    if values[0].rank != len(shape):
        values = [reading.tensors.broadcast(values[0], shape, ()), *values[1:]]
    return [reading.tensors.selected(*values)]


@reads("stablehlo.constant")
def _constant(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.constant(op.attributes["value"], op.results[0].type)]


@reads("stablehlo.iota")
def _iota(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    shape, element = reading.type_of(op.results[0].type)
    dim = op.attributes["iota_dimension"].value
    return [reading.tensors.index(element, (0, ((1, dim),)), [(size,) for size in shape])]


@reads("stablehlo.optimization_barrier")
def _barrier(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return values


@reads("stablehlo.transpose")
def _transpose(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.transposed(values[0], numbers_of(op, "permutation"))]


@reads("stablehlo.broadcast_in_dim")
def _broadcast(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    shape = reading.type_of(op.results[0].type)[0]
    return [reading.tensors.broadcast(values[0], shape, numbers_of(op, "broadcast_dimensions"))]


@reads("stablehlo.dynamic_iota", "stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_reshape")
def _of_static_shape(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    """Returns an op with a static result shape without its shape operand, which is redundant."""
    shape, element = reading.type_of(op.results[0].type)
    if op.name == "stablehlo.dynamic_iota":
        dim = op.attributes["iota_dimension"].value
        return [reading.tensors.index(element, (0, ((1, dim),)), [(size,) for size in shape])]
    if op.name == "stablehlo.dynamic_reshape":
        return [reading.tensors.reshaped(values[0], shape)]
    return [reading.tensors.broadcast(values[0], shape, numbers_of(op, "broadcast_dimensions"))]


@reads("stablehlo.bitcast_convert", "chlo.top_k")
def _along_last(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    """Returns an op along the last dimension, or between elements and a new or dropped last dimension."""
    labels = [f"d{dim}" for dim in range(values[0].rank)]
    found = []
    for at, result in enumerate(op.results):
        shape, element = reading.type_of(result.type)
        core, results, made = list[str](), list(labels), dict[str, int]()
        if op.name == "chlo.top_k" or len(shape) < len(labels):
            core = [results.pop()]
        if op.name == "chlo.top_k" or len(shape) > len(labels):
            results.append("o")
            made = {"o": shape[-1]}
        name = (op.name, element, len(core), len(made), at)
        found.append(reading.tensors.opaque(name, [(values[0], labels)], results, core, made))
    return found


@reads("stablehlo.reshape")
def _reshape(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.reshaped(values[0], reading.type_of(op.results[0].type)[0])]


@reads("stablehlo.reverse")
def _reverse(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.reversed(values[0], numbers_of(op, "dimensions"))]


@reads("stablehlo.slice")
def _slice(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    value, shape = values[0], reading.type_of(op.results[0].type)[0]
    starts, steps = numbers_of(op, "start_indices"), numbers_of(op, "strides")
    whole = reading.tensors.box(value, starts, shape) if set(steps) == {1} else None
    if whole is not None:
        return [whole]
    for dim, size in enumerate(shape):
        value = reading.tensors.sliced(value, dim, (starts[dim], ()), size, steps[dim])
    return [value]


@reads("stablehlo.pad")
def _pad(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    low, high, interior = (
        numbers_of(op, f"{name}") for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    value, tensors = values[0], reading.tensors
    if tensors.is_number(values[1]):
        for dim, one in enumerate(interior):
            value = tensors.dilated(value, values[1], dim, one + 1)
        return [tensors.padded(value, values[1], low, high)]
    shape = reading.type_of(op.results[0].type)[0]
    changed = [dim for dim in range(len(shape)) if low[dim] or high[dim] or interior[dim]]
    labels = [f"d{dim}" for dim in range(len(shape))]
    results = [f"o{dim}" if dim in changed else label for dim, label in enumerate(labels)]
    name = ("pad", *((dim, low[dim], high[dim], interior[dim]) for dim in changed), len(shape))
    made = {f"o{dim}": shape[dim] for dim in changed}
    operands: list[tuple[Value, Sequence[str]]] = [(value, labels), (values[1], ())]
    return [tensors.opaque(name, operands, results, [labels[dim] for dim in changed], made)]


@reads("stablehlo.concatenate")
def _concatenate(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.joined(values, op.attributes["dimension"].value)]


@reads("stablehlo.dot_general")
def _dot(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    text = str(op.attributes["dot_dimension_numbers"])
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")
    found = [dims_in(text, f"{name}_dimensions") for name in names]
    sides = [[f"l{dim}" for dim in range(values[0].rank)], [f"r{dim}" for dim in range(values[1].rank)]]
    for at, (left, right) in enumerate(zip(found[0] + found[2], found[1] + found[3], strict=True)):
        sides[0][left] = sides[1][right] = f"{'b' if at < len(found[0]) else 'k'}{at}"
    results = [f"b{at}" for at in range(len(found[0]))]
    results += [label for side in sides for label in side if label[0] in "lr"]
    name = ("product", reading.type_of(op.results[0].type)[1], *reading.key(op, ("dot_dimension_numbers",)))
    return [reading.tensors.opaque(name, list(zip(values, sides, strict=True)), results, (), None, "add")]


@reads("stablehlo.reduce")
def _reduce(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    dims, count = numbers_of(op, "dimensions"), len(values) // 2
    kinds = [reduction_kind(op, 0, at) for at in range(count)]
    if None in kinds:
        labels = [f"d{dim}" for dim in range(values[0].rank)]
        results = [label for dim, label in enumerate(labels) if dim not in dims]
        operands = [(value, labels if at < count else ()) for at, value in enumerate(values)]
        name = ("several", reading.region_key(op))
        return [reading.tensors.opaque((*name, at), operands, results, ()) for at in range(count)]
    return [
        initial(reading, str(kind), start, reading.tensors.reduced(str(kind), value, dims))
        for kind, value, start in zip(kinds, values[:count], values[count:], strict=True)
    ]


@reads("stablehlo.sort")
def _sort(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    dim = op.attributes["dimension"].value
    labels = [f"d{one}" for one in range(values[0].rank)]
    results = [*labels[:dim], "o", *labels[dim + 1 :]]
    name = ("sort", dim, len(labels), reading.region_key(op), op.attributes["is_stable"])
    operands, made = [(value, labels) for value in values], {"o": values[0].shape[dim]}
    return [reading.tensors.opaque((*name, at), operands, results, [labels[dim]], made) for at in range(len(values))]


@reads("stablehlo.convolution")
def _convolution(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    tensors, text = reading.tensors, str(op.attributes["dimension_numbers"])
    left, right, out = (part.split(", ") for part in re.findall(r"\[(.*?)\]", text))
    spatial = sorted(one for one in left if one.isdigit())
    lhs = tensors.transposed(values[0], [left.index(one) for one in ("b", "f", *spatial)])
    rhs = tensors.transposed(values[1], [right.index(one) for one in ("i", "o", *spatial)])
    ones = [1] * len(spatial)
    strides, base, dilation = (
        numbers_of(op, name) or ones for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    padding = numbers_of(op, "padding") or [0] * (2 * len(spatial))
    reverse = numbers_of(op, "window_reversal") or [0] * len(spatial)
    rhs = tensors.reversed(rhs, [2 + at for at, one in enumerate(reverse) if one])
    shape, element = reading.type_of(op.results[0].type)
    along = {
        2 + at: Window(
            shape[out.index(str(at))],
            rhs.shape[2 + at],
            strides[at],
            dilation[at],
            *_ends(padding, at),
            base[at],
        )
        for at in range(len(spatial))
    }
    lhs = tensors.windows(lhs, reading.tensors.zero(reading.type_of(op.operands[0].type)[1]), along)
    groups, batches = (op.attributes[f"{name}_group_count"].value for name in ("feature", "batch"))
    window = [label for at in range(len(spatial)) for label in (f"o{at}", f"k{at}")]
    kernel = [f"k{at}" for at in range(len(spatial))]
    made = [f"o{at}" for at in range(len(spatial))]
    split = max(groups, batches)
    if split > 1:
        group_dim = 1 if groups > 1 else 0
        sizes = list(lhs.shape)
        lhs = tensors.reshaped(lhs, [*sizes[:group_dim], split, sizes[group_dim] // split, *sizes[group_dim + 1 :]])
        rhs = tensors.reshaped(rhs, [rhs.shape[0], split, rhs.shape[1] // split, *rhs.shape[2:]])
    labels = [["b", "g", "f"] if groups > 1 else ["g", "b", "f"], ["f", "g", "o"]]
    if split == 1:
        labels = [["b", "f"], ["f", "o"]]
    operands = [(lhs, [*labels[0], *window]), (rhs, [*labels[1], *kernel])]
    features = ["g", "o"] if split > 1 else ["o"]
    name = ("product", element, *(one for one in reading.key(op) if one[0] == "precision_config"))
    found = tensors.opaque(name, operands, ["b", *features, *made], (), None, "add")
    found = tensors.reshaped(found, [found.shape[0], -1 * -shape[out.index("f")], *found.shape[1 + len(features) :]])
    order = ["b", "f", *map(str, range(len(spatial)))]
    return [tensors.transposed(found, [order.index(one) for one in out])]


@reads("stablehlo.reduce_window")
def _reduce_window(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    tensors, shape = reading.tensors, reading.type_of(op.results[0].type)[0]
    rank, kind = len(shape), reduction_kind(op) if len(values) == 2 else None
    if kind is None:
        raise NotCertified("windows of several operands", "reduce_window")
    strides, dilation, base = (
        numbers_of(op, name) or [1] * rank for name in ("window_strides", "window_dilations", "base_dilations")
    )
    padding, sizes = numbers_of(op, "padding") or [0] * (2 * rank), numbers_of(op, "window_dimensions")
    along = {
        dim: Window(shape[dim], sizes[dim], strides[dim], dilation[dim], *_ends(padding, dim), base[dim])
        for dim in range(rank)
    }
    found = tensors.windows(values[0], values[1], along)
    return [initial(reading, kind, values[1], tensors.reduced(kind, found, [2 * dim + 1 for dim in range(rank)]))]


def _ends(padding: Sequence[int], at: int) -> tuple[int, int]:
    return padding[2 * at], padding[2 * at + 1]


def _along(op: Any, values: list[Value]) -> list[list[str]]:
    """Returns the labels of operands of an op along its last dimensions; its result has those of the first operand."""
    rank = values[0].rank
    core = len(numbers_of(op, "fft_length")) if op.name == "stablehlo.fft" else 2
    batch = [f"b{dim}" for dim in range(rank - core)]
    return [[*batch, *(f"{at}.{dim}" for dim in range(core))] for at in range(len(values))]


@reads("stablehlo.fft", "stablehlo.cholesky", "stablehlo.triangular_solve")
def _of_matrices(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    shape, element = reading.type_of(op.results[0].type)
    labels = _along(op, values)
    core = [label for of in labels for label in of if label[0] != "b"]
    made = {f"o{dim}": size for dim, size in enumerate(shape) if labels[0][dim][0] != "b"}
    results = [label for label in labels[0] if label[0] == "b"] + list(made)
    operands = list(zip(values, labels, strict=True))
    return [reading.tensors.opaque((op.name, element, reading.key(op)), operands, results, core, made)]


@reads("stablehlo.batch_norm_inference")
def _normalized(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    shape, feature = values[0].shape, op.attributes["feature_index"].value
    values = [values[0], *(reading.tensors.broadcast(value, shape, [feature]) for value in values[1:])]
    return [reading.tensors.pointwise((op.name, op.attributes["epsilon"]), values)]


@reads("stablehlo.dot")
def _plain_dot(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    labels = [["l", "k"][2 - values[0].rank :], ["k", "r"][: values[1].rank]]
    results = [label for of in labels for label in of if label != "k"]
    name = ("product", reading.type_of(op.results[0].type)[1], *reading.key(op))
    return [reading.tensors.opaque(name, list(zip(values, labels, strict=True)), results, (), None, "add")]
