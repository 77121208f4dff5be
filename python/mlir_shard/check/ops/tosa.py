# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of tosa."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.ops.reading import Reading, Shape, numbers_of, reads
from mlir_shard.check.ops.tensors import Value, Window

_POINTWISE = (
    "abs add arithmetic_right_shift bitwise_and bitwise_not bitwise_or bitwise_xor cast ceil clamp clz cos equal erf "
    "exp floor greater greater_equal identity intdiv log logical_and logical_left_shift logical_not logical_or "
    "logical_right_shift logical_xor maximum minimum mul negate pow reciprocal rsqrt sigmoid sin sub tanh"
)
_KINDS = {
    "sum": "add",
    "max": "maximum",
    "min": "minimum",
    "product": "multiply",
    "all": "and",
    "any": "or",
}
# Labels of the dimensions of the operands and of the result of ops; `*` is a dimension that the op works along.
_ALONG = {"gather": ("n*c", "nw", "nwc"), "resize": ("n**c", "n**c"), "fft2d": ("n**", "n**"), "rfft2d": ("n**", "n**")}


def _stretched(reading: Reading, op: Any, values: Sequence[Value]) -> list[Value]:
    """Returns the operands of the rank of the result, with dimensions of size 1 repeated; others are left out."""
    shape = reading.type_of(op.results[0].type)[0]
    return [reading.tensors.broadcast(value, shape, range(len(shape))) for value in values if value.rank == len(shape)]


