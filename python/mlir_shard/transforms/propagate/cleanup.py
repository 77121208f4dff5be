# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes after propagation: close shardings, sink data-flow edges, merge constants, and fix shardings of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import gcd
from typing import Any

from mlir_shard._native import ExpressionKind as Kind
from mlir_shard.asm.module import native_host
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import body_shardings, sharding_of
from mlir_shard.dialects.data_flow_edges import are_known, edges_of, has_edges
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import (
    attribute_columns,
    first_names,
    functions,
    operations_named,
    operations_where,
    terminator,
)
from mlir_shard.ir.operation_list import OperationList, capsules_of
from mlir_shard.ir.values import users as users_of
from mlir_shard.passes.analyses import held_operations
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Changes, FunctionPass, ModulePass, register
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.constants import CONSTANT_OPS
from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, TensorSharding
from mlir_shard.sharding.tensor import mesh_of
from mlir_shard.transforms import debug_record
from mlir_shard.transforms.call_graph import has_body, main_function
from mlir_shard.transforms.common_grid import CommonGrid
from mlir_shard.transforms.constant_expressions import expression_kind
from mlir_shard.transforms.data_flow_edges import (
    EDGE,
    MANUAL,
    argument_owners,
    edge_of,
    result_shardings,
    set_argument_shardings,
    set_result_shardings,
    shardings_of_edges,
    sink_known_edges,
)
from mlir_shard.transforms.func_edges import FUNC_EDGE, sink_func_edges
from mlir_shard.transforms.kept_collectives import kept_collectives
from mlir_shard.transforms.shardings import (
    Side,
    attributes_of,
    rank_of,
    replace_shardings,
    set_attributes,
    set_shardings,
    transform_shardings,
)


@register
class CloseShardings(ModulePass):
    """Closes every dimension of every sharding, and drops the replicated axes, which a closed sharding implies."""

    name = "sdy-close-shardings"
    summary = "Closes tensor shardings and drops replicated axes"

    def run(self, op: Any) -> bool | Changes:
        changed = transform_shardings(op, _closed)
        return False if changed is None else Changes(attributed=changed, everywhere=(sdy.SHARDING,))


def _closed(sharding: TensorSharding) -> TensorSharding:
    # A priority has no effect on a closed dimension without axes.
    dims = [DimensionSharding(dim.axes, True, dim.priority if dim.axes else None) for dim in sharding.dim_shardings]
    return TensorSharding(sharding.mesh_or_ref, tuple(dims), (), sharding.unreduced_axes, sharding.reduction_op)


BROADCAST = "stablehlo.broadcast_in_dim"
_MERGED = (Kind.CONSTANT, Kind.OF_CONSTANTS, Kind.ASKED_EACH, Kind.EXPANSION)


@register
class ConstantOrScalarMerger(FunctionPass):
    """Merges constants of a block that have the same type and attributes, including shardings, and broadcasts of one
    scalar that do. Constants in different blocks are not merged.

    With `expressions`, all expressions that `sdy-constant-or-scalar-splitter` splits are merged.
    """

    name = "sdy-constant-or-scalar-merger"
    summary = "Merges identical constants and broadcasts of scalars that have the same sharding"

    expressions: bool = option(False, "Merge constant expressions, including empty tensors")

    def run(self, op: Any) -> bool | Changes:
        names = first_names(op) if self.expressions else [*sorted(CONSTANT_OPS), BROADCAST]
        merges = _of_expressions if self.expressions else _of_constants
        kept = native_host().merge_equal(op.operation._CAPIPtr, names, merges)
        return Changes(moved=OperationList(kept)) if kept else False


def _of_constants(capsule: Any) -> list[int] | None:
    op = ir.Operation._CAPICreate(capsule)
    return [] if op.name != BROADCAST or rank_of(op.operands[0].type) == 0 else None


def _of_expressions(capsule: Any) -> list[int] | None:
    """Returns the operands that must be constant for the op to be an expression: all but scalars, which are shared."""
    op = ir.Operation._CAPICreate(capsule)
    if len(op.results) != 1 or expression_kind(op) not in _MERGED:
        return None
    is_constant_op = op.name in CONSTANT_OPS
    if rank_of(op.results[0].type) == 0 and not is_constant_op:
        return None
    return [index for index, operand in enumerate(op.operands) if rank_of(operand.type) > 0]


@register
class RemovePropagationDebugInfo(ModulePass):
    """Removes the attributes that record the origins of shardings and the steps of propagation."""

    name = "sdy-remove-propagation-debug-info"
    summary = "Removes the debug information of propagation about the origins of shardings"

    def run(self, op: Any) -> None:
        _clean(op)
        arrays = ModuleArrays(op)
        carrying = {
            signature
            for signature, one in enumerate(arrays.representatives())
            if one.name == "func.func" or any(name in one.attributes for name in debug_record.ALL)
        }
        for number, signature in enumerate(arrays.signatures):
            if signature in carrying:
                _clean(arrays.operation(number))


