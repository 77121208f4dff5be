# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes data that a checker of the local program cannot infer: the mesh, and layouts of arguments, results, loops."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.ir import editing
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import ModulePass, PassFailure, register
from mlir_shard.resharding.steps import Placement
from mlir_shard.rules.builder import rank_of
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.device_grid import DeviceGrid, GridError
from mlir_shard.transforms.partition.spmdize import grid_of, signature_of

_LOOPS = ("stablehlo.while", "scf.for", "scf.while")


@register
class WriteCertificate(ModulePass):
    """Writes the certificate of the local program that `spmdize` makes of the module, in JSON.

    It contains the sizes of the mesh axes and, for each dimension of the arguments and results of public functions and
    of the values that loops carry, the names of the axes along which it is sharded. Its size does not depend on the
    number of devices, unless the devices of a mesh are permuted. `shard-check` proves the local program by it.
    """

    name = "shard-write-certificate"
    summary = "Writes the certificate with which shard-check verifies the local program"

    file: str = option("", "the output file")
    collectives: str = option("shard", "the dialect of the collectives of the local program")

    def run(self, op: Any) -> bool:
        if not self.file:
            raise PassFailure("the certificate requires an output file: set file=NAME", op)
        names = {one.name for one in editing.ops_below(op)}
        grid, devices = grid_of(op, names)
        if grid.separate:
            raise PassFailure("certificates do not support meshes of different devices; drop `certificate`", op)
        data: dict[str, Any] = {
            "mesh": list(zip(_axis_names(grid), grid.shape, strict=True)),
            "functions": {
                function.attributes["sym_name"].value: _signature(function, grid, () if devices else grid.reordered)
                for function in editing.children(op, "func.func")
                if editing.block_count(function) and not editing.is_private(function)
            },
            "loops": [list(_carried(loop, grid)) for loop in editing.operations_named(op, *_LOOPS)],
        }
        if devices and self.collectives == "stablehlo":
            data["devices"] = list(devices)
        try:
            with open(self.file, "w", encoding="utf-8") as file:
                json.dump(data, file, separators=(",", ":"))
                file.write("\n")
        except OSError as error:
            raise PassFailure(f"cannot write '{self.file}': {error.strerror}") from error
        return False


def _axis_names(grid: DeviceGrid) -> list[str]:
    return list(grid.axis_names) or [str(axis) for axis in range(len(grid.shape))]


def _signature(function: Any, grid: DeviceGrid, reordered: Collection[Mesh]) -> dict[str, Any]:
    signature = signature_of(function, grid)
    names = _axis_names(grid)
    data: dict[str, Any] = {
        "arguments": [_layout(one, names) for one in signature.arguments],
        "results": [_layout(one, names) for one in signature.results],
    }
    meshes = {"arguments": signature.argument_meshes, "results": signature.result_meshes}
    orders = {
        side: {str(at): list(mesh.device_ids) for at, mesh in enumerate(of) if mesh is not None and mesh in reordered}
        for side, of in meshes.items()
    }
    return data | ({"orders": orders} if any(orders.values()) else {})


def _layout(placement: Placement, names: list[str]) -> list[list[str]]:
    return [[names[axis] for axis in axes] for axes in placement.dims]


def _carried(loop: Any, grid: DeviceGrid) -> Iterator[list[list[str]]]:
    names = _axis_names(grid)
    for value in loop.results:
        try:
            placement = grid.placement(sharding_of(value), rank_of(value.type))
        except GridError as error:
            raise PassFailure(str(error), loop) from error
        yield _layout(placement, names)
