# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that one device runs: their operands are resharded to it, and their results from it, by way of all devices.

Reshards to and from a device are only from and to a replicated sharding on the mesh of the program; another sharding
takes a second reshard. The idea is Shardy's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.operator.common_axes import is_on_one_device, mesh_of
from mlir_shard.resharding.sharding_steps import Reshard
from mlir_shard.sharding import Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.insertion import apply
from mlir_shard.transforms.shardings import Side, distinct_shardings_of, shardings_of

Meshes = Mapping[str, Mesh]


def check_signature(function: Any, meshes: Meshes) -> None:
    """Raises PassFailure if an argument or a result of the function is on a single device."""
    for side, word in ((Side.ARGUMENTS, "argument"), (Side.RESULTS, "result")):
        single = {one for one in distinct_shardings_of(function, side) if is_on_one_device(one, meshes)}
        for index, sharding in enumerate(shardings_of(function, side) if single else ()):
            if sharding in single:
                message = f"function {word} {index} cannot have a single-device (maximal) sharding attribute"
                raise PassFailure(
                    f"{message}, {sharding}: only results of operations can be on a single device", function
                )


def program_mesh(meshes: Meshes) -> str | None:
    """Returns the name of the first mesh that has axes, or None."""
    return next((name for name, mesh in meshes.items() if mesh.axes), None)


def reshard_around(op: Any, meshes: Meshes, made: list[Any]) -> list[tuple[int, TensorSharding]]:
    """Reshards the operands of an op with results on one device to it, and its results from it.

    Nothing is done in a module that has no mesh with axes. `made` gets the operations that are inserted.

    Returns:
        The index of each result whose users now get a resharded value, and the sharding of that value.

    Raises:
        PassFailure: if results are on different devices.
    """
    device = _device_sharding(op, meshes)
    everywhere = program_mesh(meshes)
    if everywhere is None:
        return []
    before = [sharding_of(result) for result in op.results]
    with ir.InsertionPoint(op):
        for index, operand in enumerate(op.operands):
            if isinstance(operand.type, ir.RankedTensorType):
                _reshard_operand(op, index, device, everywhere, made)
    moved = _reshard_results(op, before, everywhere, meshes, made)
    own = (
        device if isinstance(result.type, ir.RankedTensorType) else _replicated(0, everywhere) for result in op.results
    )
    op.attributes[sdy.SHARDING] = sdy.attribute(TensorShardingPerValue(tuple(own)), op.context)
    return moved


def _device_sharding(op: Any, meshes: Meshes) -> TensorSharding:
    found: TensorSharding | None = None
    for result in op.results:
        sharding = sharding_of(result)
        if sharding is None or not is_on_one_device(sharding, meshes):
            continue
        if found is not None and mesh_of(found, meshes) != mesh_of(sharding, meshes):
            message = (
                f"has conflicting single-device result shardings, on {found.mesh_text} and on {sharding.mesh_text}"
            )
            raise PassFailure(f"'{op.name}' {message}: all results of an operation must be on one device", op)
        found = sharding
    assert found is not None
    return _replicated(0, found.mesh_or_ref)


def _replicated(rank: int, mesh_or_ref: str | Mesh) -> TensorSharding:
    return TensorSharding.fully_closed(rank, mesh_or_ref)


def _reshard_operand(op: Any, index: int, device: TensorSharding, everywhere: str, made: list[Any]) -> None:
    operand = op.operands[index]
    replicated = _replicated(operand.type.rank, everywhere)
    have = sharding_of(operand) or replicated
    if have.mesh_or_ref == device.mesh_or_ref and have.is_equivalent(device):
        return
    is_replicated = have.mesh_or_ref == everywhere and have.is_fully_replicated
    steps = [Reshard(device)] if is_replicated else [Reshard(replicated), Reshard(device)]
    op.operands[index] = apply(operand, steps, made)


def _reshard_results(
    op: Any, before: list[TensorSharding | None], everywhere: str, meshes: Meshes, made: list[Any]
) -> list[tuple[int, TensorSharding]]:
    moved = []
    with ir.InsertionPoint.after(op):
        for index, result in enumerate(op.results):
            if not isinstance(result.type, ir.RankedTensorType):
                continue
            replicated = _replicated(result.type.rank, everywhere)
            wanted = before[index]
            if wanted is None or is_on_one_device(wanted, meshes):
                wanted = replicated
            first = apply(result, [Reshard(replicated)], made)
            last = first if wanted == replicated else apply(first, [Reshard(wanted)], made)
            result.replace_all_uses_except(last, [first.owner.operation])
            moved.append((index, wanted))
    return moved
