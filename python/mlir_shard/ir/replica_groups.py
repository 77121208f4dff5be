# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The replica groups of StableHLO's collectives, as lists of devices or by axes of a mesh."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.op_names import op_names
from mlir_shard.sharding import AxisRef, Mesh

REPLICA_GROUPS = "replica_groups"
_NOBODY = -1
_BY_AXES = re.compile(r"(#stablehlo\.replica_group_mesh_axes<mesh = )(.*)(, axes = .*)", re.DOTALL)
_AXIS = re.compile(r'name = "([^"]*)", size = (\d+)')
_REFERRED_AXIS = re.compile(r'axis_ref<name = "([^"]*)"(?:, sub_axis_info = \((\d+)\)(\d+))?')
_DEVICES = re.compile(r"dense<.*> : tensor<\d+xi64>", re.DOTALL)


def mesh_or_ref_of(collective: Any) -> str | Mesh | None:
    """Returns the mesh whose axes make the groups, or its symbol; None if the groups are lists of devices."""
    match = _by_axes(collective)
    if match is None:
        return None
    text = match[2]
    if text.startswith("@"):
        name: str = ir.FlatSymbolRefAttr(ir.Attribute.parse(text, collective.context)).value
        return name
    devices = _DEVICES.search(text)
    ids = [] if devices is None else list(ir.Attribute.parse(devices[0], collective.context))
    return Mesh(((name, int(size)) for name, size in _AXIS.findall(text)), ids)


def axes_of(collective: Any) -> tuple[AxisRef, ...]:
    """Returns the axes, major to minor, along which the devices of a group differ; none if the groups are lists."""
    match = _by_axes(collective)
    found = _REFERRED_AXIS.findall(match[3]) if match else []
    return tuple(AxisRef.sub(name, int(pre), int(size)) if size else AxisRef(name) for name, pre, size in found)


def _by_axes(collective: Any) -> re.Match[str] | None:
    groups = collective.attributes[REPLICA_GROUPS]
    # Lists may have all devices, so they are not printed.
    return None if isinstance(groups, ir.DenseElementsAttr) else _BY_AXES.fullmatch(str(groups))


def lists_of(collective: Any) -> tuple[tuple[int, ...], ...]:
    """Returns the groups of a collective whose groups are lists of devices, without the -1 that pad short groups."""
    attribute = collective.attributes[REPLICA_GROUPS]
    count, size = attribute.type.shape
    ids = iter(attribute)
    return tuple(tuple(one for one in islice(ids, size) if one != _NOBODY) for _ in range(count if size else 0))


def set_mesh_or_ref(collective: Any, mesh_or_ref: str | Mesh) -> None:
    """Makes groups along mesh axes refer to another mesh."""
    context = collective.context
    text = _mesh_text(mesh_or_ref) if isinstance(mesh_or_ref, Mesh) else str(_symbol(mesh_or_ref, context))
    old = str(collective.attributes[REPLICA_GROUPS])
    new = _BY_AXES.sub(lambda match: match[1] + text + match[3], old)
    collective.attributes[REPLICA_GROUPS] = ir.Attribute.parse(new, context)


def _symbol(name: str, context: Any) -> Any:
    return ir.FlatSymbolRefAttr.get(name, context)


def _mesh_text(mesh: Mesh) -> str:
    axes = ", ".join(f'#stablehlo.mesh_axis<name = "{axis.name}", size = {axis.size}>' for axis in mesh.axes)
    text = f"#stablehlo.mesh<axes = [{axes}]"
    if mesh.device_ids:
        text += f", device_ids = dense<{list(mesh.device_ids)}> : tensor<{len(mesh.device_ids)}xi64>"
    return text + ">"


COLLECTIVES = op_names(
    "stablehlo", "all_gather all_reduce all_to_all collective_broadcast cross-replica-sum reduce_scatter"
)
"""The names of the StableHLO operations that may have replica groups."""


def collectives(root: Any) -> list[Any]:
    """Returns the StableHLO operations below `root` that have replica groups, in the order of the text."""
    return [op for op in operations_named(root, *COLLECTIVES) if REPLICA_GROUPS in op.attributes]


def inline_meshes(module: Any) -> None:
    """Replaces references to a mesh of the module, in groups along its axes, by the mesh itself."""
    meshes = sdy.meshes(module)
    for collective in collectives(module):
        ref = mesh_or_ref_of(collective)
        if isinstance(ref, str) and ref in meshes:
            set_mesh_or_ref(collective, meshes[ref])
