# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How XLA:CPU treats operations of StableHLO."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_shard.explain.allocation.instructions import Instruction, Role, Traits
from mlir_shard.explain.allocation.local_values import Op, Signature, Tensor
from mlir_shard.ir.op_names import op_names

COLLECTIVES = frozenset(
    op_names("stablehlo", "all_gather all_reduce all_to_all collective_broadcast collective_permute reduce_scatter")
)
_OPENED = frozenset(op_names("stablehlo", "case if while"))
ELEMENTWISE = frozenset(
    op_names(
        "stablehlo",
        "abs add and atan2 bitcast_convert cbrt ceil clamp compare complex convert cosine count_leading_zeros divide "
        "exponential exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply "
        "negate not or popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select "
        "shift_left shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor",
    )
)
_CREATED = frozenset(op_names("stablehlo", "broadcast_in_dim iota"))
_FUSIBLE = (
    ELEMENTWISE
    | _CREATED
    | frozenset(
        op_names(
            "stablehlo",
            "concatenate dynamic_slice dynamic_update_slice gather pad reduce reverse slice transpose",
        )
    )
)
_EXPENSIVE = frozenset(
    op_names(
        "stablehlo",
        "atan2 cbrt divide exponential exponential_minus_one gather log log_plus_one logistic power reduce remainder "
        "rsqrt sqrt tanh",
    )
)
_SAME_MEMORY = frozenset(op_names("stablehlo", "optimization_barrier reshape"))
_MOVES = frozenset(op_names("stablehlo", "broadcast_in_dim concatenate slice"))
_IMPURE = COLLECTIVES | frozenset(op_names("stablehlo", "custom_call infeed outfeed recv rng send"))
# What is computed where the operand was.
_UPDATES = frozenset(op_names("stablehlo", "dynamic_update_slice scatter sort"))
_MOST_CONCATENATED = 8


class XlaRules:
    """The rules of XLA:CPU; those of fusion are its `CpuInstructionFusion`'s."""

    is_breadth_first = True
    is_in_place = True
    pointer_bytes = 8

    def opens(self, name: str) -> bool:
        """As `Rules.opens`."""
        return name in _OPENED

    def traits(self, signature: Signature) -> Traits:
        """As `Rules.traits`."""
        name = signature.name
        if name == "stablehlo.constant":
            return Traits(Role.CONSTANT)
        return Traits(
            Role.FUSIBLE if name in _FUSIBLE else Role.OPAQUE,
            is_elementwise=name in ELEMENTWISE,
            is_expensive=name in _EXPENSIVE,
            is_folded=name in _FUSIBLE and name not in _CREATED,
            is_pure=name not in _IMPURE,
            is_collective=name in COLLECTIVES,
            updates=len(signature.results) if name in _UPDATES else 0,
        )

    def is_view(self, op: Op, operands: Sequence[Tensor]) -> bool:
        """As `Rules.is_view`."""
        name = op.name
        if name in _SAME_MEMORY:
            return True
        if len(operands) != 1 or name not in _FUSIBLE:
            return False
        before, after = operands[0], op.signature.results[0]
        if name == "stablehlo.convert":
            return before == after
        if name == "stablehlo.transpose":
            order = [axis for axis in op.signature.op.attributes["permutation"] if before.shape[axis] != 1]
            return order == sorted(order)
        return name in _MOVES and _large(before.shape) == _large(after.shape)

    def takes(self, user: Instruction, producer: Instruction) -> bool:
        """As `FusionRules.takes`."""
        if user.traits.role is not Role.FUSIBLE:
            return False
        if _is_wide_concatenation(user) or _is_wide_concatenation(producer):
            return False
        return not (producer.traits.is_expensive and _repeats(user, producer))

    def may_repeat(self, one: Instruction, *, is_kept: bool) -> bool:
        """As `FusionRules.may_repeat`."""
        if one.traits.is_expensive:
            return False
        if not is_kept:
            return True
        rank = max(value.tensor.rank for value in one.results)
        large = [
            value
            for value in one.operands
            if value.definer.name not in _CREATED
            and not (value.definer.traits.role is Role.CONSTANT and value.tensor.rank == 0)
            and value.tensor.rank >= rank
        ]
        if len(large) <= 1:
            return True
        read = sum(value.tensor.elements for value in dict.fromkeys(one.operands))
        return read <= sum(value.tensor.elements for value in one.results)

    def staging(self, one: Instruction) -> tuple[int, int]:
        """As `BufferRules.staging`: none."""
        return (0, 0)


def _is_wide_concatenation(one: Instruction) -> bool:
    if one.name != "stablehlo.concatenate" or one.op is None:
        return False
    if len(one.operands) > _MOST_CONCATENATED:
        return True
    result = one.results[0].tensor
    along = one.op.signature.op.attributes["dimension"].value
    is_minor = len(result.shape) > 1 and along == len(result.shape) - 1
    return is_minor and result.shape[-1] * result.element >= 64 and result.bytes >= 2048


def _repeats(user: Instruction, producer: Instruction) -> bool:
    """Whether a user reads elements of a producer several times."""
    if user.name == "stablehlo.broadcast_in_dim":
        return user.results[0].tensor.elements > producer.results[0].tensor.elements
    return user.name == "stablehlo.gather" and user.operands[0].definer is producer


def _large(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
