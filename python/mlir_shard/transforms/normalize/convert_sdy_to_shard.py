# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sdy meshes and shardings become upstream's annotations: `shard.grid`, `shard.sharding` and `shard.shard`."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy, shard
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.sharding import AxisRef, TensorSharding
from mlir_shard.transforms.limits import check_devices
from mlir_shard.transforms.normalize.function_annotations import annotate_function
from mlir_shard.transforms.sharding_attributes import transform_shardings
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid, GridError
from mlir_shard.transforms.walk import ops_below


@register
class ConvertSdyToShard(Pass):
    """Makes a `shard.grid` of each mesh and annotates every tensor as upstream's `shard-partition` asks for: each
    argument and result by a `shard.shard`, and what users take of it by one that annotates for users. What has no
    sharding is annotated as replicated.

    Where sub-axes shard, the grid has an axis for each part. Names of axes are kept in the attribute
    `mlir_shard.axis_names` of the grid, blocks of different sizes are said by `sharded_dims_offsets`; constraints,
    reshards and those collectives that change no more than the sharding become annotations for users. What only
    steers propagation is dropped: open dimensions, priorities, replicated axes, sharding rules. Unreduced axes,
    devices out of order, manual computations and all else that upstream's annotations cannot say are refused.
    """

    name = "convert-sdy-to-shard"
    anchor = "builtin.module"
    summary = "Converts sdy meshes and shardings to upstream's shard annotations"

    partial: bool = option(False, "annotate only what has a sharding, for upstream's propagation to complete")

    def run(self, op: Any) -> None:
        check_devices(op, sdy.meshes(op))
        functions = _functions(op)
        grids = _grids(op)
        for function in functions:
            annotate_function(function, grids, complete=not self.partial)
        for inner in list(op.regions[0].blocks[0].operations):
            if inner.operation.name == "sdy.mesh":
                _replace_mesh(inner.operation, grids)


def _functions(module: Any) -> list[Any]:
    """The functions of the module; shardings elsewhere are refused."""
    functions = []
    for op in ops_below(module, enters=lambda op: op.name != "func.func"):
        if op.name == "func.func":
            functions.append(op)
        elif op.name == "sdy.mesh":
            if op.parent != module:
                name = op.attributes["sym_name"].value
                raise PassFailure(f"mesh @{name} is in a nested module, and only those at the top become grids", op)
        elif sdy.SHARDING in op.attributes or op.name.startswith("sdy."):
            raise PassFailure(f"'{op.name}' is sharded outside of a 'func.func', which upstream cannot say", op)
    return functions


def _grids(module: Any) -> dict[str, DeviceGrid]:
    """The grids of the meshes that have axes, by name: coarse, but with an axis for each sub-axis that is used."""
    axes: dict[str, dict[AxisRef, None]] = {}

    def note(sharding: TensorSharding) -> TensorSharding:
        if isinstance(sharding.mesh_or_ref, str):
            axes.setdefault(sharding.mesh_or_ref, {}).update(dict.fromkeys(sharding.sharding_axes))
        return sharding

    transform_shardings(module, note)
    grids = {}
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "sdy.mesh":
            name, mesh = op.operation.attributes["sym_name"].value, op.operation.attributes["mesh"].value
            if mesh.is_maximal:
                raise PassFailure(
                    f"mesh @{name} is of device {mesh.maximal_device_id} alone, which no 'shard.grid' can say",
                    op.operation,
                )
            if mesh.axes:
                try:
                    grids[name] = DeviceGrid.for_shardings(name, mesh, axes.get(name, ()))
                except GridError as error:
                    raise PassFailure(str(error), op.operation) from error
    return grids


def _replace_mesh(op: Any, grids: dict[str, DeviceGrid]) -> None:
    grid = grids.get(op.attributes["sym_name"].value)
    if grid is not None:
        with ir.InsertionPoint(op), op.location:
            new = shard.grid(grid.name, grid.shape)
            names = [ir.StringAttr.get(str(atom).replace('"', "")) for atom in grid.atoms]
            if [name.value for name in names] != [f"axis_{index}" for index in range(len(names))]:
                new.attributes[shard.AXIS_NAMES] = ir.ArrayAttr.get(names)
    op.erase()