def _clean(op: Any) -> None:
    for name in debug_record.ALL:
        if name in op.attributes:
            del op.attributes[name]
    if op.name == "func.func":
        for side in Side:
            _clean_signature(op, side)


def _clean_signature(function: Any, side: Side) -> None:
    old = attributes_of(function, side)
    new = [{name: one for name, one in entries.items() if name not in debug_record.ALL} for entries in old]
    if new != old:
        set_attributes(function, side, new)


@register
class PropagateToFuncResults(ModulePass):
    """Gives each result of each function except the main one the sharding of the returned value, or none."""

    name = "sdy-propagate-to-func-results"
    summary = "Copies the shardings of returned values to the results of functions"

    def run(self, op: Any) -> Changes:
        main = main_function(op)
        changed = []
        for function in functions(op).values():
            if function == main or not has_body(function):
                continue
            last = terminator(function)
            if last.name == "func.return":
                set_shardings(function, Side.RESULTS, [sharding_of(value) for value in last.operands])
                changed.append(function)
        return Changes(attributed=changed)


def _is_edge_or_owner(name: str) -> bool:
    return name == EDGE or has_edges(name)


@register
class SinkDataFlowEdges(FunctionPass):
    """Gives the owner of each `sdy.data_flow_edge` the edge's sharding, and replaces the edge by its owner.

    If some edges of an operation are sharded, its other block arguments or results become fully open.
    """

    name = "sdy-sink-data-flow-edges"
    summary = "Moves the shardings of data-flow edges to their owners"
    needs = staticmethod(_is_edge_or_owner)

    sink_debug_sharding_origins: bool = option(False, "Keep the origins of the shardings of edges")
    sink_debug_propagation_edge_sharding: bool = option(False, "Keep the propagation steps of edges")

    def run(self, op: Any) -> Changes | bool:
        found = operations_where(op, _is_edge_or_owner)
        owners = [one for one in found if one.name != EDGE]
        for owner in owners if self.sink_debug_sharding_origins or self.sink_debug_propagation_edge_sharding else ():
            self._keep_debug_info(owner)
        users = list(sink_known_edges([owner for owner in owners if are_known(owner.name)]).capsules)
        others = [owner for owner in owners if not are_known(owner.name)]
        for owner in others:
            _sink(owner)
        # The remaining edges belong to other ops, or are not the only user of their owner.
        edges = operations_named(op, EDGE)
        # Edges may use each other.
        left = {user: None for edge in edges for user in users_of(edge.results[0]) if user.name != EDGE}
        for edge in edges:
            edge.results[0].replace_all_uses_with(edge.operands[0])
            edge.erase()
        return Changes(OperationList([*users, *capsules_of([*left])]), owners) if found else False

    def _keep_debug_info(self, op: Any) -> None:
        arguments, results = _owners_of(op)
        if self.sink_debug_sharding_origins:
            _keep(op, arguments, debug_record.SHARDING_ORIGINS, debug_record.BLOCK_ARG_SHARDING_ORIGINS)
            _keep(op, results, debug_record.SHARDING_ORIGINS, debug_record.RESULT_SHARDING_ORIGINS)
        if self.sink_debug_propagation_edge_sharding:
            _keep(op, arguments, debug_record.PROPAGATION_EDGES, debug_record.BLOCK_ARG_PROPAGATION_EDGES)
            _keep(op, results, debug_record.PROPAGATION_EDGES, debug_record.RESULT_PROPAGATION_EDGES)


def _owners_of(op: Any) -> tuple[list[Any], list[Any]]:
    """Returns the arguments and the results that own a data-flow edge of an op."""
    owners = [edge.owner for edge in edges_of(op)]
    arguments = [owner for owner in owners if isinstance(owner.owner, ir.Block)]
    return arguments, [owner for owner in owners if not isinstance(owner.owner, ir.Block)]


def _sink(op: Any) -> None:
    arguments, results = _owners_of(op)
    of_arguments = shardings_of_edges(arguments)
    if of_arguments is not None:
        set_argument_shardings(op, of_arguments)
    of_results = shardings_of_edges(results)
    if of_results is not None:
        set_result_shardings(op, of_results)


def _keep(op: Any, owners: Sequence[Any], on_edge: str, on_owner: str) -> None:
    """Collects an attribute of the owners' edges in an attribute of the operation; edges without it are left out."""
    edges = [edge for owner in owners if (edge := edge_of(owner)) is not None]
    found = [edge.attributes[on_edge] for edge in edges if on_edge in edge.attributes]
    op.attributes[on_owner] = ir.ArrayAttr.get(found, op.context)


