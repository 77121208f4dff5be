# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions that no collective finishes reduce blocks first, and then what the blocks have come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.resharding.op_mesh import mesh_of
from mlir_shard.rules.reduction import combination_of, may_repeat_initial_values, reduction_op
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.sharding import DimensionSharding, Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.shardings import meshes_around

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
