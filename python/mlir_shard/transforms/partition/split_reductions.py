# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that reduce and scan each shard first, and then the results of the shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import operations_named, operations_where
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.resharding.sharding_steps import Reshard
from mlir_shard.rules.reduction import combination_of, may_combine, may_repeat_initial_values, reduction_op
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.rules.windows import REDUCE_WINDOW, is_padding_neutral, set_padding, windows_along_dims
from mlir_shard.sharding import DimensionSharding, Mesh, OpShardingRule, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.insertion import apply
from mlir_shard.transforms.shardings import meshes_around, rule_cache

_RESHARD = "sdy.reshard"


@register
class ReduceInBlocks(Pass):
    """Undoes reshards of an operand that do nothing but gather what the op reduces, where the op is a reduction whose
    partial results can be put together though not as partial values of sdy: a product, a bitwise operation, several
    results each with another operation, or a region of StableHLO.

    What `spmdize` makes of such ops in blocks is complete at once.
    """

    name = "shard-reduce-in-blocks"
    anchor = "func.func"
    summary = "Lets products, bitwise and other reductions work on blocks"

    def run(self, op: Any) -> bool:
        rules = rule_cache()
        changed = False
        for inner in operations_where(op, may_combine):
            if not any(defining_op(value, _RESHARD) for value in inner.operands):
                continue
            if not len(inner.results) or combination_of(inner) is None or reduction_op(inner) is not None:
                continue
            rule = rules.rule_for(inner)
            if rule is not None and rule.reduction_factors:
                changed |= _take_blocks(inner, rule)
        return changed


def _take_blocks(op: Any, rule: OpShardingRule) -> bool:
    changed = False
    for number, value in enumerate(op.operands):
        reshard = defining_op(value, _RESHARD)
        if reshard is None or not _gathers_reduced(reshard, rule, number):
            continue
        op.operands[number] = reshard.operands[0]
        if not list(reshard.results[0].uses):
            reshard.erase()
        changed = True
    return changed


def _gathers_reduced(reshard: Any, rule: OpShardingRule, number: int) -> bool:
    """Whether a reshard takes axes from dimensions of reduction factors, and leaves all others as they are."""
    before, after = sharding_of(reshard.operands[0]), sdy.get_sharding(reshard.results[0])
    if before is None or after is None or before.mesh_or_ref != after.mesh_or_ref or before.unreduced_axes:
        return False
    reduced = set(rule.reduction_factors)
    pairs = zip(before.dim_shardings, after.dim_shardings, rule.operand_mappings[number].dim_mappings, strict=True)
    return all(
        old.axes == new.axes or (not new.axes and set(of_dim.factor_indices) <= reduced) for old, new, of_dim in pairs
    )


