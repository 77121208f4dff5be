# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules, by which an op becomes the local op on the shards of its operands and results.

Also functions by which partition rules change a result after the op, and count an initial value once for all devices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.registered_function import ask, check_op_names, check_takes, registered_names
from mlir_shard.host import dialect, ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.values import defining_op, replace_uses, uses_of
from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.rules.reduction import combiners_of, neutral_number
from mlir_shard.rules.registry import is_ruled_from_outside
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.rule import FactorType, TensorMapping


class PartitionError(Exception):
    """The error of a partition rule that cannot make its op local; the message names the reason."""


@dataclass(frozen=True, slots=True)
class BlockedTensor:
    """A value around an op before it is local: its type, and per dimension the grid axes along which it is sharded.

    `counts` are the numbers of shards. `block_numbers` returns for a dimension the shard index of each device. A value
    that is not a tensor has no dimensions.
    """

    type: Any
    axes: tuple[tuple[int, ...], ...] = ()
    counts: tuple[int, ...] = ()
    block_numbers: Callable[[int], Sequence[int]] = lambda dim: ()

    @property
    def is_whole(self) -> bool:
        """Whether every device has the entire value."""
        return all(count == 1 for count in self.counts)

    @property
    def block_shape(self) -> tuple[int, ...]:
        """The shape of a shard."""
        return tuple(size // count for size, count in zip(self.type.shape, self.counts, strict=True))

    def has_same_blocks(self, dim: int, other: BlockedTensor, other_dim: int) -> bool:
        """Returns whether each device has the same shard index in a dimension of this tensor and in one of another."""
        if self.counts[dim] != other.counts[other_dim]:
            return False
        return self.counts[dim] == 1 or list(self.block_numbers(dim)) == list(other.block_numbers(other_dim))


def _no_mirror(value: Any, axes: Sequence[int]) -> Any:
    raise PartitionError("shards cannot be exchanged in this context")


def _no_entry(axes: Sequence[int], value: Callable[[int], int], type_: Any) -> Any:
    raise PartitionError("a table of devices is not available in this context")


@dataclass(frozen=True, slots=True)
class Blocks:
    """The shards that an op works on, as given to its partition rule.

    `result_types` are the local types. `factor_axes` holds the grid axes each factor of `rule` is sharded along, major
    to minor. `device_index` returns, for grid axes major to minor, the position of this device among those along them
    as an `index` value in front of the op. `operands` and `results` are the tensors that the op worked on before.
    `entry` returns, for grid axes and an integer for each position along them, the integer of this device, as a tensor
    of one element of the given type (None: i64) at the current insertion point. `windows` are those whose halos, the
    elements that they reach in other shards, have been added to operands. `mirror` returns, at the current insertion
    point, the value of the device opposite along grid axes: the first device gets that of the last.
    """

    result_types: tuple[Any, ...]
    rule: OpShardingRule | None = None
    factor_axes: tuple[tuple[int, ...], ...] = ()
    device_index: Callable[[Sequence[int]], Any] = lambda axes: None
    operands: tuple[BlockedTensor, ...] = ()
    results: tuple[BlockedTensor, ...] = ()
    entry: Callable[[Sequence[int], Callable[[int], int], Any], Any] = _no_entry
    windows: tuple[FactorWindow, ...] = ()
    mirror: Callable[[Any, Sequence[int]], Any] = _no_mirror

    def check_known(self) -> None:
        """Raises PartitionError if the caller has not given the shardings of the tensors around the op."""
        if not self.results:
            raise PartitionError("the shardings of its tensors are not known in this context")

    def operand_size(self, number: int, dim: int) -> int:
        """Returns the size of a dimension of an operand, without padding of its shards; the rule has to be known."""
        assert self.rule is not None
        mapping = self.rule.operand_mappings[number].dim_mappings[dim]
        return prod(self.rule.factor_sizes[factor] for factor in mapping.factor_indices)

    @property
    def reduction_axes(self) -> tuple[int, ...]:
        """The grid axes along which the results of the op are partial."""
        if self.rule is None:
            return ()
        return tuple(axis for factor in self.rule.reduction_factors for axis in self.factor_axes[factor])


def shards_along(value: Any, dim: int, op: Any) -> int:
    """Returns the number of shards of a dimension of a value that `op` uses or defines, by its sharding."""
    sharding = sharding_of(value)
    mesh = None if sharding is None else sdy.mesh_of(sharding, op)
    return 1 if sharding is None or mesh is None else sharding.dim_shardings[dim].sharded_size(mesh)


PartitionFunction = Callable[[Any, Blocks], "bool | None"]
UnshardableFactors = Callable[[Any, OpShardingRule], Collection[int]]


@dataclass(frozen=True, slots=True)
class PartitionRule:
    """A rule by which an op becomes local.

    `localize` changes the op in place and returns False if it leaves the results entire, to be sliced by the caller.
    `unshardable` returns factors along which this op cannot be partitioned, besides those that never can. With
    `makes_elements`, a factor only in results may be sharded, as every device can make its own part.

    A rule that `checks_blocks` is right for all shards for which it raises no PartitionError, whatever the factors: a
    caller without an alternative may try it. A rule that `allows_uneven` is right on full shards whose ends are not
    part of the tensor: the values it computes from those elements affect no others. A `pure` rule depends only on the
    op, its regions, the shards, and which operands are one value or constants, and keeps no state from one op to the
    next: its effect on one op is then replayed for isomorphic ops. Any other rule is called for each op.
    """

    localize: PartitionFunction
    unshardable: UnshardableFactors | None = None
    makes_elements: bool = False
    checks_blocks: bool = False
    allows_uneven: bool = False
    pure: bool = False

    @property
    def sets_types_alone(self) -> bool:
        """Whether an op becomes local by a change of its result types only."""
        return self.localize is set_result_types

    @property
    def is_own(self) -> bool:
        """Whether the rule is one of this package."""
        return self.localize.__module__.startswith("mlir_shard.rules.")

    def never_shardable(self, rule: OpShardingRule, *, is_reducible: bool) -> frozenset[int]:
        """Returns the factors along which no op with this sharding rule can be partitioned."""
        found = set(rule.need_replication_factors) | set(rule.permutation_factors)
        if not is_reducible:
            found |= set(rule.reduction_factors)
        in_results = _factors_in(rule.result_mappings)
        made = range(rule.num_factors) if self.makes_elements else _factors_in(rule.operand_mappings)
        connected = in_results.intersection(made)
        for factor in range(rule.num_factors):
            if factor not in connected and rule.factor_type(factor) is FactorType.PASS_THROUGH:
                found.add(factor)
        return frozenset(found)

    def unshardable_here(self, op: Any, rule: OpShardingRule) -> frozenset[int]:
        """Returns the other factors along which this op cannot be partitioned."""
        if self.unshardable is None:
            return frozenset()
        return frozenset(ask("function of unshardable factors", self.unshardable, op, rule))


def _factors_in(mappings: Sequence[TensorMapping]) -> set[int]:
    return {factor for mapping in mappings for dim in mapping.dim_mappings for factor in dim.factor_indices}


_by_name: dict[str, PartitionRule] = {}
_by_predicate: list[tuple[Callable[[Any], bool], PartitionRule]] = []


def partition_rule(
    *names: str,
    when: Callable[[Any], bool] | None = None,
    unshardable: UnshardableFactors | None = None,
    makes_elements: bool = False,
    checks_blocks: bool = False,
    allows_uneven: bool = False,
    pure: bool = False,
) -> Callable[[PartitionFunction], PartitionFunction]:
    """Registers a function as the partition rule of the named ops, and of those for which `when` holds.

    Names are as for `sharding_rule`, without those of dialects. They take precedence over predicates, and predicates
    are tried in the order of their registration. See `PartitionRule` for the rest. Raises RegistrationError if a name
    is not that of an op, or if a function cannot be called this way.
    """
    check_op_names(names, dialects=False)

    def register(function: PartitionFunction) -> PartitionFunction:
        check_takes("partition rule", function, "op", "blocks")
        rule = PartitionRule(function, unshardable, makes_elements, checks_blocks, allows_uneven, pure)
        for name in names:
            _by_name[name] = rule
        if when is not None:
            _by_predicate.append((when, rule))
        return function

    return register


def partition_rule_for(op: Any) -> PartitionRule | None:
    """Returns the partition rule of `op`, or None.

    An op without regions that has a user's sharding rule but no partition rule becomes the same op on local types.
    """
    op = op.operation
    found = next((_by_name[name] for name in registered_names(op) if name in _by_name), None)
    if found is None:
        found = next((rule for holds, rule in _by_predicate if holds(op)), None)
    if found is None and not len(op.regions) and is_ruled_from_outside(op):
        return SAME_ON_SHARDS
    return found


def set_result_types(op: Any, blocks: Blocks) -> None:
    """Makes an op local by setting its result types; for ops whose shapes are only in their types."""
    for result, type_ in zip(op.results, blocks.result_types, strict=True):
        result.set_type(type_)


SAME_ON_SHARDS = PartitionRule(set_result_types, pure=True)
"""The partition rule of an op whose shapes are only in its types."""


def is_zero(value: Any) -> bool:
    """Returns whether all elements of a tensor, or a scalar, are known to be zero: a constant, a splat or a fill."""
    return is_everywhere(value, 0)


def is_everywhere(value: Any, number: float) -> bool:
    """Returns whether all elements of a tensor, or a scalar, are known to be `number`: a constant, splat or fill."""
    if spread := defining_op(value, "linalg.fill", "stablehlo.broadcast_in_dim", "stablehlo.reshape", "tensor.splat"):
        return is_everywhere(spread.operands[0], number)
    op = defining_op(value, "arith.constant", "stablehlo.constant")
    if op is None:
        return False
    constant = op.attributes["value"]
    if isinstance(constant, ir.DenseElementsAttr):
        if not constant.is_splat:
            return False
        constant = constant.get_splat_value()
    return isinstance(constant, ir.IntegerAttr | ir.FloatAttr) and constant.value == number


def continue_with(op: Any, index: int, build: Callable[[], Any]) -> None:
    """Builds a value right behind an op, and replaces the uses of one of its results by the value.

    The shardings of the op's own results are removed.
    """
    drop_shardings(op)
    # The uses are collected before the new value adds its own.
    uses = uses_of(op.results[index])
    with ir.InsertionPoint.after(op), op.location:
        replace_uses(uses, build())


def drop_shardings(op: Any) -> None:
    """Removes the shardings of the results of an op."""
    if sdy.SHARDING in op.attributes:
        del op.attributes[sdy.SHARDING]


_arith = dialect("arith")


def neutral_initial_values(op: Any, first: int) -> dict[int, float]:
    """Returns neutral numbers for the initial values that change the result if they are combined several times.

    Args:
        first: the number of the operand that is the initial value of the first result.

    Returns:
        For each such operand, by its number, the neutral number; empty if the reduction of some result is not known.
    """
    combiners = combiners_of(op)
    if None in combiners:
        return {}
    found = {}
    for number, combiner in enumerate(combiners, first):
        if combiner is not None and not combiner.is_idempotent:
            neutral = neutral_number(combiner, op.operands[number].type.element_type)
            if neutral is not None:
                found[number] = neutral
    return found


def count_once(op: Any, operands: Mapping[int, float], axes: Sequence[int], blocks: Blocks) -> None:
    """Replaces operands of an op by numbers on all devices but the first along grid axes.

    Args:
        operands: the numbers of the operands, with the numbers that replace them.
    """
    for number, neutral in operands.items():
        value = op.operands[number]
        if not is_everywhere(value, neutral):
            with ir.InsertionPoint(op), op.location:
                op.operands[number] = _on_first_device(op, value, neutral, axes, blocks)


def _on_first_device(op: Any, value: Any, otherwise: float, axes: Sequence[int], blocks: Blocks) -> Any:
    if op.name.startswith("stablehlo."):
        flag = blocks.entry(axes, lambda position: int(position == 0), stablehlo.boolean())
        return stablehlo.select_all(flag, value, otherwise)
    index = blocks.device_index(axes)
    zero = _arith.ConstantOp(index.type, ir.IntegerAttr.get(index.type, 0)).result
    first = _arith.CmpIOp(_arith.CmpIPredicate.eq, index, zero).result
    number = stablehlo.element(value.type.element_type, otherwise)
    other = _arith.ConstantOp(value.type, ir.DenseElementsAttr.get_splat(value.type, number)).result
    return _arith.SelectOp(first, value, other).result