@reads(*(f"tosa.{name}" for name in _POINTWISE.split()))
def _pointwise(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    if op.name == "tosa.identity":
        return values
    name = (op.name, reading.type_of(op.results[0].type)[1], *reading.key(op))
    count = {"tosa.mul": 2, "tosa.negate": 1}.get(op.name, len(values))
    how = tuple(reading.tensors.number_of(value, op.name) for value in values[count:])
    return [reading.tensors.pointwise((*name, *how), _stretched(reading, op, values[:count]))]


@reads("tosa.select")
def _select(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.selected(*_stretched(reading, op, values))]


@reads("tosa.const")
def _constant(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.constant(op.attributes["values"], op.results[0].type)]


@reads("tosa.const_shape")
def _shape(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [Shape(tuple(numbers_of(op, "values")))]


def _sizes(value: Value) -> list[int]:
    if not isinstance(value, Shape):
        raise NotCertified("a shape that is not constant", "tosa")
    return list(value.sizes)


@reads(*(f"tosa.reduce_{name}" for name in _KINDS))
def _reduce(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    kind = _KINDS[op.name.rpartition("_")[2]]
    if "nan_mode" in op.attributes and "PROPAGATE" not in str(op.attributes["nan_mode"]):
        raise NotCertified("a reduction that ignores NaN", op.name)
    value = reading.tensors.reduced(kind, values[0], [op.attributes["axis"].value])
    return [reading.tensors.reshaped(value, reading.type_of(op.results[0].type)[0])]


@reads("tosa.argmax")
def _argmax(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    axis, labels = op.attributes["axis"].value, [f"d{dim}" for dim in range(values[0].rank)]
    results = [label for dim, label in enumerate(labels) if dim != axis]
    shape, element = reading.type_of(op.results[0].type)
    if values[0].shape[axis] == 1:
        return [reading.tensors.index(element, (0, ()), [(size,) for size in shape])]
    name = (op.name, *reading.key(op, ("axis",)))
    return [reading.tensors.opaque(name, [(values[0], labels)], results, [labels[axis]])]


@reads("tosa.transpose")
def _transpose(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.transposed(values[0], numbers_of(op, "perms"))]


@reads("tosa.reverse")
def _reverse(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.reversed(values[0], [op.attributes["axis"].value])]


@reads("tosa.reshape")
def _reshape(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.reshaped(values[0], reading.type_of(op.results[0].type)[0])]


@reads("tosa.concat")
def _concatenate(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.joined(values, op.attributes["axis"].value)]


@reads("tosa.pad")
def _pad(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    ends = _sizes(values[1])
    return [reading.tensors.padded(values[0], reading.tensors.reshaped(values[2], ()), ends[::2], ends[1::2])]


@reads("tosa.slice")
def _slice(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    value = values[0]
    for dim, (start, size) in enumerate(zip(_sizes(values[1]), _sizes(values[2]), strict=True)):
        value = reading.tensors.sliced(value, dim, (start, ()), size)
    return [value]


@reads("tosa.tile")
def _tile(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    shape = values[0].shape
    both = [size for pair in zip(_sizes(values[1]), shape, strict=True) for size in pair]
    value = reading.tensors.broadcast(values[0], both, range(1, len(both), 2))
    return [reading.tensors.reshaped(value, reading.type_of(op.results[0].type)[0])]


@reads(*(f"tosa.{name}" for name in _ALONG))
def _along(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    *given, result = _ALONG[op.name.partition(".")[2]]
    labels = [[f"{at}.{dim}" if one == "*" else one for dim, one in enumerate(of)] for at, of in enumerate(given)]
    core = [label for of in labels for label in of if len(label) > 1]
    shapes = tuple(value for value in values if isinstance(value, Shape))
    values = [value for value in values if not isinstance(value, Shape)]
    operands = [(value, labels[min(at, len(labels) - 1)]) for at, value in enumerate(values)]
    found = []
    for at, one in enumerate(op.results):
        shape, element = reading.type_of(one.type)
        results = [f"o{dim}" if label == "*" else label for dim, label in enumerate(result)]
        made = {label: size for label, size in zip(results, shape, strict=True) if label[0] == "o"}
        name = (op.name, element, *reading.key(op), shapes, at)
        found.append(reading.tensors.opaque(name, operands, results, core, made))
    return found


def _zeros(reading: Reading, values: Sequence[Value]) -> None:
    if any(reading.tensors.number_of(value, "zero point") not in ("0", "0.0", "-0.0") for value in values):
        raise NotCertified("a zero point that is not zero", "contraction")


@reads("tosa.matmul")
def _matmul(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    _zeros(reading, values[2:])
    name = ("product", reading.type_of(op.results[0].type)[1])
    operands = list(zip(values[:2], ("bik", "bkj"), strict=True))
    return [reading.tensors.opaque(name, operands, "bij", (), None, "add")]


def _of_images(reading: Reading, op: Any, value: Value, number: Value, kernel: Sequence[int]) -> Value:
    """Returns the windows of images, whose spatial dimensions follow the first dimension."""
    strides, pads = numbers_of(op, "stride"), numbers_of(op, "pad")
    dilation, counts = numbers_of(op, "dilation") or [1] * len(kernel), reading.type_of(op.results[0].type)[0][1:]
    # Elements that are left over at the end are in no window.
    along = {
        1 + at: Window(
            counts[at],
            size,
            strides[at],
            dilation[at],
            pads[2 * at],
            (counts[at] - 1) * strides[at] + (size - 1) * dilation[at] + 1 - value.shape[1 + at] - pads[2 * at],
        )
        for at, size in enumerate(kernel)
    }
    return reading.tensors.windows(value, number, along)


@reads("tosa.conv2d", "tosa.conv3d", "tosa.depthwise_conv2d")
def _convolution(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    value, kernel, bias = values[:3]
    _zeros(reading, values[3:])
    shape, element = reading.type_of(op.results[0].type)
    is_deep = op.name == "tosa.depthwise_conv2d"
    sizes = kernel.shape[:2] if is_deep else kernel.shape[1:-1]
    around, inside = ([f"{name}{at}" for at in range(len(sizes))] for name in "ok")
    each = [label for pair in zip(around, inside, strict=True) for label in pair]
    if is_deep:
        labels, results = [["n", *each, "c"], [*inside, "c", "m"]], ["n", *around, "c", "m"]
    else:
        labels, results = [["n", *each, "c"], ["m", *inside, "c"]], ["n", *around, "m"]
    zero = reading.tensors.zero(reading.type_of(op.operands[0].type)[1])
    operands = [(_of_images(reading, op, value, zero, sizes), labels[0]), (kernel, labels[1])]
    found = reading.tensors.opaque(("product", element), operands, results, (), None, "add")
    found = reading.tensors.reshaped(found, shape)
    bias = reading.tensors.broadcast(bias, shape, [len(shape) - 1])
    return [reading.tensors.pointwise(("tosa.add", element, "bias"), [found, bias])]


@reads("tosa.max_pool2d", "tosa.avg_pool2d")
def _pool(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    kernel, element = numbers_of(op, "kernel"), reading.type_of(op.results[0].type)[1]
    modes = str(op.attributes["nan_mode"]) if "nan_mode" in op.attributes else "PROPAGATE"
    kind = "maximum" if op.name == "tosa.max_pool2d" else "add"
    number = reading.tensors.neutral(kind, element, ())
    if number is None or element[0] not in "fb" or "PROPAGATE" not in modes:
        raise NotCertified("a pool of integers, or one that ignores NaN", op.name)
    if kind == "add" and any(numbers_of(op, "pad")):
        raise NotCertified("an average of padded images", op.name)
    _zeros(reading, values[1:])
    found = _of_images(reading, op, values[0], number, kernel)
    found = reading.tensors.reduced(kind, found, [2, 4])
    return [found if kind == "maximum" else reading.tensors.pointwise(("average", element, *kernel), [found])]
