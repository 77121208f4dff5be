# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One mesh for all computations of a program, if its shardings are on several meshes of the same devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import children, in_modules, operations_named
from mlir_shard.ir.replica_groups import collectives, mesh_or_ref_of
from mlir_shard.passes.analyses import analysis
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.resharding.operator.common_axes import is_on_one_device, mesh_of
from mlir_shard.resharding.sharding_steps import Reshard
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.common_mesh import MeshChange, mesh_changes
from mlir_shard.transforms.insertion import apply
from mlir_shard.transforms.normalize.axes_of_ops import axes_in, change_axes, ops_with_axes, shardings_within
from mlir_shard.transforms.normalize.sub_axis_families import separate_sub_axes
from mlir_shard.transforms.shardings import (
    Side,
    distinct_shardings_of,
    listed_meshes,
    set_shardings,
    shardings_in,
    shardings_of,
    transform_shardings,
)

Ref = str | Mesh


class UnitedMeshes:
    """The conversion of the shardings of a module with shardings on several meshes.

    `shardings` are those in the module. `main` is the mesh to convert to: the one that most shardings in `signatures`
    refer to, or the first defined of several such meshes.
    """

    def __init__(
        self, module: Any, shardings: Iterable[TensorSharding], signatures: Iterable[TensorSharding | None]
    ) -> None:
        self._module = module
        self._meshes = sdy.meshes(module)
        used = list(dict.fromkeys(shardings))
        self._refs = list(dict.fromkeys(one.mesh_or_ref for one in used if self._has_axes(one)))
        self._changes: dict[Mesh, MeshChange] = {}
        self.main: Ref | None = None
        if self.are_several:
            self._decide(used, Counter(one.mesh_or_ref for one in signatures if one is not None))

    @property
    def are_several(self) -> bool:
        """Whether there are several meshes to unite."""
        return len(self._refs) > 1

    def _decide(self, used: list[TensorSharding], counts: Counter[Ref]) -> None:
        order: list[Ref] = [*self._meshes]
        first = min(self._refs, key=lambda ref: (-counts[ref], order.index(ref) if ref in order else len(order)))
        axes: defaultdict[Mesh, set[AxisRef]] = defaultdict(set)
        for sharding in used:
            if (mesh := mesh_of(sharding, self._meshes)) is not None:
                axes[mesh].update(sharding.used_axes)
        for op, sharding in ops_with_axes(self._module):
            if (mesh := mesh_of(sharding, self._meshes)) is not None:
                axes[mesh].update(axes_in(op))
        mesh = self._mesh(first)
        self._changes = mesh_changes(mesh, map(self._mesh, self._refs), axes)
        self.main = self._ref(self._changes[mesh].mesh, first)

    def on_main(self, sharding: TensorSharding) -> TensorSharding:
        """Returns the sharding in the order of devices of the main mesh."""
        assert self.main is not None
        if not self._has_axes(sharding):
            return sharding
        change = self._change(sharding)
        if change is not None:
            return change.sharding(sharding, self.main)
        mesh = mesh_of(sharding, self._meshes)
        is_elsewhere = mesh is not None and not mesh.has_same_devices(self._mesh(self.main))
        return sharding if sharding.used_axes or is_elsewhere else replace(sharding, mesh_or_ref=self.main)

    def in_own_order(self, sharding: TensorSharding) -> TensorSharding:
        """Returns the sharding with the axes of the main mesh, and the devices in their original order."""
        change = self._change(sharding)
        if change is None:
            return self.on_main(sharding)
        return change.sharding(sharding, self._ref(change.mesh, sharding.mesh_or_ref))

    def is_ordered_otherwise(self, sharding: TensorSharding | None) -> bool:
        """Returns whether tensors of a sharding are on devices in another order than that of the main mesh."""
        if sharding is None or not sharding.used_axes or self.main is None:
            return False
        change = self._change(sharding)
        return change is not None and change.mesh != self._mesh(self.main)

    def change_axes(self) -> None:
        """Converts the axes of collectives of sdy, and of manual computations, to the main mesh."""
        for op, sharding in ops_with_axes(self._module):
            change = self._change(sharding)
            if change is not None:
                change_axes(op, change)

    def tidy(self) -> None:
        """Erases the meshes that are no longer referred to, and moves the main one to the front."""
        used: set[Ref | None] = {one.mesh_or_ref for one in shardings_in(self._module)}
        used |= {mesh_or_ref_of(one) for one in collectives(self._module)}
        ops = children(self._module, "sdy.mesh")
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
        """Returns the symbol of a mesh: `like` if it is one, else another one, which is new if none exists."""
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


_FUNCTION = "func.func"
_RETURN = "func.return"
_MANUAL = "sdy.manual_computation"
Shardings = list[TensorSharding | None]


