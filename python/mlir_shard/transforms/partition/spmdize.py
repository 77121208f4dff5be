# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts the global program to the local program, which each device runs on its shards of every tensor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar, Literal

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import editing, replica_groups, shard
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.resharding.steps import Placement
from mlir_shard.rules.builder import rank_of
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.collectives.builder import GridBuilder
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.shard import ShardCollectives
from mlir_shard.transforms.collectives.stablehlo import CollectiveForms, StablehloProgram
from mlir_shard.transforms.collectives.stablehlo_grid import StablehloGridCollectives
from mlir_shard.transforms.device_grid import DeviceGrid, GridError
from mlir_shard.transforms.gathers import Gathers, remarks_above
from mlir_shard.transforms.limits import check_sizes
from mlir_shard.transforms.named_ops import RESHARDING_OPS
from mlir_shard.transforms.partition.manual_devices import renumber_devices
from mlir_shard.transforms.partition.op_decisions import OpPlan, Signature
from mlir_shard.transforms.partition.plan import Planner
from mlir_shard.transforms.partition.plan_application import PlanApplication, localize_signature
from mlir_shard.transforms.partition.repeated_ops import RepeatedOps
from mlir_shard.transforms.partition.value_placements import is_kept_replicated
from mlir_shard.transforms.shardings import Side, shardings_of, used_axes
from mlir_shard.transforms.verified_repetition import change_verified, verify_repetition


@register
class Spmdize(Pass):
    """Gives every tensor its local type, with collectives wherever data has to move.

    The mesh becomes a grid, with an axis for each sub-axis that a sharding uses. An op computes on shards as far as the
    shardings of its operands and results agree with its sharding rule; other dimensions are gathered before it and
    sliced after it, and partial results of a sharded reduction are reduced. An op without a sharding rule is computed
    on gathered operands by every device. Values that loops and branches carry have the shards of their shardings, and
    manual and named computations are inlined. If the size of a dimension is not divisible, the last shards are padded;
    padding never reaches a result. Functions take and return shards, and no sdy attribute or op remains.

    All decisions are made before the module changes: if an op cannot be made local because it would be divergent across
    devices, the pass fails and the module is unchanged.
    """

    name = "spmdize"
    anchor = "builtin.module"
    summary = "Converts the global program to the local program, with collectives"

    collectives: Literal["shard", "stablehlo"] = option("shard", "the dialect of the collectives")
    remarks_above: int | None = remarks_above()
    verify_repetition: bool = verify_repetition()

    observers: ClassVar[tuple[Callable[[OpPlan, Any, DeviceGrid], None], ...]] = ()
    """Functions called with the plan of an op, the op and the grid before it becomes local; for isomorphic ops once."""

    def run(self, op: Any) -> None:
        if self.verify_repetition:
            change_verified(op, self._partition)
        else:
            self._partition(op, True)

    def _partition(self, op: Any, reuses: bool) -> None:
        meshes = editing.children(op, "sdy.mesh")
        movers = (*RESHARDING_OPS, "func.return")
        keeps = None if self.observers or not reuses else is_kept_replicated
        repeated = RepeatedOps(op, movers, reuses=reuses, by_name=bool(self.observers), keeps=keeps)
        check_sizes(op, repeated.representatives)
        op_names = {one.name for one in repeated.representatives}
        grid, device_ids = grid_of(op, op_names)
        channels, first_channel = Channels(1), 1
        builder: GridBuilder
        if self.collectives == "shard":
            builder = ShardCollectives(grid)
        else:
            channels = Channels.of(op)
            first_channel = channels.next_free
            program = StablehloProgram(channels, forms=CollectiveForms(scatters_together=True))
            if device_ids:
                # Collectives of StableHLO name devices, so shards stay on the devices that the only mesh assigns.
                grid = replace(grid, reordered=frozenset())
            builder = StablehloGridCollectives(program, grid, device_ids)
        functions = editing.children(op, "func.func")
        signatures = {function.attributes["sym_name"].value: signature_of(function, grid) for function in functions}
        gathers = Gathers(self.remarks_above if reuses else None)
        planner = Planner(grid, signatures, repeated, gathers)
        plans = [planner.plan_function(function) if editing.block_count(function) else [] for function in functions]
        types = [_local_type(function, signatures, grid) for function in functions]
        gathers.remark()
        renumber_devices(op, grid)
        planner.localize()
        application = PlanApplication(grid, builder)
        for function, planned, type_ in zip(functions, plans, types, strict=True):
            localize_signature(function, type_.inputs, type_.results)
            for one in planned:
                application.arrive(one)
                repeated.carry_out(one.op, partial(self._apply, application, one, grid))
        repeated.finish()
        every_function = []
        for left in operations_named(op, "func.func", *RESHARDING_OPS):
            if left.name == "func.func":
                every_function.append(left)
                continue
            # Left in the regions of ops that are computed unchanged, where nothing is sharded.
            left.results[0].replace_all_uses_with(left.operands[0])
            left.erase()
        if not op_names.isdisjoint(replica_groups.COLLECTIVES):
            replica_groups.inline_meshes(op)
        for mesh in meshes:
            mesh.erase()
        # A mesh without axes, of one device, gets no `shard.grid`, which has at least one axis.
        if self.collectives == "stablehlo":
            channels.renumber(op, first_channel)
        elif grid.shape:
            with ir.InsertionPoint.at_block_begin(op.regions[0].blocks[0]), op.location:
                new = shard.grid(grid.name, grid.shape)
                if grid.axis_names:
                    names = [ir.StringAttr.get(name) for name in grid.axis_names]
                    new.attributes[shard.AXIS_NAMES] = ir.ArrayAttr.get(names)
        _remove_attributes(op, every_function)

    def _apply(self, application: PlanApplication, planned: OpPlan, grid: DeviceGrid, op: Any) -> None:
        for observe in self.observers:
            observe(planned, op, grid)
        try:
            application.apply(planned if op is planned.op else replace(planned, op=op))
        except GridError as error:
            raise PassFailure(f"'{op.name}' cannot be partitioned: {error}", op) from error


