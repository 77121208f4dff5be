# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One mesh for all that a program computes, where its shardings are on several of the same devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.resharding.op_mesh import is_on_one_device
from mlir_shard.resharding.sharding_steps import Reshard
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.function_shardings import Side, set_shardings, shardings_of
from mlir_shard.transforms.normalize.united_meshes import UnitedMeshes
from mlir_shard.transforms.operations import operations_named
from mlir_shard.transforms.reshard.insertion import apply
from mlir_shard.transforms.sharding_attributes import transform_shardings
from mlir_shard.transforms.shardings import meshes_around
from mlir_shard.transforms.walk import ops_below

_FUNCTION, _RETURN, _MANUAL = "func.func", "func.return", "sdy.manual_computation"

Shardings = list[TensorSharding | None]


@register
class UnifyMeshes(Pass):
    """Says shardings on several meshes of the same devices on the one that most arguments and results are on.

    Axes of another mesh become the axes, or parts of axes, that are the same devices; where the mesh is too coarse for
    that, a finer one takes its place. What lies on devices in another order lies on them in the order of the mesh
    instead: only those see the order who call a public function, and what a manual computation does. These keep theirs,
    and `sdy.reshard` leads to it and from it.

    Arguments and results on a single device are replicated, so they are there too. Shardings that no axes of the mesh
    can say, and those on other devices, stay.
    """

    name = "shard-unify-meshes"
    anchor = "builtin.module"
    summary = "Brings the shardings of a module on to one mesh"

    def run(self, op: Any) -> bool:
        functions = operations_named(op, _FUNCTION)
        is_changed = False
        for function in functions:
            is_changed |= _spread_single_devices(function)
        public = [(one, side, shardings_of(one, side)) for one in functions if _is_public(one) for side in Side]
        meshes = UnitedMeshes(op, [sharding for _, _, shardings in public for sharding in shardings])
        if not meshes.are_several:
            return is_changed
        manual = [one for one in operations_named(op, _MANUAL) if _is_ordered_otherwise(one, meshes)]
        kept = [entry for computation in manual for entry in _shardings_within(computation)]
        meshes.change_axes()
        transform_shardings(op, meshes.on_main)
        for holder, name, value in kept:
            holder.attributes[name] = sdy.attribute(_each(value, meshes.in_own_order), op.context)
        for computation in manual:
            _reshard_around(computation, meshes)
        for function, side, before in public:
            _keep_order(function, side, before, meshes)
        meshes.tidy()
        return True


def _is_public(function: Any) -> bool:
    return "sym_visibility" not in function.attributes or function.attributes["sym_visibility"].value == "public"


def _spread_single_devices(function: Any) -> bool:
    """Replicates the arguments and results that are on a single device."""
    is_changed = False
    meshes = meshes_around(function)
    for side in Side:
        before = shardings_of(function, side)
        after = [None if is_on_one_device(one, meshes) else one for one in before]
        if after != before:
            set_shardings(function, side, after)
            is_changed = True
    return is_changed


def _is_ordered_otherwise(computation: Any, meshes: UnitedMeshes) -> bool:
    return any(meshes.is_ordered_otherwise(one) for one in _sides(computation, "in_shardings", "out_shardings"))


def _sides(computation: Any, *names: str) -> Shardings:
    return [one for name in names for one in computation.attributes[name].value.shardings]


def _shardings_within(computation: Any) -> Iterator[tuple[Any, str, TensorSharding | TensorShardingPerValue]]:
    """The shardings that a computation and the operations in it have as attributes."""
    for op in (computation, *ops_below(computation)):
        for name in op.attributes:
            attribute = op.attributes[name]
            value = attribute.value if isinstance(attribute, SdyAttribute) else None
            if isinstance(value, TensorSharding | TensorShardingPerValue):
                yield op, name, value


def _each(
    value: TensorSharding | TensorShardingPerValue, change: Callable[[TensorSharding], TensorSharding]
) -> TensorSharding | TensorShardingPerValue:
    return change(value) if isinstance(value, TensorSharding) else TensorShardingPerValue(tuple(map(change, value)))


def _reshard_around(computation: Any, meshes: UnitedMeshes) -> None:
    """Brings operands to the order of devices of a manual computation, and its results from there."""
    with ir.InsertionPoint(computation):
        for index, sharding in enumerate(_sides(computation, "in_shardings")):
            if meshes.is_ordered_otherwise(sharding) and sharding is not None:
                computation.operands[index] = apply(computation.operands[index], [Reshard(sharding)])
    with ir.InsertionPoint.after(computation):
        for result, sharding in zip(computation.results, _sides(computation, "out_shardings"), strict=True):
            if meshes.is_ordered_otherwise(sharding) and sharding is not None:
                _put_before_uses(result, meshes.on_main(sharding))


def _keep_order(function: Any, side: Side, before: Shardings, meshes: UnitedMeshes) -> None:
    """Gives arguments or results back the order of devices that they were in, with reshards inside the function."""
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
    """Reshards a value at the current insertion point, for all that use it."""
    new = apply(value, [Reshard(sharding)])
    value.replace_all_uses_except(new, [new.owner.operation])
