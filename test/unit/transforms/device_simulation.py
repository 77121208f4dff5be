# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a function in NumPy on any number of virtual devices in lockstep: a reference semantics of shard collectives.

A global program runs on one device, where ops of sdy are the identity. Uninitialized tensors hold NaN, which makes
reads of them visible in the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from mlir_shard.host import dialect, ir
from mlir_shard.ir import shard

Array = Any
# The array of a value on each device.
Lanes = list[Array]

_linalg = dialect("linalg")

_UNARY: dict[str, Callable[[Array], Array]] = {
    "arith.negf": np.negative,
    "math.exp": np.exp,
    "math.tanh": np.tanh,
    "stablehlo.exponential": np.exp,
    "stablehlo.negate": np.negative,
    "stablehlo.tanh": np.tanh,
}
_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.mulf": np.multiply,
    "arith.muli": np.multiply,
    "arith.subf": np.subtract,
    "arith.subi": np.subtract,
    "arith.andi": np.logical_and,
    "arith.divui": np.floor_divide,
    "arith.remui": np.remainder,
    "stablehlo.add": np.add,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": np.multiply,
    "stablehlo.subtract": np.subtract,
}
# Comparisons of signed integers, in the order of the predicate numbers.
_COMPARISONS: tuple[Any, ...] = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
_REDUCTIONS: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "product": np.multiply}


def run(module: Any, inputs: Sequence[Sequence[Array]], name: str = "main") -> list[list[Array]]:
    """Returns the results of a function on each device, given its arguments on each device."""
    operations = [op.operation for op in module.body.operations]
    function = next(op for op in operations if op.name == "func.func" and op.attributes["sym_name"].value == name)
    grids = {op.attributes["sym_name"].value: shard.grid_shape(op) for op in operations if op.name == "shard.grid"}
    return _Devices(len(inputs), grids).call(function, inputs)


