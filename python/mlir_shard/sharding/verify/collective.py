# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invariants of collectives and of unreduced axes, between an op's operands and its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mlir_shard.sharding.axes import Axes, AxisRef, add_axes_or_merge, any_overlap, axes_difference, sort_and_merge
from mlir_shard.sharding.collective import AllToAllParam, AllToAllParamList, AxisRefList, ListOfAxisRefLists
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.tensor import ReductionOp, TensorSharding
from mlir_shard.sharding.verify.tensor import Shape, check_axis_lists, check_mesh_order, check_tensor_sharding


def check_unreduced_transition(
    operands: Sequence[TensorSharding | None],
    results: Sequence[TensorSharding | None],
    mesh: Mesh | None,
    *,
    introduced: ReductionOp | None = None,
    removed: ReductionOp | None = None,
) -> str | None:
    """Checks that unreduced axes are introduced and removed only as the op allows, and kept ones keep their reduction.

    `introduced` is the required reduction of new unreduced axes, `removed` that of removed ones; None if the op allows
    no such axes. None among the shardings is a value without sharding. Without a common mesh (`mesh` is None) nothing
    is checked.
    """
    if mesh is None:
        return None
    before, after = _unreduced(operands), _unreduced(results)
    return (
        _check_introduced(results, axes_difference(after, before, mesh), introduced)
        or _check_removed(operands, axes_difference(before, after, mesh), removed)
        or _check_kept(operands, results)
    )


def _unreduced(shardings: Sequence[TensorSharding | None]) -> Axes:
    return tuple(axis for sharding in shardings if sharding is not None for axis in sharding.unreduced_axes)


def _check_introduced(results: Sequence[TensorSharding | None], new: Axes, allowed: ReductionOp | None) -> str | None:
    if new and allowed is None:
        return f"axis {new[0]} is unreduced in a result but not in an operand, and this op produces no partial values"
    other = _other_reduction(results, new, allowed)
    if other is not None and allowed is not None:
        return f"axis {new[0]} becomes unreduced by {other.value}, but this op allows only {allowed.value}"
    return None


def _check_removed(operands: Sequence[TensorSharding | None], gone: Axes, allowed: ReductionOp | None) -> str | None:
    if gone and allowed is None:
        return f"axis {gone[0]} is unreduced in an operand but not in a result, and this op does not reduce"
    other = _other_reduction(operands, gone, allowed)
    if other is not None and allowed is not None:
        return f"axis {gone[0]} is unreduced by {other.value}, but reduced by {allowed.value}"
    return None


def _other_reduction(
    shardings: Sequence[TensorSharding | None], axes: Axes, expected: ReductionOp | None
) -> ReductionOp | None:
    for sharding in shardings:
        if (
            sharding is not None
            and sharding.reduction_op is not expected
            and any_overlap(sharding.unreduced_axes, axes)
        ):
            return sharding.reduction_op
    return None


def _check_kept(operands: Sequence[TensorSharding | None], results: Sequence[TensorSharding | None]) -> str | None:
    for result in results:
        for operand in operands:
            if operand is None or result is None or operand.reduction_op is result.reduction_op:
                continue
            for axis in result.unreduced_axes:
                if any_overlap((axis,), operand.unreduced_axes):
                    was, now = operand.reduction_op.value, result.reduction_op.value
                    return f"axis {axis} stays unreduced, but its reduction changes from {was} to {now}"
    return None


def check_collective(
    operand: TensorSharding | None,
    result: TensorSharding,
    operand_mesh: Mesh | None,
    result_mesh: Mesh | None,
    shape: Shape,
    *,
    operand_may_lack_sharding: bool = False,
    meshes_may_differ: bool = False,
    manual_axes: Collection[str] = (),
) -> str | None:
    """Checks the constraints of all collectives: a valid result sharding, and an operand sharding of its rank and mesh.

    all_slice, all_reduce and reduce_scatter allow an operand without sharding, collective_permute another mesh.
    """
    if operand is None and not operand_may_lack_sharding:
        return "the operand must have a sharding"
    if violation := check_tensor_sharding(result, result_mesh, shape, manual_axes=manual_axes):
        return f"out_sharding: {violation}"
    if operand is None:
        return None
    if operand_mesh is None:
        return f"operand: unknown mesh {operand.mesh_text}"
    if operand_mesh != result_mesh and not meshes_may_differ:
        return f"out_sharding is on the mesh {result_mesh}, but the operand is on {operand_mesh}"
    if operand.rank != result.rank:
        return f"out_sharding has {result.rank} dimensions, but the operand's sharding {operand.rank}"
    return None


def check_all_gather(
    operand: TensorSharding, result: TensorSharding, gathering_axes: ListOfAxisRefLists, mesh: Mesh
) -> str | None:
    """Checks that the result sharding is the operand's without the gathering axes at the end of each dimension."""
    return _check_axes_per_dim(operand, result, gathering_axes, mesh, _gathered)


