# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The global program becomes the program that one device runs on its blocks of every tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mlir_shard.dialects import sdy, shard
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.resharding.steps import Placement
from mlir_shard.rules.builder import rank_of
from mlir_shard.rules.partition import Blocks, PartitionError
from mlir_shard.sharding import Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.shardings import common_mesh
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid, GridError
from mlir_shard.transforms.spmdize.emission import device_index, emit, table_entry
from mlir_shard.transforms.spmdize.plan import OpPlan, Planner, Signature
from mlir_shard.transforms.walk import ops_in


@register
class Spmdize(Pass):
    """Gives every tensor the type of a device's block, with collectives wherever data has to move.

    The mesh becomes a grid, with an axis for each sub-axis that a sharding uses. An op runs on blocks as far as the
    shardings of its operands and results agree with its sharding rule; what does not agree is gathered before it and
    sliced after it, and partial results of a sharded reduction are reduced. Functions take and return blocks.
    Nothing of sdy is left. All is decided before anything changes: where an op cannot be made local, the pass fails
    and the module is as it was.
    """

    name = "spmdize"
    anchor = "builtin.module"
    summary = "Converts the global program to the program of one device, with collectives"

    collectives: str = option("shard", "the dialect of the collectives", choices=("shard",))

    def run(self, op: Any) -> None:
        meshes = [inner.operation for inner in _top(op) if inner.operation.name == "sdy.mesh"]
        grid = _grid(op)
        functions = [inner.operation for inner in _top(op) if inner.operation.name == "func.func"]
        signatures = {function.attributes["sym_name"].value: _signature(function, grid) for function in functions}
        planner = Planner(grid, signatures)
        plans = [planner.plan_function(function) if _has_body(function) else [] for function in functions]
        types = [_local_type(function, signatures, grid) for function in functions]
        for function, planned, type_ in zip(functions, plans, types, strict=True):
            _localize_signature(function, type_)
            for one in planned:
                _apply(one, grid)
        if grid.name in sdy.meshes(op):
            with ir.InsertionPoint(meshes[0]), meshes[0].location:
                shard.grid(grid.name, grid.shape)
        for mesh in meshes:
            mesh.erase()
        _remove_attributes(op)


def _top(module: Any) -> list[Any]:
    return list(module.regions[0].blocks[0].operations)


def _has_body(function: Any) -> bool:
    return len(function.regions[0].blocks) > 0


def _grid(module: Any) -> DeviceGrid:
    """The grid for all shardings in the module."""
    meshes = sdy.meshes(module)
    found = list(_shardings(module))
    sharded = [sharding for sharding in found if sharding.used_axes]
    names = {sharding.mesh_or_ref for sharding in sharded if isinstance(sharding.mesh_or_ref, str)}
    unknown = next((name for name in names if name not in meshes), None)
    if unknown is not None:
        raise PassFailure(f"a sharding refers to mesh @{unknown}, which the module does not define", module)
    common = common_mesh(sharded, meshes)
    if sharded and common is None:
        raise PassFailure("shardings on several meshes cannot be partitioned together yet", module)
    for sharding in found:
        mesh = sharding.mesh_or_ref if isinstance(sharding.mesh_or_ref, Mesh) else meshes.get(sharding.mesh_or_ref)
        if mesh is not None and mesh.is_maximal:
            raise PassFailure(f"a tensor that lies on one device alone ({sharding}) cannot be partitioned yet", module)
    ref, mesh = common or next(iter(meshes.items()), ("mesh", Mesh()))
    try:
        return DeviceGrid.for_shardings(
            ref if isinstance(ref, str) else "mesh", mesh, (axis for sharding in sharded for axis in sharding.used_axes)
        )
    except GridError as error:
        raise PassFailure(str(error), module) from error


def _shardings(module: Any) -> Iterator[TensorSharding]:
    """Every distinct sharding in the module, in the order of the text."""
    seen: dict[Any, None] = {}

    def collect(attribute: Any) -> None:
        if isinstance(attribute, SdyAttribute):
            seen.setdefault(attribute)

    for op in ops_in(module):
        attributes = op.attributes
        for name in attributes:
            collect(attributes[name])
            if name in ("arg_attrs", "res_attrs"):
                for dictionary in attributes[name]:
                    if sdy.SHARDING in dictionary:
                        collect(dictionary[sdy.SHARDING])
    for attribute in seen:
        value = attribute.value
        if isinstance(value, TensorSharding):
            yield value
        elif isinstance(value, TensorShardingPerValue):
            yield from value.shardings