class _Devices:
    def __init__(self, count: int, grids: dict[str, tuple[int, ...]]) -> None:
        self._count = count
        self._grids = grids
        self._values: dict[Any, Lanes] = {}
        # The messages of each sender and receiver, in the order of sending.
        self._sent: dict[tuple[int, int], list[Array]] = {}
        self._active = [True] * count

    def call(self, function: Any, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        block = function.regions[0].blocks[0]
        for index, argument in enumerate(block.arguments):
            self._values[argument] = [np.asarray(device[index]) for device in inputs]
            for lane in self._values[argument]:
                assert lane.shape == tuple(argument.type.shape), (lane.shape, argument.type)
        returned = self._run(block, [True] * self._count)
        return [[lanes[device] for lanes in returned] for device in range(self._count)]

    def _run(self, block: Any, active: list[bool]) -> list[Lanes]:
        """Runs a block and returns the operands of its terminator; only the `active` devices send and receive."""
        for op in block.operations:
            op = op.operation
            operands = [self._values[operand] for operand in op.operands]
            if op.name in ("func.return", "scf.yield"):
                return operands
            if op.name == "scf.if":
                self._branch(op, operands[0], active)
                continue
            self._active = active
            for result, lanes in zip(op.results, self._evaluate(op, operands), strict=True):
                for lane in lanes:
                    shape = tuple(result.type.shape) if isinstance(result.type, ir.RankedTensorType) else ()
                    assert lane.shape == shape, (op.name, lane.shape, result.type)
                self._values[result] = lanes
        raise AssertionError("the block does not end")

    def _branch(self, op: Any, condition: Lanes, active: list[bool]) -> None:
        taken = [bool(one) for one in condition]
        found = []
        for region, chosen in zip(op.regions, (taken, [not one for one in taken]), strict=True):
            both = [one and other for one, other in zip(chosen, active, strict=True)]
            found.append(self._run(region.blocks[0], both) if len(region.blocks) else [])
        for number, result in enumerate(op.results):
            lanes = [found[0 if one else 1][number][device] for device, one in enumerate(taken)]
            self._values[result] = lanes

    def _evaluate(self, op: Any, operands: list[Lanes]) -> list[Lanes]:
        if op.name.startswith("shard."):
            return self._collective(op, operands)
        if op.name.startswith("sdy."):
            return [operands[0]]
        per_device = [
            _evaluate(op, [lanes[device] for lanes in operands], lambda value, at=device: self._values[value][at])
            for device in range(self._count)
        ]
        return [list(lanes) for lanes in zip(*per_device, strict=True)]

    def _collective(self, op: Any, operands: list[Lanes]) -> list[Lanes]:
        shape = self._grids[op.attributes["grid"].value]
        if op.name == "shard.process_multi_index":
            axes = list(op.attributes["axes"])
            return [
                [np.asarray(self._coordinates(device, shape)[axis]) for device in range(self._count)] for axis in axes
            ]
        axes = list(op.attributes["grid_axes"])
        lanes = operands[0]
        if op.name in ("shard.send", "shard.recv"):
            return [self._message(op, operands, axes, shape)]
        result: Lanes = []
        for device in range(self._count):
            group = self._group(device, shape, axes)
            blocks = [lanes[other] for other in group]
            if op.name == "shard.all_gather":
                result.append(np.concatenate(blocks, axis=op.attributes["gather_axis"].value))
            elif op.name == "shard.all_slice":
                parts = np.split(lanes[device], len(group), axis=op.attributes["slice_axis"].value)
                result.append(parts[group.index(device)])
            elif op.name == "shard.all_to_all":
                split, joined = (op.attributes[name].value for name in ("split_axis", "concat_axis"))
                parts = [np.split(block, len(group), axis=split)[group.index(device)] for block in blocks]
                result.append(np.concatenate(parts, axis=joined))
            else:
                assert op.name in ("shard.all_reduce", "shard.reduce_scatter"), op.name
                kind = str(op.attributes["reduction"]).removeprefix("#shard<partial ").removesuffix(">")
                reduced = _REDUCTIONS[kind].reduce(blocks)
                if op.name == "shard.reduce_scatter":
                    reduced = np.split(reduced, len(group), axis=op.attributes["scatter_dim"].value)[
                        group.index(device)
                    ]
                result.append(reduced)
        return [result]

    def _message(self, op: Any, operands: list[Lanes], axes: list[int], shape: Sequence[int]) -> Lanes:
        named = op.attributes["destination" if op.name == "shard.send" else "source"]
        assert all(number == shard.DYNAMIC for number in named), op
        result = []
        for device in range(self._count):
            if not self._active[device]:
                result.append(operands[0][device])
                continue
            coordinates = list(self._coordinates(device, shape))
            for axis, lanes in zip(axes, operands[1:], strict=True):
                coordinates[axis] = int(lanes[device])
            other = int(np.ravel_multi_index(coordinates, shape))
            if op.name == "shard.send":
                self._sent.setdefault((device, other), []).append(operands[0][device])
                result.append(operands[0][device])
            else:
                result.append(self._sent[other, device].pop(0))
        return result

    def _coordinates(self, device: int, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(int(index) for index in np.unravel_index(device, shape))

    def _group(self, device: int, shape: Sequence[int], axes: Sequence[int]) -> list[int]:
        """Returns the devices that differ from `device` only along the axes, in row-major order of the axes."""
        group = []
        for position in product(*(range(shape[axis]) for axis in axes)):
            coordinates = list(self._coordinates(device, shape))
            for axis, index in zip(axes, position, strict=True):
                coordinates[axis] = index
            group.append(int(np.ravel_multi_index(coordinates, shape)))
        assert len(group) == prod(shape[axis] for axis in axes)
        return group


def _evaluate(op: Any, operands: list[Array], around: Callable[[Any], Array]) -> list[Array]:
    """Returns the results of an op on one device; `around` returns the array of a value that its region captures."""
    name = op.name
    if name in _UNARY or name in _BINARY or name in ("arith.cmpi", "arith.select", "arith.index_cast", "arith.sitofp"):
        return [_elementwise(op, operands)]
    if name in ("arith.constant", "stablehlo.constant"):
        return [_constant(op.attributes["value"], op.results[0].type)]
    if name == "tensor.empty":
        return [np.full(op.results[0].type.shape, np.nan, np.float32)]
    if name == "tensor.splat":
        return [np.full(op.results[0].type.shape, operands[0], operands[0].dtype)]
    if name in ("tensor.collapse_shape", "tensor.expand_shape"):
        return [operands[0].reshape(op.results[0].type.shape)]
    if name == "tensor.extract":
        return [operands[0][tuple(map(int, operands[1:]))]]
    if name == "tensor.extract_slice":
        return [operands[0][_slices(op, operands[1:])]]
    if name == "tensor.insert_slice":
        target = np.array(operands[1])
        target[_slices(op, operands[2:])] = operands[0]
        return [target]
    if name == "linalg.transpose":
        return [operands[0].transpose(list(op.attributes["permutation"]))]
    if name.startswith("linalg."):
        return _structured(op, operands, around)
    return [_STABLEHLO[name](op, operands)]


def _slices(op: Any, starts: list[Array]) -> tuple[slice, ...]:
    """Returns the index of a slice of static size; `starts` are the operands for the dynamic offsets."""
    left = iter(starts)
    static, sizes, strides = (op.attributes[f"static_{name}"] for name in ("offsets", "sizes", "strides"))
    offsets = [int(next(left)) if start == shard.DYNAMIC else start for start in static]
    return tuple(
        slice(start, start + (size - 1) * stride + 1, stride)
        for start, size, stride in zip(offsets, sizes, strides, strict=True)
    )


def _constant(value: Any, type_: Any) -> Array:
    if isinstance(value, ir.DenseElementsAttr):
        array = np.array(value)
        return np.full(type_.shape, array.flat[0], array.dtype) if value.is_splat else array
    return np.asarray(value.value, np.float32 if isinstance(value, ir.FloatAttr) else np.int64)


def _elementwise(op: Any, operands: list[Array]) -> Array:
    if op.name in _UNARY:
        return _UNARY[op.name](operands[0])
    if op.name in _BINARY:
        return _BINARY[op.name](*operands)
    if op.name == "arith.cmpi":
        return np.asarray(_COMPARISONS[op.attributes["predicate"].value](*operands))
    if op.name == "arith.select":
        return np.where(*operands)
    return np.asarray(operands[0], np.float32 if op.name == "arith.sitofp" else np.int64)


def _structured(op: Any, operands: list[Array], around: Callable[[Any], Array]) -> list[Array]:
    """Runs the loop nest: all parallel loops at once, the reduction loops one iteration after the other."""
    maps = [attr.value for attr in _linalg.get_indexing_maps(op)]
    inputs = len(operands) - len(op.results)
    sizes: dict[int, int] = {}
    for map_, array in zip(maps, operands, strict=True):
        for expr, size in zip(map_.results, array.shape, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                sizes[expr.position] = size
    parallel = sorted({expr.position for map_ in maps[inputs:] for expr in map_.results})
    reduced = sorted(set(sizes) - set(parallel))
    outputs = [np.array(array) for array in operands[inputs:]]
    grids = np.indices([sizes[loop] for loop in parallel])
    for position in product(*(range(sizes[loop]) for loop in reduced)):
        at: dict[int, Array] = dict(zip(parallel, grids, strict=True)) | dict(zip(reduced, position, strict=True))
        where = [tuple(_affine(expr, at) for expr in map_.results) for map_ in maps]
        elements = [array[index] for array, index in zip([*operands[:inputs], *outputs], where, strict=True)]
        for output, index, value in zip(outputs, where[inputs:], _body(op, elements, at, around), strict=True):
            output[index] = value
    return outputs


def _body(op: Any, elements: list[Array], at: dict[int, Array], around: Callable[[Any], Array]) -> list[Array]:
    block = op.regions[0].blocks[0]
    values: dict[Any, Array] = dict(zip(block.arguments, elements, strict=True))

    def value_of(value: Any) -> Array:
        return values[value] if value in values else around(value)

    for inner in block.operations:
        inner = inner.operation
        if inner.name == "linalg.yield":
            return [value_of(value) for value in inner.operands]
        if inner.name == "linalg.index":
            values[inner.results[0]] = np.asarray(at[inner.attributes["dim"].value])
        elif inner.name == "arith.constant":
            values[inner.results[0]] = _constant(inner.attributes["value"], inner.results[0].type)
        else:
            values[inner.results[0]] = _elementwise(inner, [value_of(value) for value in inner.operands])
    raise AssertionError("the body does not yield")


def _affine(expr: Any, at: dict[int, Array]) -> Array:
    if isinstance(expr, ir.AffineDimExpr):
        return at[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    left, right = _affine(expr.lhs, at), _affine(expr.rhs, at)
    return left + right if isinstance(expr, ir.AffineAddExpr) else left * right


def _broadcast_in_dim(op: Any, operands: list[Array]) -> Array:
    shape = list(op.results[0].type.shape)
    aligned = [1] * len(shape)
    for size, dim in zip(operands[0].shape, op.attributes["broadcast_dimensions"], strict=True):
        aligned[dim] = size
    return np.broadcast_to(operands[0].reshape(aligned), shape)


def _dot_general(op: Any, operands: list[Array]) -> Array:
    numbers = dialect_numbers(op)
    lhs, rhs = operands
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    lhs_names = [next(letters) for _ in lhs.shape]
    rhs_names = [next(letters) for _ in rhs.shape]
    for mine, theirs in (*zip(*numbers[:2], strict=True), *zip(*numbers[2:], strict=True)):
        rhs_names[theirs] = lhs_names[mine]
    batch = [lhs_names[dim] for dim in numbers[0]]
    left = [name for dim, name in enumerate(lhs_names) if dim not in (*numbers[0], *numbers[2])]
    right = [name for dim, name in enumerate(rhs_names) if dim not in (*numbers[1], *numbers[3])]
    return np.einsum(f"{''.join(lhs_names)},{''.join(rhs_names)}->{''.join(batch + left + right)}", lhs, rhs)


def dialect_numbers(op: Any) -> tuple[list[int], list[int], list[int], list[int]]:
    """Returns the batching dimensions of lhs and rhs and the contracting dimensions of both, of a dot_general."""
    from mlir_shard import host

    numbers = host.module("_mlir_libs._stablehlo").DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    return (
        list(numbers.lhs_batching_dimensions),
        list(numbers.rhs_batching_dimensions),
        list(numbers.lhs_contracting_dimensions),
        list(numbers.rhs_contracting_dimensions),
    )


def _reduce(op: Any, operands: list[Array]) -> Array:
    combine: Any = _BINARY[next(iter(op.regions[0].blocks[0].operations)).operation.name]
    value, initial = operands
    return combine(combine.reduce(value, axis=tuple(op.attributes["dimensions"])), initial)


def _iota(op: Any, operands: list[Array]) -> Array:
    shape, dim = op.results[0].type.shape, op.attributes["iota_dimension"].value
    along = [size if one == dim else 1 for one, size in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[dim]).reshape(along), shape)


def _compare(op: Any, operands: list[Array]) -> Array:
    direction = str(op.attributes["comparison_direction"]).removesuffix(">").split()[-1]
    return {"GE": np.greater_equal, "LT": np.less}[direction](*operands)


_STABLEHLO: dict[str, Callable[[Any, list[Array]], Array]] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.compare": _compare,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.iota": _iota,
    "stablehlo.reduce": _reduce,
    "stablehlo.reshape": lambda op, operands: operands[0].reshape(op.results[0].type.shape),
    "stablehlo.select": lambda op, operands: np.where(*operands),
    "stablehlo.transpose": lambda op, operands: operands[0].transpose(list(op.attributes["permutation"])),
}