def check_all_slice(
    operand: TensorSharding | None, result: TensorSharding, slicing_axes: ListOfAxisRefLists, mesh: Mesh
) -> str | None:
    """Checks that the result sharding is the operand's with the slicing axes added to the end of each dimension."""
    return _check_axes_per_dim(_or_open(operand, result), result, slicing_axes, mesh, _sliced)


def check_reduce_scatter(
    operand: TensorSharding | None,
    result: TensorSharding,
    reduce_scatter_axes: ListOfAxisRefLists,
    reduction_op: ReductionOp,
    mesh: Mesh,
) -> str | None:
    """Checks that adding the axes to the end of each dimension makes the result sharding.

    Unreduced axes may only be reduced by `reduction_op`.
    """
    operand = _or_open(operand, result)
    return check_unreduced_transition((operand,), (result,), mesh, removed=reduction_op) or _check_axes_per_dim(
        operand, result, reduce_scatter_axes, mesh, _sliced
    )


def check_all_to_all(
    operand: TensorSharding, result: TensorSharding, params: AllToAllParamList, mesh: Mesh
) -> str | None:
    """Checks that moving each list of axes from the end of its source to that of its target makes the result."""
    if not params.value:
        return "an all-to-all must move at least one axis"
    if violation := _check_all_to_all_dims(params, result.rank):
        return violation
    if violation := check_axis_lists([(f"{p.src_dim}->{p.tgt_dim}", p.axes) for p in params], mesh):
        return violation
    expected = [dim.axes for dim in operand.dim_shardings]
    for param in params:
        gathered = _gathered(expected[param.src_dim], param.axes, mesh)
        if isinstance(gathered, str):
            return f"dim {param.src_dim}: {gathered}"
        expected[param.src_dim] = gathered
        expected[param.tgt_dim] = add_axes_or_merge(expected[param.tgt_dim], param.axes, mesh)
    return _check_result_axes(result, expected)


def check_collective_permute(
    operand: TensorSharding, result: TensorSharding, operand_mesh: Mesh, result_mesh: Mesh
) -> str | None:
    """Checks that each dimension keeps its number of shards, and the meshes are equal except for the device order."""
    if operand_mesh.axes != result_mesh.axes:
        return f"out_sharding is on the mesh {result_mesh}, but the operand's mesh {operand_mesh} has different axes"
    if operand.mesh_or_ref != result.mesh_or_ref and operand_mesh.device_ids == result_mesh.device_ids:
        return (
            f"out_sharding is on {result.mesh_text} and the operand on {operand.mesh_text}, but the meshes must "
            "differ in the order of devices, not only in name"
        )
    for dim, (before, after) in enumerate(zip(operand.dim_shardings, result.dim_shardings, strict=True)):
        had, has = before.sharded_size(operand_mesh), after.sharded_size(result_mesh)
        if had != has:
            return f"dim {dim}: {after} makes {has} shards, but the operand's {before} makes {had}"
    return None


def check_all_reduce(
    operand: TensorSharding | None,
    result: TensorSharding,
    reduction_axes: AxisRefList,
    reduction_op: ReductionOp,
    mesh: Mesh,
) -> str | None:
    """Checks that the reduction axes do not shard the operand and are not unreduced in the result; all else is kept."""
    operand = _or_open(operand, result)
    if not operand.is_equivalent(result, ignore_unreduced_axes=True):
        return f"out_sharding must shard like the operand, but is {result} after {operand}"
    if violation := _check_sorted_axes("reduction axes", reduction_axes, mesh):
        return violation
    for axis in reduction_axes:
        for where, axes in (*_dims(operand), ("replicated axes", operand.replicated_axes)):
            if any_overlap((axis,), axes):
                return f"reduction axis {axis} overlaps {where} of the operand and cannot be reduced"
        if any_overlap((axis,), result.unreduced_axes):
            return f"reduction axis {axis} overlaps the unreduced axes of out_sharding, but is reduced"
    return check_unreduced_transition((operand,), (result,), mesh, removed=reduction_op)


def check_sharded_to_unreduced(
    operand: TensorSharding, result: TensorSharding, axes: ListOfAxisRefLists, mesh: Mesh
) -> str | None:
    """Checks that moving the axes from the end of each dimension to the unreduced axes makes the result."""
    if violation := _check_reduced_by_sum(result):
        return violation
    if violation := _check_axes_per_dim(operand, result, axes, mesh, _gathered):
        return violation
    return _check_unreduced_axes(operand, result, [axis for of_dim in axes for axis in of_dim], mesh)


