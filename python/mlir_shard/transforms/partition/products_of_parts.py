# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices with equal parts of a sharded dimension: the parts of a weight instead of those of activations.

`jnp.split(x @ w, 2, -1)` takes parts of activations. The same parts of the weight `w` are smaller if there are more
rows of `x` than of `w`. The parts go through the ops that make a tensor, or through those that use it, as long as fewer
bytes are resharded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.values import defining_op, element_size, has_one_use, insertion_point_after, users
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes
from mlir_shard.transforms.partition.sharded_pieces import ShardedValue

_DOT, _REDUCE, _BROADCAST = "stablehlo.dot_general", "stablehlo.reduce", "stablehlo.broadcast_in_dim"
_NUMBERS = "dot_dimension_numbers"
_bindings = host.module("_mlir_libs._stablehlo")


@dataclass(frozen=True, slots=True)
class Parts:
    """`count` equal parts of a dimension; the dimension is sharded along `before`, and each part along `after`."""

    count: int
    before: Axes
    after: Axes
    mesh: Mesh

    def sharding(self, sharding: TensorSharding, dim: int) -> TensorSharding:
        """Returns the sharding of a tensor that has the parts of `dim` as a dimension."""
        axes = tuple(one.axes for one in sharding.dim_shardings)
        return TensorSharding.closed_with((*axes[:dim], (), self.after, *axes[dim + 1 :]), sharding.mesh_or_ref)

    def type(self, type_: Any, dim: int) -> Any:
        """Returns the type of a tensor that has the parts of `dim` as a dimension."""
        shape = list(type_.shape)
        shape[dim : dim + 1] = [self.count, shape[dim] // self.count]
        return stablehlo.with_shape(type_, shape)


@dataclass(frozen=True, slots=True)
class PartsPlan:
    """A plan to make the parts of a value: the bytes per device that it reshards, and a function that builds the parts.

    The direct plan reshapes the value.
    """

    num_bytes: int
    build: Callable[[], Any]
    is_direct: bool = False


@dataclass(frozen=True, slots=True)
class UserOfParts:
    """A plan to compute a user of a value from its parts: the bytes per device that it reshards, and a function that
    replaces the user."""

    num_bytes: int
    replace: Callable[[Any], None]


def parts_of(value: Any, dim: int, parts: Parts, *, is_only: bool) -> PartsPlan | None:
    """Returns the plan for the parts of `dim` of a value that reshards least; None if it is not sharded as `parts` are.

    With `is_only`, nothing else uses the value, and the op that makes it may be computed on the parts of its operands.
    """
    sharding = sharding_of(value)
    if sharding is None or sharding.unreduced_axes or sharding.dim_shardings[dim].axes != parts.before:
        return None

    def reshape() -> Any:
        with insertion_point_after(value), value.location:
            return ShardedValue.of(value, sharding.mesh_or_ref).with_parts(dim, parts.count, parts.after).value

    direct = PartsPlan(local_bytes(value, parts.mesh), reshape, is_direct=True)
    before = _of_operands(value, dim, parts, sharding) if is_only else None
    return direct if before is None or before.num_bytes >= direct.num_bytes else before


def local_bytes(value: Any, mesh: Mesh) -> int:
    """Returns the bytes of the largest shard of a value of static shape."""
    sharding, shape = sharding_of(value), value.type.shape
    local = shape if sharding is None else sharding.local_shape(shape, mesh)
    return prod(size or 0 for size in local) * (element_size(value.type) or 1)


def _of_operands(value: Any, dim: int, parts: Parts, sharding: TensorSharding) -> PartsPlan | None:
    """Returns the plan that makes the parts of a value from those of the operands of its op."""
    op = defining_op(value)
    dims = None if op is None else _operand_dims(op, dim)
    if op is None or dims is None:
        return None
    plans: dict[int, PartsPlan] = {}
    for number, of_operand in dims.items():
        operand = op.operands[number]
        plan = parts_of(operand, of_operand, parts, is_only=has_one_use(operand))
        if plan is None:
            return None
        plans[number] = plan

    def build() -> Any:
        made = {number: (plan.build(), dims[number]) for number, plan in plans.items()}
        with insertion_point_after(value), op.location:
            return _on_parts(op, made, dim, parts, parts.sharding(sharding, dim))

    return PartsPlan(sum(plan.num_bytes for plan in plans.values()), build)


def _operand_dims(op: Any, dim: int) -> dict[int, int] | None:
    """Returns the dimension of each operand from which `dim` of the result comes; None if no parts are known of one."""
    if op.name == _DOT:
        return _Product(op).operand_dims(dim)
    if op.name == _BROADCAST:
        dims = elements(op.attributes["broadcast_dimensions"])
        if dim not in dims:
            return {}
        number = dims.index(dim)
        return {0: number} if op.operands[0].type.shape[number] == op.results[0].type.shape[dim] else None
    is_of_stablehlo = op.name.startswith("stablehlo.") and is_elementwise(op.name)
    if not is_of_stablehlo or len(op.regions) or len(op.results) != 1:
        return None
    if any(list(one.type.shape) != list(op.results[0].type.shape) for one in op.operands):
        return None
    return dict.fromkeys(range(len(op.operands)), dim)


def users_of_parts(value: Any, dim: int, parts: Parts) -> list[UserOfParts] | None:
    """Returns how to compute all users of a value from the parts of `dim`, if fewer bytes are resharded; else None."""
    found = [_user(op, value, dim, parts) for op in users(value)]
    known = [one for one in found if one is not None]
    is_less = sum(one.num_bytes for one in known) < local_bytes(value, parts.mesh)
    return known if known and len(known) == len(found) and is_less else None


def _user(op: Any, value: Any, dim: int, parts: Parts) -> UserOfParts | None:
    """Returns how to compute an op on parts; None if it is another op, or tensors are not sharded as `parts` are."""
    numbers = [number for number, operand in enumerate(op.operands) if operand == value]
    sharding = sharding_of(op.results[0]) if len(op.results) == 1 else None
    if len(numbers) != 1 or sharding is None or op.block != value.owner.operation.block:
        return None
    (number,), result = numbers, op.results[0]
    found = _dims_of_user(op, number, dim)
    if found is None:
        return None
    result_dim, other_dim = found
    other = None
    if other_dim is not None:
        operand = op.operands[1 - number]
        other = parts_of(operand, other_dim, parts, is_only=has_one_use(operand))
        if other is None:
            return None
    elif result_dim is not None and sharding.dim_shardings[result_dim].axes != parts.before:
        return None

    def replace(of_value: Any) -> None:
        made = {number: (of_value, dim)}
        if other is not None and other_dim is not None:
            made[1 - number] = other.build(), other_dim
        of_result = sharding if result_dim is None else parts.sharding(sharding, result_dim)
        with ir.InsertionPoint(op), op.location:
            new = _on_parts(op, made, result_dim, parts, of_result)
            if result_dim is not None:
                new = stablehlo.build("reshape", result.type, new, sharding=sharding)
        result.replace_all_uses_with(new)
        op.erase()

    resharded = 0 if result_dim is None else local_bytes(result, parts.mesh)
    return UserOfParts(resharded + (0 if other is None else other.num_bytes), replace)


def _dims_of_user(op: Any, number: int, dim: int) -> tuple[int | None, int | None] | None:
    """Returns the dimension of the result that is `dim` of operand `number`, and that of the other operand that is
    contracted with it; each None if none is. Returns None for an op that is not computed on parts."""
    if op.name == _DOT:
        product = _Product(op)
        found = product.result_dim(number, dim), product.contracted_with(number, dim)
        return None if found == (None, None) else found
    if op.name != _REDUCE or number:
        return None
    reduced = elements(op.attributes["dimensions"])
    return (None if dim in reduced else dim - sum(one < dim for one in reduced)), None


def _on_parts(
    op: Any, made: Mapping[int, tuple[Any, int]], result_dim: int | None, parts: Parts, sharding: TensorSharding
) -> Any:
    """Builds an op on operands that have the parts of a dimension, each given by its number with that dimension."""
    operands = [made[number][0] if number in made else operand for number, operand in enumerate(op.operands)]
    dims = {number: dim for number, (_, dim) in made.items()}
    type_ = op.results[0].type
    if result_dim is not None:
        type_ = parts.type(type_, result_dim)
    attributes = {name: op.attributes[name] for name in op.attributes if name != sdy.SHARDING}
    if op.name == _DOT:
        attributes[_NUMBERS] = _Product(op).numbers_with_parts(dims)
    elif op.name == _BROADCAST:
        old = elements(op.attributes["broadcast_dimensions"])
        attributes["broadcast_dimensions"] = stablehlo.sizes(_split(old, result_dim))
    elif op.name == _REDUCE:
        attributes["dimensions"] = stablehlo.sizes(_split(elements(op.attributes["dimensions"]), dims[0]))
    new = ir.Operation.create(op.name, [type_], operands, attributes, regions=len(op.regions))
    for old_region, new_region in zip(op.regions, new.regions, strict=True):
        old_region.blocks[0].append_to(new_region)
    sdy.set_sharding(new.results[0], sharding)
    return new.results[0]


def _split(dims: Iterable[int], dim: int | None) -> list[int]:
    """Returns dimensions after `dim` is split in two, which both replace it."""
    found: list[int] = []
    for one in dims:
        found += [one] if dim is None or one < dim else [one, one + 1] if one == dim else [one + 1]
    return found


class _Product:
    """A `stablehlo.dot_general`, with the dimensions of its operands by their role."""

    def __init__(self, op: Any) -> None:
        numbers = _bindings.DotDimensionNumbers(op.attributes[_NUMBERS])
        self._batch = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
        self._contracted = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
        self._free = [
            [dim for dim in range(operand.type.rank) if dim not in batch and dim not in contracted]
            for operand, batch, contracted in zip(op.operands, self._batch, self._contracted, strict=True)
        ]

    def operand_dims(self, dim: int) -> dict[int, int] | None:
        """Returns the operand from which a dimension of the result comes, with its dimension; None for a batch."""
        found = {
            (number, one) for number in (0, 1) for one in self._free[number] if self.result_dim(number, one) == dim
        }
        return dict(found) if found else None

    def result_dim(self, number: int, dim: int) -> int | None:
        """Returns the dimension of the result that is a free dimension of an operand; None for any other dimension."""
        if dim not in self._free[number]:
            return None
        before = len(self._batch[0]) + (len(self._free[0]) if number else 0)
        return before + self._free[number].index(dim)

    def contracted_with(self, number: int, dim: int) -> int | None:
        """Returns the dimension of the other operand that is contracted with one of an operand; None if none is."""
        of_operand, of_other = self._contracted[number], self._contracted[1 - number]
        return of_other[of_operand.index(dim)] if dim in of_operand else None

    def numbers_with_parts(self, dims: Mapping[int, int]) -> Any:
        """Returns the attribute after a dimension of operands, given by number, is split in two."""
        batch, contracted = (
            [_split(of[number], dims.get(number)) for number in (0, 1)] for of in (self._batch, self._contracted)
        )
        return _bindings.DotDimensionNumbers.get(
            lhs_batching_dimensions=batch[0],
            rhs_batching_dimensions=batch[1],
            lhs_contracting_dimensions=contracted[0],
            rhs_contracting_dimensions=contracted[1],
        )
