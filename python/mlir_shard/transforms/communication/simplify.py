# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that drop, join and fold collectives, and the pipeline of all passes that optimize communication."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

from mlir_shard.host import dialect, ir
from mlir_shard.ir import empty_tensors, shard
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.ir.op_kinds import IDENTITY, OWN_GROUP, OpKinds, operations_of_results
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.replica_groups import REPLICA_GROUPS
from mlir_shard.ir.values import defining_op, has_one_use, users
from mlir_shard.passes import host_passes
from mlir_shard.passes.analyses import held
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import ModulePass, register, register_pipeline
from mlir_shard.transforms.communication.collective_forms import (
    AMONG,
    CHANNEL,
    GATHERS,
    SCATTERS,
    among,
    dim_of,
    is_of_values,
    reduction,
    scattered,
)
from mlir_shard.transforms.communication.communication_reading import COLLECTIVES
from mlir_shard.transforms.communication.shard_collective_matmul import overlap

# In a group of one device, the result of these is the operand.
_FOLDABLE = frozenset(("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter"))
# These form pairs: one has no meaning without the other.
_KEPT = frozenset(("shard.send", "shard.recv"))
_ALL_REDUCE, _SLICE = "shard.all_reduce", "shard.all_slice"


@register
class DropCollectives(ModulePass):
    """Replaces a collective by an earlier one that is equal except for its channel, and a collective over groups of one
    device by its operand. Erases unused collectives.

    The host's passes do the same for `shard`, but treat StableHLO collectives as ops with effects.
    """

    name = "shard-drop-collectives"
    summary = "Removes collectives that are redundant, unused or over a single device"
    needs = COLLECTIVES - _KEPT

    def run(self, op: Any) -> bool:
        kinds = OpKinds(op, *sorted(COLLECTIVES - _KEPT), ignored=(CHANNEL,))
        if not len(kinds):
            return False
        grids, numbers = shard.grids(op), dict[Hashable, int]()
        return kinds.drop_repeated([_group(one, grids, numbers) for one in kinds.representatives])


def _group(collective: Any, grids: dict[str, tuple[int, ...]], numbers: dict[Hashable, int]) -> int | None:
    """Returns the number of the collectives that are equal if their operands are; None for one that stays."""
    if not is_of_values(collective):
        return None
    if _is_alone(collective, grids):
        return IDENTITY
    attributes = frozenset((name, value) for name, value in collective.attributes.items() if name != CHANNEL)
    kind = reduction(collective) if len(collective.regions) else None
    if kind is collective:
        return OWN_GROUP
    types = tuple(result.type for result in collective.results)
    key = (collective.name, attributes, CHANNEL in collective.attributes, kind, types)
    return numbers.setdefault(key, len(numbers))


def _is_alone(collective: Any, grids: dict[str, tuple[int, ...]]) -> bool:
    """Returns whether a collective is among groups of one device."""
    dialect, _, kind = collective.name.partition(".")
    if kind not in _FOLDABLE or [one.type for one in collective.operands] != [one.type for one in collective.results]:
        return False
    if dialect == "shard":
        grid = grids.get(collective.attributes["grid"].value)
        return grid is not None and all(grid[axis] == 1 for axis in shard.grid_axes(collective))
    groups = collective.attributes[REPLICA_GROUPS]
    # Without a list of groups, all devices are one group.
    return hasattr(groups, "type") and groups.type.rank == 2 and groups.type.shape[0] > 0 and groups.type.shape[1] == 1


@register
class JoinCollectives(ModulePass):
    """Replaces an all-gather of a reduce-scatter along the same devices and dimension by an all-reduce, a slice of such
    an all-gather by its operand, and a slice of an all-reduce among the same devices by a reduce-scatter.

    An all-reduce needs as many bytes and messages as a reduce-scatter and an all-gather. If the scattered shards have
    other uses, both stay, because an additional all-reduce would cost more. An all-reduce that has uses other than the
    slice stays as well.
    """

    name = "shard-join-collectives"
    summary = "Joins reduce-scatters with all-gathers, and all-gathers and all-reduces with slices"
    needs = (*GATHERS, _SLICE)

    def run(self, op: Any) -> bool:
        joined = [_all_reduce(gather) for gather in operations_of_results(op, GATHERS, SCATTERS)]
        undone = [_undo(one) for one in operations_of_results(op, (_SLICE,), GATHERS)]
        divided = [_reduce_scatter(one) for one in operations_of_results(op, (_SLICE,), (_ALL_REDUCE,), once=True)]
        return any(joined) or any(undone) or any(divided)


