# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a manual computation means on one device: its body on the block of each device, one after the other.

That holds as long as devices do not talk to each other or ask which one they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from mlir_shard.dialects import sdy, stablehlo
from mlir_shard.host import ir
from mlir_shard.passes import diagnostic
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.layout import Box, device_at, device_box

MANUAL = "sdy.manual_computation"
# A program has to stay one that can be compiled.
_MOST_BLOCKS = 64
_OF_DEVICES = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather",
        "all_reduce",
        "all_to_all",
        "collective_broadcast",
        "collective_permute",
        "cross-replica-sum",
        "custom_call",
        "infeed",
        "outfeed",
        "partition_id",
        "recv",
        "reduce_scatter",
        "replica_id",
        "rng",
        "send",
    )
)


def refusals(module: Any) -> list[diagnostic.Diagnostic]:
    """Why manual computations of a module mean nothing on one device, empty where all of them do mean something."""
    found: list[diagnostic.Diagnostic] = []
    for op in _manual_computations(module):
        message = _not_in_blocks(op)
        if message:
            found.append(diagnostic.at("error", message, op.location))
        for inner in _reached(op, module):
            if inner.name in _OF_DEVICES or inner.name.startswith(("mpi.", "shard.")):
                message = f"'{inner.name}' in a manual computation has no meaning on one device"
                found.append(diagnostic.at("error", message, inner.location))
    return found


def compute_on_one_device(module: Any) -> None:
    """Replaces each manual computation by its body on all blocks; there have to be no `refusals`."""
    # Inner ones first, so that they are copied with what holds them.
    for op in _manual_computations(module):
        _replace(op)


def _manual_computations(module: Any) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == MANUAL:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.POST_ORDER)
    return found


def _reached(op: Any, module: Any) -> Iterator[Any]:
    """The operations in a computation and in the functions it calls."""
    functions = {
        one.operation.attributes["sym_name"].value: one.operation
        for one in module.operation.regions[0].blocks[0].operations
        if one.operation.name == "func.func"
    }
    left, seen = [op], set()
    while left:
        inside: list[Any] = []

        def visit(one: Any, inside: list[Any] = inside) -> Any:
            inside.append(one)
            return ir.WalkResult.ADVANCE

        left.pop().walk(visit)
        for one in inside:
            callee = one.attributes["callee"].value if one.name == "func.call" else None
            if callee in functions and callee not in seen:
                seen.add(callee)
                left.append(functions[callee])
            yield one


def _not_in_blocks(op: Any) -> str:
    """What stands against a computation on blocks, empty if nothing does."""
    mesh = _mesh(op)
    if mesh is None:
        return f"'{op.name}' has no meaning on one device: its shardings have no mesh in common"
    for value, sharding in (
        *zip(op.operands, _shardings(op, "in_shardings"), strict=True),
        *zip(op.results, _shardings(op, "out_shardings"), strict=True),
    ):
        if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
            return f"'{op.name}' has no meaning on one device: {value.type} has no blocks of known sizes"
        if sharding.unreduced_axes:
            return f"'{op.name}' has no meaning on one device: {sharding} is unreduced"
        dims = zip(value.type.shape, sharding.dim_shardings, strict=True)
        if any(size % dim.sharded_size(mesh) for size, dim in dims):
            return f"'{op.name}' has no meaning on one device: blocks of {value.type} as {sharding} differ in size"
    blocks = len({tuple(ins) for ins, _ in _boxes(op, mesh)})
    return f"'{op.name}' has too many blocks to be run on one device: {blocks}" if blocks > _MOST_BLOCKS else ""


def _shardings(op: Any, name: str) -> list[TensorSharding]:
    """As far as they are along the manual axes: the body is about all of what others divide."""
    manual = op.attributes["manual_axes"].value.value
    return [sharding.only_axes(manual) for sharding in op.attributes[name].value.shardings]


def _mesh(op: Any) -> Mesh | None:
    """The mesh that all shardings are on, an empty one where there are none."""
    shardings = _shardings(op, "in_shardings") + _shardings(op, "out_shardings")
    meshes = [sdy.mesh_of(sharding, op) for sharding in shardings]
    if not meshes:
        return Mesh(())
    return meshes[0] if all(mesh == meshes[0] for mesh in meshes) else None


def _boxes(op: Any, mesh: Mesh) -> Iterator[tuple[list[Box], list[Box]]]:
    """What a device takes of each operand and gives of each result, for all places along the manual axes."""
    manual = op.attributes["manual_axes"].value.value
    sizes = [axis.size if axis.name in manual else 1 for axis in mesh.axes]
    ins, outs = _shardings(op, "in_shardings"), _shardings(op, "out_shardings")
    for coordinates in product(*map(range, sizes)):
        device = device_at(mesh, coordinates)
        yield (
            [device_box(one, mesh, value.type.shape, device) for one, value in zip(ins, op.operands, strict=True)],
            [device_box(one, mesh, value.type.shape, device) for one, value in zip(outs, op.results, strict=True)],
        )


def _replace(op: Any) -> None:
    mesh = _mesh(op)
    assert mesh is not None
    results: list[dict[Box, Any]] = [{} for _ in op.results]
    # Devices with the same blocks compute the same.
    computed: dict[tuple[Box, ...], list[Any]] = {}
    with ir.InsertionPoint(op), op.location:
        for ins, outs in _boxes(op, mesh):
            if tuple(ins) not in computed:
                computed[tuple(ins)] = _body_on(op, ins)
            for parts, box, value in zip(results, outs, computed[tuple(ins)], strict=True):
                parts.setdefault(box, value)
        joined = [_joined(parts, 0) for parts in results]
    for result, value in zip(op.results, joined, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def _body_on(op: Any, boxes: list[Box]) -> list[Any]:
    """The values that the body returns for these blocks of the operands, computed in front of the operation."""
    body = op.regions[0].blocks[0]
    values = {
        argument: value if box.size == tuple(value.type.shape) else stablehlo.slice_(value, box.start, box.stop)
        for argument, value, box in zip(body.arguments, op.operands, boxes, strict=True)
    }
    *inner, terminator = [one.operation for one in body.operations]
    for one in inner:
        copied = one.clone()
        _use(copied, values)
        values.update(zip(one.results, copied.results, strict=True))
    return [values.get(value, value) for value in terminator.operands]


def _use(op: Any, values: Mapping[Any, Any]) -> None:
    """Has an operation and what is in it use other values for those of the body it was copied from."""

    def visit(one: Any) -> Any:
        for index, operand in enumerate(one.operands):
            if operand in values:
                one.operands[index] = values[operand]
        return ir.WalkResult.ADVANCE

    op.walk(visit)


def _joined(parts: Mapping[Box, Any], dim: int) -> Any:
    """The tensor of which these are the blocks, which lie alike in dimensions before `dim`."""
    first = next(iter(parts))
    if dim == len(first.start):
        return parts[first]
    slabs: dict[int, dict[Box, Any]] = {}
    for box, value in parts.items():
        slabs.setdefault(box.start[dim], {})[box] = value
    values = [_joined(slabs[start], dim + 1) for start in sorted(slabs)]
    return values[0] if len(values) == 1 else stablehlo.concatenate(values, dim)