def check_replicated_to_unreduced(
    operand: TensorSharding, result: TensorSharding, axes: AxisRefList, mesh: Mesh
) -> str | None:
    """Checks that the axes, replicated in the operand, are added to the unreduced axes; all else is kept."""
    if violation := _check_reduced_by_sum(result):
        return violation
    if operand.dim_shardings != result.dim_shardings:
        return f"out_sharding must have the operand's dimension shardings, but is {result} after {operand}"
    if not axes.value:
        return "at least one axis that becomes unreduced must be given"
    if violation := _check_sorted_axes("axes", axes, mesh):
        return violation
    for axis in axes:
        for where, used in (*_dims(operand), ("unreduced axes", operand.unreduced_axes)):
            if any_overlap((axis,), used):
                return f"axis {axis} overlaps {where} of the operand, but must be replicated there"
    return _check_unreduced_axes(operand, result, axes.value, mesh)


_Change = Callable[[Axes, Sequence[AxisRef], Mesh], "Axes | str"]


def _gathered(axes: Axes, removed: Sequence[AxisRef], mesh: Mesh) -> Axes | str:
    """Returns `axes` without `removed` at their end, or the reason why they do not end with `removed`."""
    rest = list(axes)
    for axis in reversed(removed):
        if not rest or not axis.is_suffix_of(rest[-1], mesh):
            had, has = (f"{{{', '.join(map(str, of))}}}" for of in (axes, rest))
            left = "" if has == had else f", of which {has} is left"
            return f"{axis} is not at the end of the operand's axes {had}{left}"
        prefix = rest.pop().prefix_without_overlap(axis)
        if prefix is not None:
            rest.append(prefix)
    return tuple(rest)


def _sliced(axes: Axes, added: Sequence[AxisRef], mesh: Mesh) -> Axes | str:
    return add_axes_or_merge(axes, added, mesh)


def _check_axes_per_dim(
    operand: TensorSharding, result: TensorSharding, axes: ListOfAxisRefLists, mesh: Mesh, change: _Change
) -> str | None:
    if len(axes) != result.rank:
        return f"axes are given for {len(axes)} dimensions, but the tensor has {result.rank}"
    if violation := check_axis_lists([(f"axes of dim {dim}", of.value) for dim, of in enumerate(axes)], mesh):
        return violation
    expected: list[Axes] = []
    for dim, (before, changed) in enumerate(zip(operand.dim_shardings, axes, strict=True)):
        after = change(before.axes, changed.value, mesh)
        if isinstance(after, str):
            return f"dim {dim}: {after}"
        expected.append(after)
    return _check_result_axes(result, expected)


def _check_result_axes(result: TensorSharding, expected: Sequence[Axes]) -> str | None:
    for dim, (of, axes) in enumerate(zip(result.dim_shardings, expected, strict=True)):
        if of.axes != axes:
            has, right = (f"{{{', '.join(map(str, some))}}}" for some in (of.axes, axes))
            return f"dim {dim}: out_sharding has the axes {has}, but the operand's become {right}"
    return None


def _check_all_to_all_dims(params: AllToAllParamList, rank: int) -> str | None:
    seen: set[int] = set()
    previous: AllToAllParam | None = None
    for param in params:
        for name, dim in (("source", param.src_dim), ("target", param.tgt_dim)):
            if not 0 <= dim < rank:
                return f"{name} dim {dim} is out of range for a tensor of rank {rank}"
            if dim in seen:
                return f"dim {dim} occurs more than once as a source or target"
            seen.add(dim)
        if previous is not None and previous.src_dim > param.src_dim:
            return f"source dims must be in ascending order, but {param.src_dim} comes after {previous.src_dim}"
        previous = param
    return None


def _check_sorted_axes(where: str, axes: AxisRefList, mesh: Mesh) -> str | None:
    return check_axis_lists([(where, axes.value)], mesh) or check_mesh_order(where, axes.value, mesh)


def _check_unreduced_axes(
    operand: TensorSharding, result: TensorSharding, added: Sequence[AxisRef], mesh: Mesh
) -> str | None:
    expected = sort_and_merge((*operand.unreduced_axes, *added), mesh)
    if result.unreduced_axes != expected:
        has, right = (f"{{{', '.join(map(str, some))}}}" for some in (result.unreduced_axes, expected))
        return f"out_sharding has the unreduced axes {has}, but the operand's become {right}"
    return None


def _check_reduced_by_sum(result: TensorSharding) -> str | None:
    if result.reduction_op is not ReductionOp.SUM:
        return f"out_sharding is unreduced by {result.reduction_op.value}, but axes can become unreduced only by sum"
    return None


def _or_open(operand: TensorSharding | None, result: TensorSharding) -> TensorSharding:
    return TensorSharding.fully_open(result.rank, result.mesh_or_ref) if operand is None else operand


def _dims(sharding: TensorSharding) -> list[tuple[str, Axes]]:
    return [(f"dim {dim}", of.axes) for dim, of in enumerate(sharding.dim_shardings)]
