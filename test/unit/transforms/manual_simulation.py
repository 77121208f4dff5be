# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a StableHLO program in NumPy: globally, and the bodies of manual computations on every device in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlir_shard.dialects import sdy
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.layout import device_box

Array = Any
# The array of a value on each device, or the one global array.
Lanes = list[Array]

_ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "stablehlo.add": np.add,
    "stablehlo.divide": np.floor_divide,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": np.multiply,
    "stablehlo.remainder": np.remainder,
}
_COMPARISONS: dict[str, Callable[..., Array]] = {"GE": np.greater_equal, "LE": np.less_equal}


def run(function: Any, inputs: Sequence[Array], meshes: dict[str, Mesh]) -> list[Array]:
    """Returns the results of a function of global tensors."""
    block = function.regions[0].blocks[0]
    return [lanes[0] for lanes in _Program(meshes, (0,)).run(block, [[one] for one in inputs])]


class _Program:
    def __init__(self, meshes: dict[str, Mesh], devices: Sequence[int]) -> None:
        self._meshes = meshes
        self._devices = devices
        self._values: dict[Any, Lanes] = {}

    def run(self, block: Any, arguments: Sequence[Lanes]) -> list[Lanes]:
        self._values |= dict(zip(block.arguments, arguments, strict=True))
        *ops, terminator = (op.operation for op in block.operations)
        for op in ops:
            operands = [self._values[value] for value in op.operands]
            self._values |= dict(zip(op.results, self._results(op, operands), strict=True))
        return [self._values[value] for value in terminator.operands]

    def _results(self, op: Any, operands: list[Lanes]) -> list[Lanes]:
        if op.name == "sdy.manual_computation":
            return self._manual(op, operands)
        if op.name == "stablehlo.collective_permute":
            return [self._permuted(op, operands[0])]
        if op.name in ("stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.all_to_all"):
            return [self._grouped(op, operands[0])]
        if op.name in ("stablehlo.partition_id", "stablehlo.replica_id"):
            return [[np.array(device, np.uint32) for device in self._devices]]
        lanes = [compute(op, list(one)) for one in zip(*operands, strict=True)] if operands else []
        lanes = lanes or [compute(op, [])] * len(self._devices)
        for lane in lanes:
            assert list(lane.shape) == list(op.results[0].type.shape), op
        return [lanes]

    def _manual(self, op: Any, operands: list[Lanes]) -> list[Lanes]:
        manual = op.attributes["manual_axes"].value.value
        before, after = (
            [sharding.only_axes(manual) for sharding in op.attributes[name].value.shardings]
            for name in ("in_shardings", "out_shardings")
        )
        mesh = self._mesh(before[0])
        arguments = [
            [whole[device_box(sharding, mesh, whole.shape, device).slices] for device in mesh.devices]
            for (whole,), sharding in zip(operands, before, strict=True)
        ]
        inside = _Program(self._meshes, mesh.devices).run(op.regions[0].blocks[0], arguments)
        results = []
        for lanes, sharding, result in zip(inside, after, op.results, strict=True):
            whole = np.zeros(result.type.shape, lanes[0].dtype)
            for device, lane in zip(mesh.devices, lanes, strict=True):
                whole[device_box(sharding, mesh, whole.shape, device).slices] = lane
            results.append([whole])
        return results

    def _mesh(self, sharding: TensorSharding) -> Mesh:
        ref = sharding.mesh_or_ref
        return ref if isinstance(ref, Mesh) else self._meshes[ref]

    def _permuted(self, op: Any, lanes: Lanes) -> Lanes:
        held = dict(zip(self._devices, lanes, strict=True))
        senders = {target: source for source, target in np.array(op.attributes["source_target_pairs"]).tolist()}
        return [held[senders[one]] if one in senders else np.zeros_like(lanes[0]) for one in self._devices]

    def _grouped(self, op: Any, lanes: Lanes) -> Lanes:
        held = dict(zip(self._devices, lanes, strict=True))
        results: dict[int, Array] = {}
        for group in np.array(op.attributes["replica_groups"]).tolist():
            parts = [held[device] for device in group]
            for index, device in enumerate(group):
                if op.name == "stablehlo.all_reduce":
                    results[device] = sum(parts[1:], parts[0])
                elif op.name == "stablehlo.all_gather":
                    results[device] = np.concatenate(parts, op.attributes["all_gather_dim"].value)
                else:
                    split, concatenated = (op.attributes[f"{one}_dimension"].value for one in ("split", "concat"))
                    pieces = [np.split(part, len(group), split)[index] for part in parts]
                    results[device] = np.concatenate(pieces, concatenated)
        return [results[device] for device in self._devices]


