# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO's collectives on tensors of any type, as calls of functions without a body, at the insertion point.

Each call is a placeholder for a collective until tensors become memory. A reduction by a region of two scalars is done
by MPI if MPI has it; otherwise the values of the devices are reduced one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import clone_with, operations_named, replace_with
from mlir_shard.rules.reduction import Combiner, combiners_of_body
from mlir_shard.runtime.collectives import buffers, element_types, library
from mlir_shard.runtime.collectives.group_exchange import GroupExchange
from mlir_shard.runtime.collectives.groups import ListedGroups
from mlir_shard.runtime.collectives.point_to_point import error
from mlir_shard.runtime.launch import mpi_library

# Builds the result of a call from its operands, before the call.
Lowering = Callable[[Sequence[Any], GroupExchange], Any]


class StandIns:
    """The placeholder calls of one module."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._lowerings: dict[str, Lowering] = {}
        self._declarations: list[Any] = []

    def call(self, type_: Any, operands: Sequence[Any], lowering: Lowering) -> Any:
        """Returns a result of `type_` that `lowering` builds later; element types must be supported by MPI."""
        name = f"mlir_shard.collective_{len(self._lowerings)}"
        types = ", ".join(str(value.type) for value in operands)
        declaration = ir.Operation.parse(f"func.func private @{name}({types}) -> {type_}")
        self._module.body.append(declaration)
        self._declarations.append(declaration)
        self._lowerings[name] = lowering
        attributes = {"callee": ir.FlatSymbolRefAttr.get(name)}
        return ir.Operation.create("func.call", [type_], list(operands), attributes).results[0]

    def lower(self, exchange: GroupExchange) -> None:
        """Replaces the placeholder calls."""
        for call in operations_named(self._module, "func.call"):
            lowering = self._lowerings.get(call.attributes["callee"].value)
            if lowering is not None:
                with ir.InsertionPoint(call), call.location:
                    value = lowering(list(call.operands), exchange)
                replace_with(call, [value])
        for declaration in self._declarations:
            declaration.erase()


_tensor = host.dialect("tensor")


class GroupCollectives:
    """The collectives of one operation. They raise RunError at the operation if MPI does not support its elements."""

    def __init__(self, op: Any, stand_ins: StandIns) -> None:
        self._op = op
        self._stand_ins = stand_ins

    def device(self) -> Any:
        """Returns the number of this device, a scalar of i32."""
        type_ = stablehlo.tensor(ir.IntegerType.get_signless(32))

        def rank(_: Sequence[Any], __: GroupExchange) -> Any:
            return _tensor.FromElementsOp(type_, [library.rank()]).result

        return self._stand_ins.call(type_, [], rank)

    def of_device(self, numbers: Sequence[int]) -> Any:
        """Returns this device's entry of numbers for each device, a scalar of i32."""
        number = ir.IntegerType.get_signless(32)
        entry = stablehlo.dynamic_slice(stablehlo.numbers(numbers, number), [self.device()], [1])
        return stablehlo.reshape(entry, [])

    def all_gather(self, value: Any, groups: ListedGroups, dim: int) -> Any:
        """Returns the tensors of the group, joined along `dim`; missing parts of a smaller group are undefined."""
        shape = list(value.type.shape)
        shape[dim] *= groups.size
        return self._moved(
            value, shape, lambda values, exchange: buffers.join(exchange.all_gather(values[0], groups), dim)
        )

    def all_to_all(self, value: Any, groups: ListedGroups, split_dim: int, concat_dim: int) -> Any:
        """Returns this device's parts along `split_dim` from all devices of the group, joined along `concat_dim`."""
        shape = list(value.type.shape)
        shape[split_dim] //= groups.size
        shape[concat_dim] *= groups.size

        def exchanged(values: Sequence[Any], exchange: GroupExchange) -> Any:
            stacked = buffers.split(values[0], split_dim, groups.size)
            return buffers.join(exchange.all_to_all(stacked, groups), concat_dim)

        return self._moved(value, shape, exchanged)

    def permute(self, value: Any, pairs: Sequence[tuple[int, ...]], devices: int) -> Any:
        """Returns the tensor of the device that is paired with this one as its sender; zeros without a sender."""
        targets: list[int | None] = [None] * devices
        sources: list[int | None] = [None] * devices
        for sender, receiver in pairs:
            targets[sender], sources[receiver] = receiver, sender
        shape = list(value.type.shape)
        return self._moved(value, shape, lambda values, exchange: exchange.permute(values[0], targets, sources))

    def broadcast(self, value: Any, groups: ListedGroups) -> Any:
        """Returns the tensor of the first device of the group."""
        shape, root = list(value.type.shape), 0
        return self._moved(
            value, shape, lambda values, exchange: exchange.broadcast(values[0], groups, library.integer(root))
        )

    def all_reduce(self, value: Any, groups: ListedGroups, reduction: str) -> Any | None:
        """Returns the reduction over the group, named as in `shard`; None if MPI has none for the element type."""
        return self._reduced(
            value, list(value.type.shape), reduction, lambda one, kind, exchange: exchange.all_reduce(one, groups, kind)
        )

    def reduce_scatter(self, value: Any, groups: ListedGroups, dim: int, reduction: str) -> Any | None:
        """Returns this device's shard along `dim` of the reduction over the group, or None as `all_reduce` does."""
        shape = list(value.type.shape)
        shape[dim] //= groups.size

        def scattered(one: Any, kind: str, exchange: GroupExchange) -> Any:
            return exchange.reduce_scatter(buffers.split(one, dim, groups.size), groups, kind)

        return self._reduced(value, shape, reduction, scattered)

    def _reduced(
        self, value: Any, shape: Sequence[int], reduction: str, reduce: Callable[[Any, str, GroupExchange], Any]
    ) -> Any | None:
        carrier = element_types.for_reducing(value.type.element_type, reduction)
        if carrier is None:
            return None
        carried, kind = carrier.enter(value), carrier.reduction
        type_ = stablehlo.with_shape(carried.type, shape)
        return carrier.leave(self._call(type_, carried, lambda values, exchange: reduce(values[0], kind, exchange)))

    def _moved(self, value: Any, shape: Sequence[int], lowering: Lowering) -> Any:
        carrier = element_types.for_moving(value.type.element_type)
        if carrier is None:
            raise error(f"'{self._op.name}' of {value.type}: MPI cannot send this element type", self._op)
        carried = carrier.enter(value)
        return carrier.leave(self._call(stablehlo.with_shape(carried.type, shape), carried, lowering))

    def _call(self, type_: Any, carried: Any, lowering: Lowering) -> Any:
        for one in (carried.type, type_):
            if prod(one.shape) > mpi_library.MOST_ELEMENTS:
                most = f"MPI supports at most {mpi_library.MOST_ELEMENTS} elements"
                raise error(f"'{self._op.name}' of {one}: {most}", self._op)
        if 0 in type_.shape:
            return _tensor.empty(type_.shape, type_.element_type)
        return self._stand_ins.call(type_, [carried], lowering)


