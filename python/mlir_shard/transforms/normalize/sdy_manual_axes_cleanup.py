# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Manual axes said in full by every sharding of a manual computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    """Makes the manual axes that a sharding of a manual computation does not name replicated in it, and puts the
    manual axes in mesh order.

    A computation that is manual on axes but has neither operands nor results, and does something, is refused: nothing
    has the mesh of its axes.
    """

    name = "sdy-manual-axes-cleanup"
    summary = "Gives every sharding of a manual computation all manual axes, in mesh order"
    needs = ("sdy.manual_computation",)

    def run(self, op: Any) -> bool:
        meshes = sdy.meshes(op)
        computations = operations_named(op, "sdy.manual_computation")
        for computation in computations:
            ins, outs = (computation.attributes[name].value.shardings for name in ("in_shardings", "out_shardings"))
            if not ins and not outs:
                _reject_lost_axes(computation)
                continue
            common = common_mesh([*ins, *outs], meshes)
            if common is not None:
                _clean(computation, common)
        return bool(computations)


def _reject_lost_axes(computation: Any) -> None:
    first = computation.regions[0].blocks[0].operations[0].operation
    manual: ManualAxes = computation.attributes["manual_axes"].value
    if manual.value and first.name != "sdy.return":
        names = ", ".join(f'"{name}"' for name in manual.value)
        raise PassFailure(
            f"the computation is manual on {names} but has no operand or result, so no sharding says of which mesh: "
            "give it one, or no manual axes",
            computation,
        )


def _clean(computation: Any, common: MeshRef) -> None:
    mesh, attributes = common[1], computation.attributes
    manual: ManualAxes = attributes["manual_axes"].value
    names = tuple(sorted(manual.value, key=mesh.axis_index))
    if names != manual.value:
        attributes["manual_axes"] = sdy.attribute(replace(manual, value=names), computation.context)
    axes = [AxisRef(name) for name in names]
    types = [value.type for value in computation.operands], [value.type for value in computation.results]
    for name, of_values in zip(("in_shardings", "out_shardings"), types, strict=True):
        old: Sequence[TensorSharding] = attributes[name].value.shardings
        new = tuple(_with_axes(one, type_, axes, common) for one, type_ in zip(old, of_values, strict=True))
        if new != old:
            attributes[name] = sdy.attribute(TensorShardingPerValue(new), computation.context)


def _with_axes(sharding: TensorSharding, type_: Any, manual: Sequence[AxisRef], common: MeshRef) -> TensorSharding:
    """The sharding with the manual axes it does not use replicated, on the mesh that has them."""
    ref, mesh = common
    named = sharding.with_replicated(manual, mesh) if isinstance(type_, ir.ShapedType) else sharding
    return sharding if named == sharding else replace(named, mesh_or_ref=ref)