@register
class UnifyMeshes(ModulePass):
    """Converts shardings on several meshes of the same devices to the mesh that most arguments and results are on.

    Axes of another mesh are replaced by the axes, or sub-axes, with the same devices; if the mesh is too coarse for
    that, a finer mesh replaces it. If another mesh has a different device order, its values are moved to the device
    order of the main mesh. That order is visible only to callers of public functions and inside manual computations,
    so these keep their own order, with `sdy.reshard` before and after.

    Sub-axes that split an axis at sizes that do not divide each other, such as "z":(1)4 and "z":(1)6 of 12 devices, are
    replaced by axes that can express both, as if they belonged to different meshes.

    Arguments and results on a single device become replicated, so that device still has them. Shardings that the axes
    of the mesh cannot express, and shardings on other devices, are not changed.
    """

    name = "shard-unify-meshes"
    summary = "Converts the shardings of a module to a common mesh"

    def run(self, op: Any) -> bool:
        functions = in_modules(op, _FUNCTION)
        is_changed = any([*map(_spread_single_devices, functions)])
        shardings = shardings_in(op) if is_changed else analysis(shardings_in, op)
        if separate_sub_axes(op, shardings):
            is_changed, shardings = True, shardings_in(op)
        public = [one for one in functions if _is_public(one)]
        in_signatures = (sharding for one in public for side in Side for sharding in shardings_of(one, side))
        meshes = UnitedMeshes(op, shardings, in_signatures)
        if not meshes.are_several:
            return is_changed
        before = [(one, side, shardings_of(one, side)) for one in public for side in Side]
        manual = [one for one in operations_named(op, _MANUAL) if _is_ordered_otherwise(one, meshes)]
        kept = [entry for computation in manual for entry in shardings_within(computation)]
        meshes.change_axes()
        transform_shardings(op, meshes.on_main)
        for holder, name, value in kept:
            holder.attributes[name] = sdy.attribute(_each(value, meshes.in_own_order), op.context)
        for computation in manual:
            _reshard_around(computation, meshes)
        for function, side, of_side in before:
            _keep_order(function, side, of_side, meshes)
        meshes.tidy()
        return True


def _is_public(function: Any) -> bool:
    return "sym_visibility" not in function.attributes or function.attributes["sym_visibility"].value == "public"


def _spread_single_devices(function: Any) -> bool:
    """Replicates the arguments and results that are on a single device."""
    meshes, is_changed = listed_meshes(function), False
    for side in Side:
        single = {one for one in distinct_shardings_of(function, side) if is_on_one_device(one, meshes)}
        if single:
            replicated = [None if one in single else one for one in shardings_of(function, side)]
            set_shardings(function, side, replicated)
            is_changed = True
    return is_changed


def _is_ordered_otherwise(computation: Any, meshes: UnitedMeshes) -> bool:
    return any(meshes.is_ordered_otherwise(one) for one in _sides(computation, "in_shardings", "out_shardings"))


def _sides(computation: Any, *names: str) -> Shardings:
    return [one for name in names for one in computation.attributes[name].value.shardings]


def _each(
    value: TensorSharding | TensorShardingPerValue, change: Callable[[TensorSharding], TensorSharding]
) -> TensorSharding | TensorShardingPerValue:
    return change(value) if isinstance(value, TensorSharding) else TensorShardingPerValue(tuple(map(change, value)))


def _reshard_around(computation: Any, meshes: UnitedMeshes) -> None:
    """Reshards operands to the order of devices of a manual computation, and its results from that order."""
    with ir.InsertionPoint(computation):
        for index, sharding in enumerate(_sides(computation, "in_shardings")):
            if meshes.is_ordered_otherwise(sharding) and sharding is not None:
                computation.operands[index] = apply(computation.operands[index], [Reshard(sharding)])
    with ir.InsertionPoint.after(computation):
        for result, sharding in zip(computation.results, _sides(computation, "out_shardings"), strict=True):
            if meshes.is_ordered_otherwise(sharding) and sharding is not None:
                _put_before_uses(result, meshes.on_main(sharding))


def _keep_order(function: Any, side: Side, before: Shardings, meshes: UnitedMeshes) -> None:
    """Restores the order of devices that arguments or results had, with reshards inside the function."""
    kept = [meshes.in_own_order(one) if one and meshes.is_ordered_otherwise(one) else None for one in before]
    if not any(kept):
        return
    set_shardings(function, side, [old or now for old, now in zip(kept, shardings_of(function, side), strict=True)])
    if not len(function.regions[0].blocks):
        return
    block = function.regions[0].blocks[0]
    for index, sharding in enumerate(kept):
        if sharding is None:
            continue
        if side is Side.ARGUMENTS:
            with ir.InsertionPoint.at_block_begin(block):
                _put_before_uses(block.arguments[index], meshes.on_main(sharding))
            continue
        for last in operations_named(function, _RETURN):
            with ir.InsertionPoint(last):
                last.operands[index] = apply(last.operands[index], [Reshard(sharding)])


def _put_before_uses(value: Any, sharding: TensorSharding) -> None:
    """Reshards a value at the current insertion point, for all its users."""
    new = apply(value, [Reshard(sharding)])
    value.replace_all_uses_except(new, [new.owner.operation])
