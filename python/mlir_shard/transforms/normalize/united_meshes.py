# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one mesh on which all shardings of a module are to be, and what they are there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.dialects.replica_groups import mesh_or_ref_of
from mlir_shard.host import ir
from mlir_shard.resharding.op_mesh import mesh_of
from mlir_shard.sharding import (
    AllToAllParamList,
    AxisRef,
    AxisRefList,
    ListOfAxisRefLists,
    ManualAxes,
    Mesh,
    TensorSharding,
)
from mlir_shard.sharding.common_mesh import MeshChange, mesh_changes
from mlir_shard.transforms.normalize.replica_groups import collectives
from mlir_shard.transforms.operations import operations_where
from mlir_shard.transforms.sharding_attributes import shardings_in

Ref = str | Mesh


class UnitedMeshes:
    """What becomes of the shardings of a module that has some on several meshes.

    `main`, the mesh that counts, is the one that most shardings in `signatures` refer to, of several the first defined.
    """

    def __init__(self, module: Any, signatures: Iterable[TensorSharding | None]) -> None:
        self._module = module
        self._meshes = sdy.meshes(module)
        used = list(dict.fromkeys(shardings_in(module)))
        self._refs = list(dict.fromkeys(one.mesh_or_ref for one in used if self._has_axes(one)))
        self._changes: dict[Mesh, MeshChange] = {}
        self.main: Ref | None = None
        if self.are_several:
            self._decide(used, Counter(one.mesh_or_ref for one in signatures if one is not None))

    @property
    def are_several(self) -> bool:
        """Whether there is anything to unite."""
        return len(self._refs) > 1

    def _decide(self, used: list[TensorSharding], counts: Counter[Ref]) -> None:
        order: list[Ref] = [*self._meshes]
        first = min(self._refs, key=lambda ref: (-counts[ref], order.index(ref) if ref in order else len(order)))
        axes: defaultdict[Mesh, set[AxisRef]] = defaultdict(set)
        for sharding in used:
            if (mesh := mesh_of(sharding, self._meshes)) is not None:
                axes[mesh].update(sharding.used_axes)
        for op, sharding in _collectives(self._module):
            if (mesh := mesh_of(sharding, self._meshes)) is not None:
                axes[mesh].update(_axes_in(op))
        mesh = self._mesh(first)
        self._changes = mesh_changes(mesh, map(self._mesh, self._refs), axes)
        self.main = self._ref(self._changes[mesh].mesh, first)

    def on_main(self, sharding: TensorSharding) -> TensorSharding:
        """The sharding in the order of devices of the main mesh."""
        assert self.main is not None
        if not self._has_axes(sharding):
            return sharding
        change = self._change(sharding)
        if change is not None:
            return change.sharding(sharding, self.main)
        return sharding if sharding.used_axes else replace(sharding, mesh_or_ref=self.main)

    def in_own_order(self, sharding: TensorSharding) -> TensorSharding:
        """The sharding with the axes of the main mesh, where the devices are in the order in which they were."""
        change = self._change(sharding)
        if change is None or not sharding.used_axes:
            return self.on_main(sharding)
        return change.sharding(sharding, self._ref(change.mesh, sharding.mesh_or_ref))

    def is_ordered_otherwise(self, sharding: TensorSharding | None) -> bool:
        """Whether tensors that are sharded so lie on devices in another order than that of the main mesh."""
        if sharding is None or not sharding.used_axes or self.main is None:
            return False
        change = self._change(sharding)
        return change is not None and change.mesh != self._mesh(self.main)

    def change_axes(self) -> None:
        """Says the axes along which collectives of sdy communicate, and computations are manual, on the main mesh."""
        for op, sharding in _collectives(self._module):
            change = self._change(sharding)
            if change is not None:
                for name, value in _axis_values(op):
                    op.attributes[name] = sdy.attribute(_changed(value, change), op.context)

    def tidy(self) -> None:
        """Erases the meshes that nothing refers to any more, and defines the main one first."""
        used: set[Ref | None] = {one.mesh_or_ref for one in shardings_in(self._module)}
        used |= {mesh_or_ref_of(one) for one in collectives(self._module)}
        ops = [op.operation for op in self._module.regions[0].blocks[0].operations if op.operation.name == "sdy.mesh"]
        names = [op.attributes["sym_name"].value for op in ops]
        if self.main in names[1:]:
            ops[names.index(self.main)].move_before(ops[0])
        for name, op in zip(names, ops, strict=True):
            if name in self._refs and name not in used:
                op.erase()

    def _change(self, sharding: TensorSharding) -> MeshChange | None:
        mesh = mesh_of(sharding, self._meshes)
        return None if mesh is None else self._changes.get(mesh)

    def _mesh(self, ref: Ref) -> Mesh:
        return ref if isinstance(ref, Mesh) else self._meshes[ref]

    def _has_axes(self, sharding: TensorSharding) -> bool:
        mesh = mesh_of(sharding, self._meshes)
        return mesh is not None and bool(mesh.axes)

    def _ref(self, mesh: Mesh, like: Ref) -> Ref:
        """The symbol of a mesh: `like` if that is one of it, a new one where there is none."""
        if isinstance(like, str) and self._meshes[like] == mesh:
            return like
        for name, known in self._meshes.items():
            if known == mesh:
                return name
        symbols = ir.SymbolTable(self._module)
        wanted = like if isinstance(like, str) else "mesh"
        point = ir.InsertionPoint.at_block_begin(self._module.regions[0].blocks[0])
        op = sdy.MeshOp(wanted, mesh, loc=self._module.location, ip=point).operation
        name = symbols.insert(op).value
        self._meshes[name] = mesh
        return name


def _collectives(module: Any) -> Iterator[tuple[Any, TensorSharding]]:
    """The operations of sdy that say axes besides shardings, with a sharding on the mesh of these axes."""
    for op in operations_where(module, lambda name: name.startswith("sdy.")):
        if not any(True for _ in _axis_values(op)):
            continue
        for name in ("out_sharding", "in_shardings", "out_shardings"):
            value = op.attributes[name].value if name in op.attributes else None
            shardings = (value,) if isinstance(value, TensorSharding) else tuple(value or ())
            if shardings:
                yield op, shardings[0]
                break


def _axis_values(op: Any) -> Iterator[tuple[str, Any]]:
    for name in op.attributes:
        attribute = op.attributes[name]
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
        if isinstance(value, AxisRefList | ListOfAxisRefLists | AllToAllParamList | ManualAxes):
            yield name, value


def _axes_in(op: Any) -> Iterator[AxisRef]:
    for _, value in _axis_values(op):
        if isinstance(value, AxisRefList):
            yield from value
        elif isinstance(value, ListOfAxisRefLists):
            yield from (axis for axes in value for axis in axes)
        elif isinstance(value, AllToAllParamList):
            yield from (axis for param in value.value for axis in param.axes)
        else:
            yield from map(AxisRef, value)


def _changed(value: Any, change: MeshChange) -> Any:
    if isinstance(value, AxisRefList):
        return AxisRefList(change.axes(value))
    if isinstance(value, ListOfAxisRefLists):
        return ListOfAxisRefLists(tuple(AxisRefList(change.axes(axes)) for axes in value))
    if isinstance(value, AllToAllParamList):
        return AllToAllParamList(tuple(replace(param, axes=change.axes(param.axes)) for param in value.value))
    return ManualAxes(tuple(axis.name for axis in change.axes(map(AxisRef, value))))