def grid_of(module: Any, names: Collection[str]) -> tuple[DeviceGrid, tuple[int, ...]]:
    """Returns the grid for all shardings in the module, of all devices of its meshes, and the order of its devices.

    `names` are those of the operations. The order is empty unless the grid treats permuted devices as if they were in
    order and one order is common to all meshes that shard tensors.
    """
    used, refs = used_axes(module, names)
    with_axes = {mesh for mesh, axes in used if axes} or {mesh for mesh in refs.values() if mesh.axes}
    names = [name for name in refs if isinstance(name, str)]
    named = next((name for name in names if refs[name] in with_axes), None)
    try:
        grid = DeviceGrid.for_meshes(named or next(iter(names), "mesh"), used, refs)
    except GridError as error:
        raise PassFailure(str(error), module) from error
    orders = {mesh.device_ids for mesh, axes in used if axes}
    return grid, next(iter(orders)) if grid.reordered and len(orders) == 1 else ()


def signature_of(function: Any, grid: DeviceGrid) -> Signature:
    """Returns the placements of the arguments and results of a function; raises PassFailure if they are impossible."""
    type_ = function.attributes["function_type"].value
    is_private = editing.is_private(function)

    @cache
    def placement_of(sharding: TensorSharding | None, rank: int) -> Placement:
        try:
            return grid.placement(sharding, rank)
        except GridError as error:
            raise PassFailure(str(error), function) from error

    def placement(type_: Any, sharding: TensorSharding | None) -> Placement:
        return placement_of(sharding, rank_of(type_))

    @cache
    def mesh(sharding: TensorSharding | None) -> Mesh | None:
        # A private function is called only in the module, so its shards are in the grid's order.
        return None if sharding is None or is_private else sdy.mesh_of(sharding, function)

    shardings = shardings_of(function, Side.RESULTS)
    results = tuple(map(placement, type_.results, shardings))
    if any(result.unreduced for result in results):
        raise PassFailure("a function cannot return partial values, but its result has unreduced axes", function)
    result_meshes = tuple(map(mesh, shardings))
    shardings = shardings_of(function, Side.ARGUMENTS)
    return Signature(
        tuple(map(placement, type_.inputs, shardings)), results, tuple(map(mesh, shardings)), result_meshes
    )


def _local_type(function: Any, signatures: dict[str, Signature], grid: DeviceGrid) -> Any:
    type_ = function.attributes["function_type"].value
    signature = signatures[function.attributes["sym_name"].value]

    def local(kind: str, types: Iterable[Any], placements: Iterable[Placement]) -> list[Any]:
        found = []
        for index, (one, placement) in enumerate(zip(types, placements, strict=True)):
            try:
                found.append(grid.local_type(one, placement))
            except GridError as error:
                raise PassFailure(f"{kind} {index} of the function cannot be partitioned: {error}", function) from error
        return found

    inputs = local("argument", type_.inputs, signature.arguments)
    return ir.FunctionType.get(inputs, local("result", type_.results, signature.results))


def _remove_attributes(module: Any, functions: Iterable[Any]) -> None:
    """Removes the attributes of sdy from ops and from the signatures of functions."""
    editing.remove_attributes(module, "sdy.")

    @cache
    def kept_of(dictionary: Any) -> Any:
        return ir.DictAttr.get({one.name: one.attr for one in elements(dictionary) if not one.name.startswith("sdy.")})

    for function in functions:
        attributes = function.attributes
        for name in ("arg_attrs", "res_attrs"):
            if name not in attributes:
                continue
            kept = list(map(kept_of, attributes[name]))
            if any(len(dictionary) for dictionary in kept):
                attributes[name] = ir.ArrayAttr.get(kept)
            else:
                del attributes[name]