_SUM = "sum"


class Reduction:
    """The reduction of two elements by the region of an operation, or their sum without a region."""

    def __init__(self, op: Any) -> None:
        self._block = op.regions[0].blocks[0] if len(op.regions) else None
        combiner = Combiner.SUM if self._block is None else combiners_of_body(op, first_element=1)[0]
        self._kind = None if combiner is None else combiner.value

    def promoted(self, value: Any) -> Any:
        """Converts a tensor to the element type of the reduction."""
        element_type = value.type.element_type if self._block is None else self._block.arguments[0].type.element_type
        return value if value.type.element_type == element_type else stablehlo.convert(value, element_type)

    def over_groups(self, value: Any, groups: ListedGroups, collectives: GroupCollectives) -> Any:
        """Returns the reduction of the tensors of a group, on each of its devices."""
        found = self._by_mpi(value, lambda part, kind: collectives.all_reduce(part, groups, kind))
        if found is not None:
            return found
        stacked = collectives.all_gather(stablehlo.reshape(value, [1, *value.type.shape]), groups, 0)
        return self._folded(stacked, groups, collectives)

    def scattered(self, value: Any, groups: ListedGroups, dim: int, collectives: GroupCollectives) -> Any:
        """Returns this device's shard along `dim` of the reduction of the tensors of its group."""
        found = self._by_mpi(value, lambda part, kind: collectives.reduce_scatter(part, groups, dim, kind))
        if found is not None:
            return found
        parts = collectives.all_to_all(stablehlo.reshape(value, [1, *value.type.shape]), groups, dim + 1, 0)
        return self._folded(parts, groups, collectives)

    def _by_mpi(self, value: Any, reduce: Callable[[Any, str], Any | None]) -> Any | None:
        if self._kind is None:
            return None
        if self._kind != _SUM or not isinstance(value.type.element_type, ir.ComplexType):
            return reduce(value, self._kind)
        # Sums of complex numbers are sums of their parts.
        part = ir.RankedTensorType.get(value.type.shape, value.type.element_type.element_type)
        real, imaginary = (reduce(stablehlo.build(name, part, value), _SUM) for name in ("real", "imag"))
        if real is None or imaginary is None:
            return None
        type_ = ir.RankedTensorType.get(real.type.shape, value.type.element_type)
        return stablehlo.build("complex", type_, real, imaginary)

    def _folded(self, stacked: Any, groups: ListedGroups, collectives: GroupCollectives) -> Any:
        """Returns the reduction of the stacked tensors, from the first to the last of this device's group."""
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
        """Returns the elementwise reduction of two tensors by the region, or their sum."""
        if self._block is None:
            return stablehlo.build("add", left.type, left, right)
        dims = stablehlo.sizes(range(left.type.rank))
        made = ir.Operation.create("stablehlo.map", [left.type], [left, right], {"dimensions": dims}, regions=1)
        types = [argument.type for argument in self._block.arguments]
        block = made.regions[0].blocks.append(*types, arg_locs=[made.location] * 2)
        values = dict(zip(self._block.arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for one in self._block.operations:
                clone_with(one, values)
        return made.results[0]