def _all_reduce(gather: Any) -> bool:
    scatter = _inverse_of(gather, SCATTERS)
    if scatter is None or scatter.block != gather.block or not has_one_use(scatter.results[0]):
        return False
    value, kept = scatter.operands[0], (*AMONG, CHANNEL, "reduction")
    if value.type != gather.results[0].type:
        return False
    reduce = ir.Operation.create(
        scatter.name.replace("reduce_scatter", "all_reduce"),
        [value.type],
        [value],
        {name: scatter.attributes[name] for name in kept if name in scatter.attributes},
        regions=len(scatter.regions),
        loc=scatter.location,
        ip=ir.InsertionPoint(scatter),
    )
    for number, region in enumerate(scatter.regions):
        region.blocks[0].append_to(reduce.regions[number])
    replace_with(gather, reduce.results)
    scatter.erase()
    return True


def _undo(slice_: Any) -> bool:
    gather = _inverse_of(slice_, GATHERS)
    if gather is None or gather.operands[0].type != slice_.results[0].type:
        return False
    slices = [one for one in users(slice_.results[0]) if one.name == _SLICE]
    replace_with(slice_, gather.operands)
    if not list(gather.results[0].uses):
        gather.erase()
    for one in slices:
        _undo(one)
    return True


def _reduce_scatter(slice_: Any) -> bool:
    reduce = slice_.operands[0].owner.operation
    # A value from outside of a loop is reduced once, and would be reduced in each iteration.
    if among(reduce) != among(slice_) or not is_of_values(reduce) or reduce.block != slice_.block:
        return False
    dim = dim_of(slice_)
    assert dim is not None
    with ir.InsertionPoint(slice_), slice_.location:
        replace_with(slice_, [scattered(reduce, dim, slice_.results[0].type)])
    reduce.erase()
    return True


def _inverse_of(op: Any, names: tuple[str, ...]) -> Any | None:
    """Returns the op that defines the operand if it is one of `names` along the same devices and dimension, or None."""
    dim = dim_of(op) if is_of_values(op) else None
    maker = None if dim is None else defining_op(op.operands[0], *names)
    return maker if maker is not None and dim_of(maker) == dim and among(maker) == among(op) else None


_ALL_GATHER, _GRID_SHAPE = "shard.all_gather", "shard.grid_shape"
# Upstream's patterns merge two all-reduces that one of these combines.
_COMBINERS = op_names("arith", "addf addi minimumf minsi minui maximumf maxsi maxui")


@register
class SimplifyCollectives(ModulePass):
    """Runs upstream's `shard-simplify`, which visits and folds every op, only if one of its patterns may match.

    The patterns merge two all-reduces that an `arith` op combines, remove an all-gather of a slice, and fold the shape
    of a grid. `shard-join-collectives` has already applied the patterns on slices of all-reduces and all-gathers.
    """

    name = "shard-simplify-collectives"
    summary = "Runs upstream's `shard-simplify` if one of its patterns may match"
    needs = (_ALL_REDUCE, _ALL_GATHER, _GRID_SHAPE)

    def run(self, op: Any) -> bool:
        if not (
            operations_of_results(op, _COMBINERS, (_ALL_REDUCE,), 2, once=True)
            or operations_of_results(op, (_ALL_GATHER,), (_SLICE,))
            or operations_named(op, _GRID_SHAPE)
        ):
            return False
        host_passes.run(f"{op.name}(shard-simplify)", op.operation, verify_each=False)
        return True