@register
class SinkFuncDataFlowEdges(FunctionPass):
    """Gives the operand of each `sdy.func_data_flow_edge` the edge's sharding, and replaces the edge by its operand.

    If the edge has no sharding, a sharded operand becomes fully open.
    """

    name = "sdy-sink-func-data-flow-edges"
    summary = "Moves the shardings of function edges to arguments and call results"
    needs = (FUNC_EDGE,)

    def run(self, op: Any) -> bool:
        return sink_func_edges(op, opens=True)


@register
class UpdateNonDivisibleInputOutputShardings(ModulePass):
    """Shards each dimension of arguments and results of functions, calls and manual computations along the longest
    prefix of its axes that divides it evenly, so that callers do not have to pad tensors. The last axis may become a
    sub-axis.

    Operands and results of collectives of sdy keep their shardings, by reshards. With `common-grid`, the prefixes are
    shorter where sub-axes would have no common grid, as those of sizes 2 and 3 of an axis of size 6.
    """

    name = "sdy-update-non-divisible-input-output-shardings"
    summary = "Makes the shardings of inputs and outputs divide their dimensions evenly"

    common_grid: bool = option(False, "split axes of a mesh only such that one grid has all sub-axes of the module")

    def run(self, op: Any) -> bool:
        with kept_collectives(op):
            return self._make_even(op)

    def _make_even(self, op: Any) -> bool:
        meshes = sdy.meshes(op)
        grid = CommonGrid.of(op) if self.common_grid else None
        is_changed = False

        @cache
        def even_of(sharding: TensorSharding, type_: Any) -> TensorSharding:
            return _even(sharding, shape_of(type_), meshes, grid)

        def evenly(shardings: Sequence[TensorSharding], values: Sequence[Any]) -> list[TensorSharding]:
            return [even_of(sharding, value.type) for sharding, value in zip(shardings, values, strict=True)]

        for function in functions(op).values():
            for side in Side:
                is_changed |= replace_shardings(function, side, even_of)
        for one in _with_shardings(op):
            results = result_shardings(one)
            if results is not None:
                even = evenly(results, one.results)
                if even != list(results):
                    set_result_shardings(one, even)
                    is_changed = True
            arguments = body_shardings(one)
            if arguments is not None:
                even = evenly(arguments, argument_owners(one))
                if even != list(arguments):
                    set_argument_shardings(one, even)
                    is_changed = True
        return is_changed


def _with_shardings(module: Any) -> list[Any]:
    """Returns the manual computations, and the calls with a sharded result."""
    ops = held_operations(module, "func.call", MANUAL)
    (shardings,) = attribute_columns(ops, sdy.SHARDING)
    is_even = {attribute: _is_unsharded(attribute) for attribute in set(shardings)}
    return [op for op, attribute in zip(ops, shardings, strict=True) if op.name == MANUAL or not is_even[attribute]]


def _is_unsharded(attribute: Any) -> bool:
    return attribute is None or all(sharding.is_fully_replicated for sharding in attribute.value.shardings)


def _even(
    sharding: TensorSharding, shape: Sequence[int], meshes: Mapping[str, Mesh], grid: CommonGrid | None
) -> TensorSharding:
    # Dynamic sizes are negative, and only tensors have sizes.
    if len(shape) != sharding.rank or any(size < 0 for size in shape):
        return sharding
    mesh = mesh_of(sharding, meshes)
    if mesh is None:
        return sharding
    dims = tuple(_even_dim(dim, size, mesh, grid) for dim, size in zip(sharding.dim_shardings, shape, strict=True))
    return sharding if dims == sharding.dim_shardings else replace(sharding, dim_shardings=dims)


def _even_dim(dim: DimensionSharding, size: int, mesh: Mesh, grid: CommonGrid | None) -> DimensionSharding:
    """Returns the longest prefix of the axes that divides a dimension of this size; the last may become a sub-axis.

    If `grid` is given, it gets the sub-axis, which is smaller if no grid has it otherwise.
    """
    if size % dim.sharded_size(mesh) == 0:
        return dim
    axes: list[AxisRef] = []
    for axis in dim.axes:
        whole = axis.size(mesh)
        part = gcd(whole, size)
        if grid is not None and part < whole:
            parts = (one for one in range(part, 1, -1) if part % one == 0)
            part = next((one for one in parts if grid.take(mesh, (_sub_axis(axis, one),))), 1)
        if part > 1:
            axes.append(axis if part == whole else _sub_axis(axis, part))
        if part < whole:
            break
        size //= part
    return DimensionSharding(tuple(axes), dim.is_closed)


def _sub_axis(axis: AxisRef, size: int) -> AxisRef:
    """Returns the first sub-axis of this size of an axis or sub-axis."""
    return AxisRef.sub(axis.name, axis.pre_size, size)
