# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds all manual axes to every sharding of a manual computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import ModulePass, PassFailure, register
from mlir_shard.sharding import AxisRef, ManualAxes, Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.shardings import common_mesh

MeshRef = tuple["str | Mesh", Mesh]


@register
class ManualAxesCleanup(ModulePass):
    """Adds the manual axes that a sharding of a manual computation does not use to its replicated axes, and sorts the
    manual axes in mesh order.

    A computation with manual axes and a nonempty body, but without operands and results, is rejected, because the mesh
    of its axes is unknown.
    """

    name = "sdy-manual-axes-cleanup"
    summary = "Adds missing manual axes to the shardings of manual computations, in mesh order"
    needs = ("sdy.manual_computation",)

    def run(self, op: Any) -> bool:
        meshes = sdy.meshes(op)
        # Most shardings of a program's computations are equal to others.
        with_axes = cache(_with_axes)
        is_changed = False
        for computation in operations_named(op, "sdy.manual_computation"):
            ins, outs = (computation.attributes[name].value.shardings for name in ("in_shardings", "out_shardings"))
            if not ins and not outs:
                _reject_lost_axes(computation)
                continue
            common = common_mesh([*ins, *outs], meshes)
            if common is not None:
                is_changed |= _clean(computation, common, with_axes)
        return is_changed


def _reject_lost_axes(computation: Any) -> None:
    first = computation.regions[0].blocks[0].operations[0].operation
    manual: ManualAxes = computation.attributes["manual_axes"].value
    if manual.value and first.name != "sdy.return":
        names = ", ".join(f'"{name}"' for name in manual.value)
        raise PassFailure(
            f"the computation is manual on {names} but has no operand or result whose sharding names a mesh: add "
            "one, or remove the manual axes",
            computation,
        )


WithAxes = Callable[[TensorSharding, tuple[AxisRef, ...], MeshRef], TensorSharding]


def _clean(computation: Any, common: MeshRef, with_axes: WithAxes) -> bool:
    """Cleans up the attributes of a computation. Returns whether one has changed."""
    mesh, attributes = common[1], computation.attributes
    manual: ManualAxes = attributes["manual_axes"].value
    names = tuple(sorted(manual.value, key=mesh.axis_index))
    is_changed = names != manual.value
    if is_changed:
        attributes["manual_axes"] = sdy.attribute(replace(manual, value=names), computation.context)
    axes = tuple(map(AxisRef, names))
    for name, values in (("in_shardings", computation.operands), ("out_shardings", computation.results)):
        old: Sequence[TensorSharding] = attributes[name].value.shardings
        pairs = zip(old, values, strict=True)
        new = tuple(
            [with_axes(one, axes, common) if isinstance(value.type, ir.ShapedType) else one for one, value in pairs]
        )
        if new != old:
            attributes[name] = sdy.attribute(TensorShardingPerValue(new), computation.context)
            is_changed = True
    return is_changed


def _with_axes(sharding: TensorSharding, manual: tuple[AxisRef, ...], common: MeshRef) -> TensorSharding:
    """Returns the sharding with the manual axes that it does not use replicated, on the mesh that has them."""
    ref, mesh = common
    named = sharding.with_replicated(manual, mesh)
    return sharding if named == sharding else replace(named, mesh_or_ref=ref)