@register
class ScanInBlocks(Pass):
    """Cuts the sharded dimension of a windowed reduction whose windows are all elements up to one, or from one on, in
    its blocks.

    Each block is reduced cumulatively, and what blocks before it come to altogether, of which every device computes all
    from their totals, is combined with each of its elements. Both steps of that idea are those of a parallel prefix sum
    (G. E. Blelloch, Prefix sums and their applications, 1990). Blocks that are not full get initial values behind.
    """

    name = "shard-scan-in-blocks"
    anchor = "func.func"
    summary = "Computes cumulative reductions along sharded dimensions from totals of blocks"

    def run(self, op: Any) -> bool:
        meshes = meshes_around(op)
        changed = False
        for inner in operations_named(op, REDUCE_WINDOW):
            dim = cumulative_dim(inner)
            sharding = None if dim is None else _agreed_sharding(inner)
            mesh = None if sharding is None else mesh_of(sharding, meshes)
            if dim is None or sharding is None or mesh is None or mesh.is_maximal:
                continue
            blocks = sharding.dim_shardings[dim].sharded_size(mesh)
            size = -(-inner.operands[0].type.shape[dim] // blocks)
            if blocks == 1 or size == 1:
                continue
            with ir.InsertionPoint(inner), inner.location:
                value = _Scan(inner, dim, blocks, size, sharding).build()
            inner.results[0].replace_all_uses_with(value)
            inner.erase()
            changed = True
        return changed


def cumulative_dim(op: Any) -> int | None:
    """The dimension along which a windowed reduction is cumulative, its only one with windows; None of any other.

    Only where its body is one operation, and its initial value changes nothing.
    """
    if len(op.results) != 1 or not has_static_shapes(op):
        return None
    windows = windows_along_dims(op)
    if len(windows) != 1:
        return None
    (one,) = windows
    size = op.operands[0].type.shape[one.dim]
    is_cumulative = (one.stride, one.dilation, one.extent) == (1, 1, size)
    if not is_cumulative or sorted((one.low, one.high)) != [0, size - 1]:
        return None
    block = op.regions[0].blocks[0]
    combiner, *rest = (inner.operation for inner in block.operations)
    is_plain = [inner.name for inner in rest] == ["stablehlo.return"] and set(combiner.operands) == set(block.arguments)
    return one.dim if is_plain and is_padding_neutral(op) else None


def _agreed_sharding(op: Any) -> TensorSharding | None:
    sharding = sharding_of(op.operands[0])
    if sharding is None or sharding.unreduced_axes or not sharding.is_equivalent(sharding_of(op.results[0])):
        return None
    return sharding


@dataclass(frozen=True, slots=True)
class _Scan:
    """A cumulative reduction along `dim`, which is in `blocks` blocks of `size` elements, as `sharding` says."""

    op: Any
    dim: int
    blocks: int
    size: int
    sharding: TensorSharding

    def build(self) -> Any:
        """Its result."""
        (value, initial), dim = self.op.operands, self.dim
        shape, whole = list(value.type.shape), self.blocks * self.size
        cut = [*shape[:dim], self.blocks, self.size, *shape[dim + 1 :]]
        inside = self._with_dims(dim + 1, dim + 1, (DimensionSharding((), True),))
        if shape[dim] < whole:
            value = stablehlo.pad_behind(value, initial, [*shape[:dim], whole, *shape[dim + 1 :]], self.sharding)
        of_blocks = self._reshaped(value, cut, inside)
        of_blocks = self._windows(of_blocks, dim + 1, self.size, self.size, inside)
        before = self._before(of_blocks, inside)
        dims = [one for one in range(len(cut)) if one != dim + 1]
        type_ = of_blocks.type
        before = stablehlo.build(
            "broadcast_in_dim",
            type_,
            before,
            sharding=inside,
            broadcast_dimensions=ir.DenseI64ArrayAttr.get(dims),
        )
        combiner = self.op.regions[0].blocks[0].operations[0].operation.name
        pair = (before, of_blocks) if self._is_forward else (of_blocks, before)
        combined = ir.Operation.create(combiner, [type_], pair).results[0]
        sdy.set_sharding(combined, inside)
        return stablehlo.first(self._reshaped(combined, value.type.shape, self.sharding), shape, self.sharding)

    @property
    def _is_forward(self) -> bool:
        return windows_along_dims(self.op)[0].low > 0

    def _before(self, of_blocks: Any, inside: TensorSharding) -> Any:
        """For each block what all that come before it, in the direction of the windows, are reduced to."""
        dim = self.dim
        at = self.size - 1 if self._is_forward else 0
        totals = self._along(of_blocks, dim + 1, at, at + 1, inside)
        shape = [*totals.type.shape[: dim + 1], *totals.type.shape[dim + 2 :]]
        totals = self._reshaped(totals, shape, self.sharding)
        gathered = self._with_dims(dim, dim + 1, (DimensionSharding((), True),))
        totals = apply(totals, [Reshard(gathered)])
        first = 0 if self._is_forward else 1
        others = self._along(totals, dim, first, first + self.blocks - 1, gathered)
        reduced = self._windows(others, dim, self.blocks - 1, self.blocks, gathered)
        return apply(reduced, [Reshard(self.sharding)])

    def _windows(self, value: Any, dim: int, size: int, results: int, sharding: TensorSharding) -> Any:
        """The op on another value, with windows of as many elements along a dimension as are there."""
        copied = self.op.clone().operation
        copied.operands[0] = value
        rank = value.type.rank
        for name in list(copied.attributes):
            if name in _PER_DIMENSION or name.startswith("sdy."):
                del copied.attributes[name]
        sizes = [size if one == dim else 1 for one in range(rank)]
        copied.attributes["window_dimensions"] = ir.DenseI64ArrayAttr.get(sizes)
        copied.results[0].set_type(stablehlo.with_size(value.type, dim, results))
        padding = results - 1
        set_padding(copied, {dim: (padding, 0) if self._is_forward else (0, padding)})
        copied.attributes[sdy.SHARDING] = sdy.attribute(TensorShardingPerValue((sharding,)))
        return copied.results[0]

    def _with_dims(self, begin: int, end: int, dims: Sequence[DimensionSharding]) -> TensorSharding:
        """The sharding with others in place of those of some dimensions."""
        kept = self.sharding.dim_shardings
        return replace(self.sharding, dim_shardings=(*kept[:begin], *dims, *kept[end:]))

    @staticmethod
    def _reshaped(value: Any, shape: Sequence[int], sharding: TensorSharding) -> Any:
        return stablehlo.build("reshape", stablehlo.with_shape(value.type, shape), value, sharding=sharding)

    @staticmethod
    def _along(value: Any, dim: int, start: int, limit: int, sharding: TensorSharding) -> Any:
        starts, limits = [0] * value.type.rank, list(value.type.shape)
        starts[dim], limits[dim] = start, limit
        return stablehlo.slice_(value, starts, limits, sharding=sharding)


_PER_DIMENSION = frozenset(("base_dilations", "padding", "window_dilations", "window_strides"))
_CLOSED = DimensionSharding((), True)


@register
class SplitReductions(Pass):
    """Cuts a sharded dimension that a StableHLO reduction reduces in its blocks, and reduces these first.

    For those that no collective does: of a region, such as that of an argmax, and with StableHLO's collectives of
    products and bitwise operations. What is left to be gathered is an element of each block. A reduction of StableHLO
    may be done in any tree with its initial values in it any number of times; here only where these are known to make
    no difference by that.
    """

    name = "shard-split-reductions"
    anchor = "func.func"
    summary = "Reduces blocks before what is left of them, where no collective does"

    collectives: Literal["shard", "stablehlo"] = option("shard", "the dialect of the collectives to come")

    def run(self, op: Any) -> bool:
        meshes = meshes_around(op)
        changed = False
        for inner in operations_named(op, "stablehlo.reduce"):
            if not self._is_for(inner):
                continue
            cut = _cut(inner, meshes)
            if cut is None or not may_repeat_initial_values(inner):
                continue
            with ir.InsertionPoint(inner), inner.location:
                results = cut.build()
            for old, new in zip(inner.results, results, strict=True):
                old.replace_all_uses_with(new)
            inner.erase()
            changed = True
        return changed

    def _is_for(self, op: Any) -> bool:
        if not len(op.results) or reduction_op(op) is not None or not has_static_shapes(op):
            return False
        combination = combination_of(op)
        return self.collectives == "stablehlo" or combination is None or not combination.combiners


def _cut(op: Any, meshes: Mapping[str, Mesh]) -> _Cut | None:
    """Where to cut, by the first operand that is sharded along something reduced."""
    values = list(op.operands)[: len(op.results)]
    reduced = [dim for dim in op.attributes["dimensions"] if values[0].type.shape[dim] != 1]
    # Elements keep their order where what is reduced otherwise is all in one block.
    for value in values if reduced else ():
        sharding = sharding_of(value)
        mesh = None if sharding is None else mesh_of(sharding, meshes)
        if sharding is None or mesh is None or mesh.is_maximal or sharding.unreduced_axes:
            continue
        counts = [of_dim.sharded_size(mesh) for of_dim in sharding.dim_shardings]
        dim = min(reduced)
        size = -(-value.type.shape[dim] // counts[dim])
        if counts[dim] > 1 and size > 1 and all(counts[other] == 1 for other in reduced if other != dim):
            return _Cut(op, dim, counts[dim], size, sharding)
    return None


@dataclass(frozen=True, slots=True)
class _Cut:
    """A reduction whose dimension `dim` is in `blocks` blocks of `size` elements, as `sharding` says."""

    op: Any
    dim: int
    blocks: int
    size: int
    sharding: TensorSharding

    def build(self) -> list[Any]:
        """The results of the op."""
        op, count = self.op, len(self.op.results)
        initial = list(op.operands)[count:]
        reduced = list(op.attributes["dimensions"])
        inside = self._with_dims(self.dim + 1, self.dim + 1, (_CLOSED,))
        values = [self._in_blocks(*one, inside) for one in zip(list(op.operands)[:count], initial, strict=True)]
        within = sorted(other + (other >= self.dim) for other in reduced)
        kept = [other for other in range(values[0].type.rank) if other not in within]
        of_blocks = replace(inside, dim_shardings=tuple(inside.dim_shardings[other] for other in kept))
        partial = self._reduction([*values, *initial], within, [of_blocks] * count)
        return self._reduction([*partial, *initial], [kept.index(self.dim)], None)

    def _in_blocks(self, value: Any, initial: Any, inside: TensorSharding) -> Any:
        shape, dim = list(value.type.shape), self.dim
        whole = self.blocks * self.size
        if shape[dim] < whole:
            value = stablehlo.pad_behind(value, initial, [*shape[:dim], whole, *shape[dim + 1 :]], self.sharding)
        cut = [*shape[:dim], self.blocks, self.size, *shape[dim + 1 :]]
        return stablehlo.build("reshape", stablehlo.with_shape(value.type, cut), value, sharding=inside)

    def _reduction(
        self, operands: Sequence[Any], dims: Sequence[int], shardings: Sequence[TensorSharding] | None
    ) -> list[Any]:
        """The op on other operands and along other dimensions; its results lie as they did where nothing is said."""
        copied = self.op.clone().operation
        for number, value in enumerate(operands):
            copied.operands[number] = value
        copied.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(dims)
        if sdy.SHARDING_RULE in copied.attributes:
            del copied.attributes[sdy.SHARDING_RULE]
        if shardings is not None:
            copied.attributes[sdy.SHARDING] = sdy.attribute(TensorShardingPerValue(tuple(shardings)))
        for result, value in zip(copied.results, operands, strict=False):
            shape = [size for dim, size in enumerate(value.type.shape) if dim not in dims]
            result.set_type(stablehlo.with_shape(result.type, shape))
        return list(copied.results)

    def _with_dims(self, begin: int, end: int, dims: Sequence[DimensionSharding]) -> TensorSharding:
        kept = self.sharding.dim_shardings
        return replace(self.sharding, dim_shardings=(*kept[:begin], *dims, *kept[end:]))