def compute(op: Any, operands: list[Array]) -> Array:
    """Returns the result of an op that does not communicate."""
    attributes = op.attributes
    if op.name in _ELEMENTWISE:
        return _ELEMENTWISE[op.name](*operands)
    if op.name in ("sdy.reshard", "sdy.all_gather", "stablehlo.convert"):
        return operands[0].astype(np.int64) if operands[0].dtype == np.uint32 else operands[0]
    if op.name == "stablehlo.constant":
        value = attributes["value"]
        if value.is_splat:
            return np.full(value.type.shape, value.get_splat_value().value)
        return np.array(value)
    if op.name == "stablehlo.compare":
        return _COMPARISONS[str(attributes["comparison_direction"]).split()[-1].rstrip(">")](*operands)
    if op.name == "stablehlo.select":
        return operands[1] if operands[0] else operands[2]
    if op.name == "stablehlo.broadcast_in_dim":
        assert operands[0].ndim == 0
        return np.full(op.results[0].type.shape, operands[0])
    if op.name == "stablehlo.concatenate":
        return np.concatenate(operands, attributes["dimension"].value)
    if op.name == "stablehlo.reshape":
        return operands[0].reshape(op.results[0].type.shape)
    if op.name == "stablehlo.transpose":
        return operands[0].transpose(list(attributes["permutation"]))
    if op.name == "stablehlo.reverse":
        return np.flip(operands[0], list(attributes["dimensions"]))
    if op.name == "stablehlo.dot":
        return operands[0] @ operands[1]
    if op.name == "stablehlo.slice":
        bounds = (list(attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
        return operands[0][tuple(slice(*bound) for bound in zip(*bounds, strict=True))]
    if op.name == "stablehlo.dynamic_slice":
        whole, *starts = operands
        sizes = list(attributes["slice_sizes"])
        # A start index is clamped so that the slice is in bounds.
        begins = [min(max(int(start), 0), n - size) for start, n, size in zip(starts, whole.shape, sizes, strict=True)]
        return whole[tuple(slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True))]
    assert op.name == "stablehlo.pad", op.name
    return padded(operands, *(list(attributes[name]) for name in sorted(attributes) if name.endswith(PADDINGS)))


PADDINGS = ("edge_padding_high", "edge_padding_low", "interior_padding")


def padded(operands: list[Array], high: list[int], low: list[int], between: list[int]) -> Array:
    """Returns the result of a pad of a tensor with a scalar; edge padding may be negative."""
    value, padding = operands
    spread = [max(0, (size - 1) * (gap + 1) + 1) for size, gap in zip(value.shape, between, strict=True)]
    whole = np.full(spread, padding)
    whole[tuple(slice(None, None, gap + 1) for gap in between)] = value
    for dim, (before, after) in enumerate(zip(low, high, strict=True)):
        widths = [(0, 0)] * whole.ndim
        widths[dim] = (max(0, before), max(0, after))
        whole = np.pad(whole, widths, constant_values=padding)
        whole = np.take(whole, range(max(0, -before), whole.shape[dim] - max(0, -after)), dim)
    return whole


def function_and_meshes(module: Any) -> tuple[Any, dict[str, Mesh]]:
    """Returns the only function of a module, and the meshes of the module."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    (function,) = functions
    return function, sdy.meshes(module.operation)
