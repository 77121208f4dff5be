# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over groups of devices by a region of two scalars: by MPI where it has them, else one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.runtime.listed_groups import ListedGroups
from mlir_shard.runtime.stablehlo_collectives.group_collectives import GroupCollectives

_SUM = "sum"
# As `shard` names them.
_REDUCTIONS = {
    "stablehlo.add": _SUM,
    "stablehlo.and": "bitwise_and",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.multiply": "product",
    "stablehlo.or": "bitwise_or",
    "stablehlo.xor": "bitwise_xor",
}


class Reduction:
    """What the region of an operation, or a sum without one, makes of two elements."""

    def __init__(self, op: Any) -> None:
        self._block = op.regions[0].blocks[0] if len(op.regions) else None
        self._kind = _SUM if self._block is None else _kind(self._block)

    def element_type(self, value: Any) -> Any:
        """The type in which it reduces elements of a tensor."""
        return value.type.element_type if self._block is None else self._block.arguments[0].type.element_type

    def over_groups(self, value: Any, groups: ListedGroups, collectives: GroupCollectives) -> Any:
        """The reduction of the tensors of a group, on each of its devices."""

        def by_mpi(part: Any, reduction: str) -> Any | None:
            return collectives.all_reduce(part, groups, reduction)

        found = self._by_mpi(value, by_mpi)
        if found is not None:
            return found
        stacked = collectives.all_gather(stablehlo.reshape(value, [1, *value.type.shape]), groups, 0)
        return self._folded(stacked, groups, collectives)

    def scattered(self, value: Any, groups: ListedGroups, dim: int, collectives: GroupCollectives) -> Any:
        """The block along `dim` with this device's place in the group of that reduction."""

        def by_mpi(part: Any, reduction: str) -> Any | None:
            return collectives.reduce_scatter(part, groups, dim, reduction)

        found = self._by_mpi(value, by_mpi)
        if found is not None:
            return found
        parts = collectives.all_to_all(stablehlo.reshape(value, [1, *value.type.shape]), groups, dim + 1, 0)
        return self._folded(parts, groups, collectives)

    def _by_mpi(self, value: Any, reduce: Callable[[Any, str], Any | None]) -> Any | None:
        if self._kind is None:
            return None
        if self._kind != _SUM or not isinstance(value.type.element_type, ir.ComplexType):
            return reduce(value, self._kind)
        # Sums of complex numbers are those of their parts.
        part = ir.RankedTensorType.get(value.type.shape, value.type.element_type.element_type)
        real, imaginary = (reduce(stablehlo.build(name, part, value), _SUM) for name in ("real", "imag"))
        if real is None or imaginary is None:
            return None
        type_ = ir.RankedTensorType.get(real.type.shape, value.type.element_type)
        return stablehlo.build("complex", type_, real, imaginary)

    def _folded(self, stacked: Any, groups: ListedGroups, collectives: GroupCollectives) -> Any:
        """What the region makes of the tensors that are stacked, from the first to the last of this device's group."""
        shape = list(stacked.type.shape)[1:]
        own_size = None if groups.is_even else collectives.of_device(groups.sizes())

        def tensor(place: int) -> Any:
            starts, limits = [place, *(0 for _ in shape)], [place + 1, *shape]
            return stablehlo.reshape(stablehlo.slice_(stacked, starts, limits), shape)

        result = tensor(0)
        for place in range(1, groups.size):
            combined = self.combined(result, tensor(place))
            if own_size is not None:
                is_there = stablehlo.compare("GT", own_size, stablehlo.splat(own_size.type, place))
                combined = stablehlo.select(is_there, combined, result)
            result = combined
        return result

    def combined(self, left: Any, right: Any) -> Any:
        """What the region makes of each two elements of two tensors, or their sum."""
        if self._block is None:
            return stablehlo.build("add", left.type, left, right)
        dims = stablehlo.sizes(range(left.type.rank))
        made = ir.Operation.create("stablehlo.map", [left.type], [left, right], {"dimensions": dims}, regions=1)
        types = [argument.type for argument in self._block.arguments]
        block = made.regions[0].blocks.append(*types, arg_locs=[made.location] * 2)
        values = dict(zip(self._block.arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for one in self._block.operations:
                copied = one.operation.clone()
                for index, operand in enumerate(copied.operands):
                    if operand in values:
                        copied.operands[index] = values[operand]
                values.update(zip(one.operation.results, copied.results, strict=True))
        return made.results[0]


def _kind(block: Any) -> str | None:
    """The reduction that a region is, None where MPI may have none."""
    first, *rest = block.operations
    if len(rest) != 1 or list(first.operation.operands) not in (
        list(block.arguments),
        list(reversed(block.arguments)),
    ):
        return None
    is_returned = list(rest[0].operation.operands) == list(first.operation.results)
    return _REDUCTIONS.get(first.operation.name) if is_returned else None