def _signature(function: Any, grid: DeviceGrid) -> Signature:
    type_ = function.attributes["function_type"].value

    def placement(type_: Any, sharding: TensorSharding | None) -> Placement:
        try:
            return grid.placement(sharding, rank_of(type_))
        except GridError as error:
            raise PassFailure(str(error), function) from error

    results = tuple(placement(one, sdy.get_result_sharding(function, index)) for index, one in enumerate(type_.results))
    if any(result.unreduced for result in results):
        raise PassFailure("a function cannot return partial values: its result has unreduced axes", function)
    if not _has_body(function):
        return Signature(tuple(Placement(((),) * rank_of(one)) for one in type_.inputs), results)
    shardings = [sdy.get_sharding(argument) for argument in function.regions[0].blocks[0].arguments]
    return Signature(tuple(map(placement, type_.inputs, shardings)), results)


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


def _localize_signature(function: Any, type_: Any) -> None:
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    if _has_body(function):
        for argument, local in zip(function.regions[0].blocks[0].arguments, type_.inputs, strict=True):
            argument.set_type(local)


def _apply(planned: OpPlan, grid: DeviceGrid) -> None:
    op = planned.op
    with ir.InsertionPoint(op), op.location:
        operands = [emit(value, steps, grid) for value, steps in zip(op.operands, planned.operand_steps, strict=True)]
    if planned.replaced:
        for result in op.results:
            result.replace_all_uses_with(operands[0])
        op.erase()
        return
    for index, (steps, value) in enumerate(zip(planned.operand_steps, operands, strict=True)):
        if steps:
            op.operands[index] = value
    result_steps = planned.result_steps
    # A partition rule may put more behind the op, and that is then what it makes.
    uses = [[(use.owner, use.operand_number) for use in result.uses] for result in op.results]
    if planned.partition is not None:
        if _localize(planned, grid) is False:
            result_steps = planned.whole_steps
    elif planned.made:
        for result, type_ in zip(op.results, planned.result_types, strict=True):
            result.set_type(type_)
    for of_result, steps in zip(uses, result_steps, strict=False):
        if steps and of_result:
            _insert_before_uses(op, of_result, steps, grid)


def _localize(planned: OpPlan, grid: DeviceGrid) -> bool | None:
    op = planned.op
    assert planned.partition is not None

    def index_along(axes: Any) -> Any:
        with ir.InsertionPoint(op), op.location:
            return device_index(axes, grid)

    def entry(axes: Any, value: Any, type_: Any) -> Any:
        return table_entry(axes, value, type_, grid)

    blocks = Blocks(
        planned.result_types,
        planned.rule,
        planned.factor_axes,
        index_along,
        tuple(grid.blocked(value.type, one) for value, one in zip(op.operands, planned.needed, strict=True)),
        tuple(grid.blocked(type_, one) for type_, one in zip(planned.result_types, planned.made, strict=True)),
        entry,
    )
    try:
        return planned.partition.localize(op, blocks)
    except PartitionError as error:
        raise PassFailure(f"'{op.name}' cannot be partitioned: {error}", op) from error


def _insert_before_uses(op: Any, uses: Sequence[tuple[Any, int]], steps: Any, grid: DeviceGrid) -> None:
    """Puts steps between a value that an op is for and its uses."""
    user, number = uses[0]
    value = user.operation.operands[number]
    with ir.InsertionPoint.after(value.owner), op.location:
        after = emit(value, steps, grid)
    for user, number in uses:
        user.operation.operands[number] = after


def _remove_attributes(module: Any) -> None:
    """Removes what is sdy's on ops and in signatures."""
    for op in ops_in(module):
        attributes = op.attributes
        for name in list(attributes):
            if name.startswith("sdy."):
                del attributes[name]
            elif name in ("arg_attrs", "res_attrs"):
                kept = [
                    ir.DictAttr.get({one.name: one.attr for one in dictionary if not one.name.startswith("sdy.")})
                    for dictionary in attributes[name]
                ]
                if any(len(dictionary) for dictionary in kept):
                    attributes[name] = ir.ArrayAttr.get(kept)
                else:
                    del attributes[name]
