# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers of devices in manual computations on a mesh whose devices are treated as if they were in order."""

from __future__ import annotations

from typing import Any

from mlir_shard.deferred import numpy as np
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import operations_named, ops_below
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.replica_groups import REPLICA_GROUPS
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.device_grid import DeviceGrid

_NUMBERS = frozenset(op_names("stablehlo", "partition_id replica_id"))
_LISTS = (REPLICA_GROUPS, "source_target_pairs")


def renumber_devices(module: Any, grid: DeviceGrid) -> None:
    """Replaces device numbers in bodies of manual computations by the numbers that devices have on their mesh.

    On a mesh in `grid.reordered`, device p of the program runs as the device at position p of the mesh: it gets the
    number of that device, and collectives name devices by their positions.
    """
    for manual in operations_named(module, "sdy.manual_computation") if grid.reordered else ():
        mesh = _mesh_of(manual)
        if mesh is None or mesh not in grid.reordered:
            continue
        for op in ops_below(manual):
            if op.name in _NUMBERS:
                _renumber(op, mesh)
            for name in _LISTS:
                if name in op.attributes and isinstance(op.attributes[name], ir.DenseElementsAttr):
                    op.attributes[name] = _at_positions(op.attributes[name], mesh)


def _mesh_of(manual: Any) -> Mesh | None:
    for name in ("in_shardings", "out_shardings"):
        for sharding in manual.attributes[name].value.shardings:
            return sdy.mesh_of(sharding, manual)
    return None


def _renumber(op: Any, mesh: Mesh) -> None:
    result = op.results[0]
    with ir.InsertionPoint.after(op), op.location:
        position = stablehlo.convert(result, stablehlo.i64())
        number = stablehlo.convert(stablehlo.entry(mesh.devices, position), result.type.element_type)
    result.replace_all_uses_except(number, [position.owner.operation])


def _at_positions(attribute: Any, mesh: Mesh) -> Any:
    """Returns a list of devices as positions on the mesh; -1, which fills up short groups, stays."""
    positions = {device: position for position, device in enumerate(mesh.devices)}
    listed = [positions.get(device, device) for device in attribute]
    return ir.DenseElementsAttr.get(np.array(listed, np.int64).reshape(tuple(attribute.type.shape)))
