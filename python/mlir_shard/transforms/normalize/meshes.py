# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes on meshes that inline them in shardings, lift them to one symbol each, and remove axes of size one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import replica_groups
from mlir_shard.ir.editing import children
from mlir_shard.ir.replica_groups import COLLECTIVES, collectives, mesh_or_ref_of, set_mesh_or_ref
from mlir_shard.passes.analyses import analysis, held
from mlir_shard.passes.registry import Changes, ModulePass, register
from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, TensorSharding
from mlir_shard.sharding.tensor import mesh_of
from mlir_shard.transforms.shardings import shardings_in, transform_shardings


@register
class InlineMeshes(ModulePass):
    """Replaces the symbol of a mesh by the mesh in every sharding and in the replica groups of StableHLO collectives,
    and erases the `sdy.mesh` operations."""

    name = "sdy-inline-meshes"
    summary = "Inlines meshes in shardings and erases their definitions"

    def run(self, op: Any) -> None:
        meshes = sdy.meshes(op)
        if not meshes:
            return

        def inlined(sharding: TensorSharding) -> TensorSharding:
            ref = sharding.mesh_or_ref
            return replace(sharding, mesh_or_ref=meshes[ref]) if isinstance(ref, str) and ref in meshes else sharding

        transform_shardings(op, inlined)
        replica_groups.inline_meshes(op)
        for mesh in children(op, "sdy.mesh"):
            mesh.erase()


STABLEHLO_MESH = "stablehlo.mesh"


@register
class LiftInlinedMeshes(ModulePass):
    """Replaces each mesh in a sharding, or in the replica groups of a StableHLO collective, by a symbol, and erases
    definitions of a mesh that already has one.

    A new mesh of one device i and no axes is called `maximal_mesh_i`, and one of no devices `empty_mesh`. Any other new
    mesh gets the first unused name of `mesh`, `mesh_0`, `mesh_1`, ... Every definition also holds its mesh in
    StableHLO's form, in the attribute `stablehlo.mesh`.
    """

    name = "sdy-lift-inlined-meshes"
    summary = "Lifts meshes inlined in shardings to symbols, one per mesh"

    def run(self, op: Any) -> bool | Changes:
        grouped = collectives(op) if held(op).has_any(COLLECTIVES) else []
        symbols = _MeshSymbols(op)

        def lifted(sharding: TensorSharding) -> TensorSharding:
            name = symbols.name_for(sharding.mesh_or_ref)
            return sharding if name == sharding.mesh_or_ref else replace(sharding, mesh_or_ref=name)

        if any(symbols.is_replaced(sharding.mesh_or_ref) for sharding in analysis(shardings_in, op)):
            transform_shardings(op, lifted)
            symbols.is_changed = True
        for collective in grouped:
            ref = mesh_or_ref_of(collective)
            if ref is not None and (name := symbols.name_for(ref)) != ref:
                set_mesh_or_ref(collective, name)
                symbols.is_changed = True
        said = symbols.say_in_stablehlo()
        return symbols.is_changed or (Changes(attributed=said) if said else False)


