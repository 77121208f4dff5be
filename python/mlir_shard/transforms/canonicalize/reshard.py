# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simplifications of reshards: chains, reshards to the same sharding, and reshards across reshapes.

Across a reshape, shardings correspond if their shards have the same elements in row-major order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import to_attribute
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.op_kinds import OpKinds
from mlir_shard.ir.patterns import Pattern, apply_directly
from mlir_shard.ir.values import create_like, defining_op, has_one_use, users
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.dead_code import erase_unused_of_sdy
from mlir_shard.transforms.device_sets import is_crossing


@dataclass(frozen=True, slots=True)
class Cut:
    """A distribution in row-major order: the `size` devices along `axis` hold `stride` elements each, in turn."""

    axis: AxisRef
    size: int
    stride: int

    @property
    def end(self) -> int:
        """The number of elements after which the sequence of devices repeats."""
        return self.stride * self.size


Layout = tuple[Cut, ...]


def layout_of(sharding: TensorSharding, shape: Sequence[int | None], mesh: Mesh) -> Layout | None:
    """Returns the layout of a sharded tensor; None if a dimension is dynamic or its shards are uneven."""
    cuts: list[Cut] = []
    behind = 1
    for size, dim in zip(reversed(shape), reversed(sharding.dim_shardings), strict=True):
        if size is None or size % dim.sharded_size(mesh):
            return None
        stride = behind * (size // dim.sharded_size(mesh))
        for axis in reversed(dim.axes):
            cuts.append(Cut(axis, axis.size(mesh), stride))
            stride *= axis.size(mesh)
        behind *= size
    return _normalize(cuts, mesh)


def before_transpose(
    layout: Layout, source_shape: Sequence[int | None], permutation: Sequence[int], mesh: Mesh
) -> Layout | None:
    """Returns the layout of the operand of a transpose whose result has `layout`.

    Dimension i of the result is dimension permutation[i] of the operand. Returns None if a dimension is dynamic or a
    cut does not consist of undivided digits of dimensions.
    """
    sizes = [size for size in source_shape if size is not None]
    if len(sizes) != len(source_shape):
        return None
    source_strides = _strides(sizes)
    result_sizes = [sizes[dim] for dim in permutation]
    cuts: list[Cut] = []
    for cut in layout:
        parts = _split(cut, result_sizes)
        if parts is None:
            return None
        cuts += [Cut(part.axis, part.size, offset * source_strides[permutation[dim]]) for part, dim, offset in parts]
    return _normalize(cuts, mesh)


def _strides(shape: Sequence[int]) -> list[int]:
    return list(accumulate(reversed(shape[1:]), mul, initial=1))[::-1] if shape else []


def _split(cut: Cut, shape: Sequence[int]) -> list[tuple[Cut, int, int]] | None:
    """Splits a cut into sub-axes of its axis, one per dimension that it spans, with the dimension and the stride in it.

    Returns None if it does not consist of undivided digits.
    """
    parts = []
    for dim, (size, stride) in enumerate(zip(shape, _strides(shape), strict=True)):
        begin, end = max(cut.stride, stride), min(cut.end, stride * size)
        if begin >= end:
            continue
        if begin % stride or begin % cut.stride or end % begin or cut.end % end or (stride * size) % end:
            return None
        pre_size = cut.axis.pre_size * (cut.end // end)
        whole = end // begin == cut.size
        axis = cut.axis if whole else AxisRef.sub(cut.axis.name, pre_size, end // begin)
        parts.append((Cut(axis, end // begin, begin), dim, begin // stride))
    return parts


def _normalize(cuts: Iterable[Cut], mesh: Mesh) -> Layout:
    """Returns cuts from the largest stride to the smallest, with sub-axes merged and axes of one device removed."""
    merged: list[Cut] = []
    for cut in sorted((cut for cut in cuts if cut.size > 1), key=lambda cut: -cut.stride):
        major = merged[-1] if merged else None
        if major is not None and major.axis.can_merge(cut.axis) and major.stride == cut.end:
            merged[-1] = Cut(major.axis.merge(cut.axis, mesh), major.size * cut.size, cut.stride)
        else:
            merged.append(cut)
    return tuple(merged)


LABEL = "sdy-reshard"
OF_RESHARD = "reshard-of-reshard"
REPEATED = "reshard-repeated"
EXACT = (OF_RESHARD, REPEATED)
"""The patterns of Shardy after which all sharding attributes are still correct."""
BACK = "reshard-back-of-transpose"
"""The pattern that changes the sharding of a transpose."""
RESHAPE = "stablehlo.reshape"
TRANSPOSE = "stablehlo.transpose"


def _sharding(reshard: Any) -> TensorSharding:
    sharding: TensorSharding = reshard.attributes["sharding"].value
    return sharding


def reshard_of_reshard(op: Any, rewriter: Any) -> bool:
    """Skips a reshard whose only use is another one, unless only one of the two is to a single device."""
    inner = defining_op(op.operands[0], "sdy.reshard")
    if inner is None or not has_one_use(inner.results[0]) or _is_on_one_device(op) != _is_on_one_device(inner):
        return False
    if is_crossing(op) or is_crossing(inner):
        return False
    attributes = {name: op.attributes[name] for name in op.attributes}
    rewriter.replace_op(op, create_like(op, inner.operands[0], attributes))
    return True


def _is_on_one_device(reshard: Any) -> bool:
    mesh = sdy.mesh_of(_sharding(reshard), reshard)
    return mesh is not None and mesh.is_maximal


def repeated_reshard(op: Any, rewriter: Any) -> bool:
    """Replaces a reshard by the result of an earlier equal reshard of the same value."""
    for user in users(op.operands[0]):
        if user.name == "sdy.reshard" and _is_before(user, op) and _sharding(user) == _sharding(op):
            rewriter.replace_op(op, [user.results[0]])
            return True
    return False


def repeated_reshard_of_moved(op: Any, rewriter: Any) -> bool:
    """Replaces a reshard behind reshapes and transposes by these ops on the result of an earlier equivalent reshard.

    As in Shardy, the new reshapes and transposes keep the shardings that they had before the reshard, or have none:
    the pattern is for users that do not depend on them.
    """
    path = _path_to_root(op.operands[0])
    root = path[-1].operands[0] if path else op.operands[0]
    earlier = next((one for one in _reshards_of_reshapes(root) if _has_same_moves(op, path, one)), None)
    if earlier is None:
        return False
    value = earlier.results[0]
    if value.type != root.type:
        value = ir.Operation.create(
            RESHAPE, results=[root.type], operands=[value], loc=op.location, ip=ir.InsertionPoint(op)
        ).results[0]
    for step in reversed(path):
        clone = step.clone(ip=ir.InsertionPoint(op))
        clone.operands[0] = value
        value = clone.results[0]
    rewriter.replace_op(op, [value])
    return True


def _path_to_root(value: Any) -> list[Any]:
    """Returns the reshapes and transposes that `value` results from, the last one first."""
    path = []
    while (step := defining_op(value, RESHAPE) or defining_op(value, TRANSPOSE)) is not None:
        path.append(step)
        value = step.operands[0]
    return path


def _reshards_of_reshapes(root: Any) -> Iterator[Any]:
    """Yields the reshards of a value and of its reshapes."""
    values = [root]
    while values:
        for user in users(values.pop()):
            if user.name == "sdy.reshard":
                yield user
            elif user.name == RESHAPE:
                values.append(user.results[0])


def _is_before(earlier: Any, op: Any) -> bool:
    return earlier != op and earlier.block == op.block and bool(earlier.is_before_in_block(op))


def _has_same_moves(op: Any, path: list[Any], earlier: Any) -> bool:
    if op.operands[0] == earlier.operands[0] or not _is_before(earlier, op):
        return False
    mine, its = _sharding(op), _sharding(earlier)
    if not (_can_change_shape(mine) and _can_change_shape(its)) or _all_but_dims(mine) != _all_but_dims(its):
        return False
    mesh = sdy.mesh_of(mine, op)
    if mesh is None:
        return False
    layout = _layout_at_root(op, path, mesh)
    return layout is not None and layout == _layout(its, earlier.results[0].type, mesh)


def _can_change_shape(sharding: TensorSharding) -> bool:
    # Open dimensions and priorities have no counterpart if dimensions change.
    return all(dim.is_closed and dim.priority is None for dim in sharding.dim_shardings)


def _all_but_dims(sharding: TensorSharding) -> tuple[Any, ...]:
    return (sharding.mesh_or_ref, sharding.replicated_axes, sharding.unreduced_axes, sharding.reduction_op)


def _layout_at_root(op: Any, path: list[Any], mesh: Mesh) -> Layout | None:
    """Returns the layout at the root of `path` that corresponds to the sharding of the reshard `op` at its end."""
    layout = _layout(_sharding(op), op.results[0].type, mesh)
    for step in path:
        if layout is None:
            return None
        if step.name == TRANSPOSE:
            shape = _row_major_shape(step.operands[0].type)
            permutation = elements(step.attributes["permutation"])
            layout = None if shape is None else before_transpose(layout, shape, permutation, mesh)
    return layout


def _layout(sharding: TensorSharding, type_: Any, mesh: Mesh) -> Layout | None:
    shape = _row_major_shape(type_)
    return None if shape is None else layout_of(sharding, shape, mesh)


def _row_major_shape(type_: Any) -> tuple[int | None, ...] | None:
    """Returns the shape of a tensor; None if its encoding may mean another order of its elements."""
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is not None:
        return None
    return tuple(None if type_.is_dynamic_dim(dim) else type_.get_dim_size(dim) for dim in range(type_.rank))


_PERMUTATIONS = {"linalg.transpose": "permutation", "stablehlo.transpose": "permutation", "tosa.transpose": "perms"}


def reshard_back_of_transpose(op: Any, rewriter: Any) -> bool:
    """Replaces a reshard of a transpose that undoes the reshard of its operand by a transpose of the original value."""
    step = defining_op(op.operands[0], *_PERMUTATIONS)
    if step is None:
        return False
    inner = defining_op(step.operands[0], "sdy.reshard")
    if inner is None or is_crossing(op) or is_crossing(inner):
        return False
    value, mine = inner.operands[0], _sharding(op)
    source = sharding_of(value)
    if source is not None:
        permutation = elements(step.attributes[_PERMUTATIONS[step.name]])
        source = replace(source, dim_shardings=tuple(source.dim_shardings[dim] for dim in permutation))
    if not mine.is_equivalent(source):
        return False
    per_value = to_attribute(TensorShardingPerValue((mine,)), op.context)
    operands = [value]
    if len(step.operands) > 1:
        empty = defining_op(step.operands[1], "tensor.empty")
        if empty is None:
            return False
        operands.append(_with_sharding(empty, [], per_value, op).results[0])
    rewriter.replace_op(op, _with_sharding(step, operands, per_value, op))
    return True


def _with_sharding(of: Any, operands: Sequence[Any], per_value: Any, before: Any) -> Any:
    made = of.clone(ip=ir.InsertionPoint(before)).operation
    for number, operand in enumerate(operands):
        made.operands[number] = operand
    made.attributes[sdy.SHARDING] = per_value
    return made


PATTERNS = (
    Pattern(OF_RESHARD, LABEL, "sdy.reshard", reshard_of_reshard, ("sdy.reshard",)),
    Pattern(REPEATED, LABEL, "sdy.reshard", repeated_reshard),
    Pattern("reshard-repeated-of-moved", LABEL, "sdy.reshard", repeated_reshard_of_moved),
    Pattern(BACK, "shard-reshard", "sdy.reshard", reshard_back_of_transpose, tuple(_PERMUTATIONS)),
)


def simplify_directly(op: Any, patterns: Sequence[Pattern]) -> bool:
    """Applies `patterns`, a subset of `EXACT` and `BACK`, as the host's driver would, in less time if there are many
    reshards; returns whether any was applied. A repeated reshard is also replaced by one in an enclosing block."""
    of_results = [one for one in patterns if one.name != REPEATED]
    is_changed = False
    while True:
        is_dropped = len(of_results) < len(patterns) and _drop_repeated(op)
        is_changed |= is_dropped
        if not apply_directly(op, of_results):
            return is_changed
        is_changed = True
        # Skipped reshards are erased, so that later ones are not replaced by them.
        erase_unused_of_sdy(op)


def _drop_repeated(op: Any) -> bool:
    reshards = OpKinds(op, "sdy.reshard")
    return reshards.drop_repeated(range(len(reshards.representatives)))