_linalg = dialect("linalg")
_tensor = dialect("tensor")
_MOVING = ("shard.all_gather", "shard.all_slice", "shard.all_to_all", "stablehlo.all_gather", "stablehlo.all_to_all")
_CONSTANTS = ("arith.constant", "stablehlo.constant")
_UNIFORM = ("tensor.empty", "linalg.fill", *_CONSTANTS)


@register
class FoldUniformCollectives(ModulePass):
    """Replaces a collective that only moves elements by a new tensor if its operand is a `tensor.empty` or a splat of
    a constant. Erases operands that become unused."""

    name = "shard-fold-uniform-collectives"
    summary = "Folds collectives of constant splat tensors"
    needs = _MOVING

    def run(self, op: Any) -> bool:
        changed = [_fold(collective) for collective in operations_of_results(op, _MOVING, _UNIFORM)]
        return any(changed)


def _fold(collective: Any) -> bool:
    if len(collective.results) > 1 or not collective.results[0].type.has_static_shape:
        return False
    with ir.InsertionPoint(collective), collective.location:
        made = uniform(collective.operands[0], collective.results[0].type)
    if made is None:
        return False
    maker = collective.operands[0].owner.operation
    following = [one for one in users(collective.results[0]) if one.name in _MOVING]
    replace_with(collective, [made])
    if not list(maker.results[0].uses):
        maker.erase()
    for one in following:
        _fold(one)
    return True


def uniform(value: Any, type_: Any) -> Any | None:
    """Builds an empty or splat value in another type; returns None if the value is not known to be one."""
    if defining_op(value, "tensor.empty") is not None:
        return _tensor.EmptyOp(type_.shape, type_.element_type).result
    fill = defining_op(value, "linalg.fill")
    if fill is not None:
        scalar = fill.operands[0]
        is_constant = defining_op(scalar, "arith.constant") is not None
        return _linalg.fill(scalar, outs=[_tensor.EmptyOp(type_.shape, type_.element_type)]) if is_constant else None
    constant = defining_op(value, *_CONSTANTS)
    elements = None if constant is None else constant.attributes["value"]
    if constant is None or not isinstance(elements, ir.DenseElementsAttr) or not elements.is_splat:
        return None
    same = ir.DenseElementsAttr.get_splat(type_, elements.get_splat_value())
    return ir.Operation.create(constant.name, [type_], attributes={"value": same}).result


@register
class FoldEmptyTensors(ModulePass):
    """Replaces StableHLO operations, and sdy operations that move data, by constants if their results have no elements.

    Empty operands of a concatenation are removed. A reduction of an empty tensor is replaced by its initial values, a
    padded empty tensor by its padding, and an update with an empty tensor by its operand.
    This avoids collectives and slices of empty tensors, some of which StableHLO and the lowering to LLVM reject.
    """

    name = "shard-fold-empty-tensors"
    summary = "Replaces computations and collectives of empty tensors by empty constants"

    def run(self, op: Any) -> bool:
        return held(op).has_empty_tensors and empty_tensors.fold(op)


@register_pipeline("shard-optimize-communication", "Reduces the communication of a local program")
def shard_optimize_communication(
    collectives: Literal["shard", "stablehlo"] = option("shard", "the dialect of the collectives"),
    overlap: bool = overlap(),
) -> str:
    """Runs passes that depend only on the program, so the order of collectives is the same on every device."""
    common = "shard-drop-collectives,shard-fold-uniform-collectives,shard-hoist-collectives"
    sinking = "shard-join-collectives,shard-sink-gathers,shard-sink-reductions,shard-sink-accumulations"
    if collectives == "stablehlo":
        return f"{common},{sinking},shard-merge-collectives,shard-drop-collectives,canonicalize,cse"
    simplify = "shard-join-collectives,shard-simplify-collectives,shard-fold-uniform-collectives"
    merged = "shard-split-all-reduces,shard-merge-collectives"
    rings = ["shard-collective-matmul"] if overlap else []
    return ",".join((common, sinking, merged, simplify, *rings, "canonicalize", "cse"))