class _MeshSymbols:
    """The symbols of the meshes of a module; only the first of equal meshes is kept, and the others are erased.

    is_changed: whether the module has changed.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._symbols = ir.SymbolTable(module)
        self._definitions: dict[Mesh, Any] = {}
        self._names: dict[Mesh, str] = {}
        self._kept: dict[str, str] = {}
        self.is_changed = False
        for op in children(module, "sdy.mesh"):
            mesh, name = op.attributes["mesh"].value, op.attributes["sym_name"].value
            if mesh in self._names:
                self._kept[name] = self._names[mesh]
                self._symbols.erase(op)
                self.is_changed = True
            else:
                self._names[mesh], self._definitions[mesh] = name, op

    def is_replaced(self, mesh_or_ref: str | Mesh) -> bool:
        """Returns whether `name_for` returns another symbol for this mesh or symbol."""
        return isinstance(mesh_or_ref, Mesh) or mesh_or_ref in self._kept

    def name_for(self, mesh_or_ref: str | Mesh) -> str:
        """Returns the symbol of a mesh, defining it if it is new; for that of an erased definition, the kept one."""
        if isinstance(mesh_or_ref, str):
            return self._kept.get(mesh_or_ref, mesh_or_ref)
        if mesh_or_ref not in self._names:
            self._names[mesh_or_ref] = self._define(mesh_or_ref)
        return self._names[mesh_or_ref]

    def _define(self, mesh: Mesh) -> str:
        if self._definitions:
            point = ir.InsertionPoint.after(next(reversed(self._definitions.values())))
        else:
            point = ir.InsertionPoint.at_block_begin(self._module.regions[0].blocks[0])
        op = sdy.MeshOp(_wanted_name(mesh), mesh, loc=self._module.location, ip=point).operation
        self._definitions[mesh] = op
        self.is_changed = True
        name: str = self._symbols.insert(op).value
        return name

    def say_in_stablehlo(self) -> list[Any]:
        """Attaches the mesh in StableHLO's form to each definition without it; returns the changed definitions."""
        found = [(mesh, op) for mesh, op in self._definitions.items() if STABLEHLO_MESH not in op.attributes]
        for mesh, op in found:
            op.attributes[STABLEHLO_MESH] = _stablehlo_mesh(mesh, op.context)
        return [op for _, op in found]


def _wanted_name(mesh: Mesh) -> str:
    if mesh.is_maximal:
        return f"maximal_mesh_{mesh.maximal_device_id}"
    return "empty_mesh" if mesh.is_empty else "mesh"


def _stablehlo_mesh(mesh: Mesh, context: Any) -> Any:
    i64 = ir.IntegerType.get_signless(64, context)
    axes = [
        ir.DictAttr.get(
            {"name": ir.StringAttr.get(axis.name, context), "size": ir.IntegerAttr.get(i64, axis.size)}, context
        )
        for axis in mesh.axes
    ]
    entries = {"axes": ir.ArrayAttr.get(axes, context)}
    if mesh.device_ids:
        ids = [ir.IntegerAttr.get(i64, device) for device in mesh.device_ids]
        entries["device_ids"] = ir.DenseElementsAttr.get(ids, ir.RankedTensorType.get([len(ids)], i64))
    return ir.DictAttr.get(entries, context)


@register
class RemoveSizeOneAxes(ModulePass):
    """Removes axes of size one from every sharding: they shard nothing, and would only cause conflicts.

    Meshes, and the manual axes of computations, keep them.
    """

    name = "sdy-remove-size-one-axes"
    summary = "Removes axes of size one from shardings"

    def run(self, op: Any) -> bool:
        meshes = sdy.meshes(op)
        if not any(axis.size == 1 for mesh in meshes.values() for axis in mesh.axes):
            return False

        def without(sharding: TensorSharding) -> TensorSharding:
            mesh = mesh_of(sharding, meshes)
            return sharding if mesh is None else _without_size_one_axes(sharding, mesh)

        transform_shardings(op, without)
        return True


def _without_size_one_axes(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    def kept(axes: tuple[AxisRef, ...]) -> tuple[AxisRef, ...]:
        return tuple(axis for axis in axes if axis.size(mesh) != 1)

    def dimension(dim: DimensionSharding) -> DimensionSharding:
        axes = kept(dim.axes)
        # A closed dimension without axes takes no part in propagation, so it may not have a priority.
        priority = dim.priority if axes or not dim.is_closed else None
        return DimensionSharding(axes, dim.is_closed, priority)

    return replace(
        sharding,
        dim_shardings=tuple(map(dimension, sharding.dim_shardings)),
        replicated_axes=kept(sharding.replicated_axes),
        unreduced_axes=kept(sharding.unreduced_axes),
    )
