# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of XLA:CPU for operations of StableHLO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir_shard.explain.allocation import xla_expansions, xla_library
from mlir_shard.explain.allocation.instructions import Computation, Emit, Instruction, Role, Traits, Value
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
_IMPURE = COLLECTIVES | frozenset(op_names("stablehlo", "custom_call infeed outfeed recv rng send"))
# Operations that are computed in the memory of an operand.
_UPDATES = frozenset(op_names("stablehlo", "dynamic_update_slice scatter sort"))
_BRANCHING = frozenset(op_names("stablehlo", "concatenate dynamic_update_slice pad reduce"))
_MOST_CONCATENATED = 8


class XlaRules:
    """The rules of XLA:CPU; those of fusion are its `CpuInstructionFusion`'s."""

    is_breadth_first = True
    is_in_place = True
    copies_parameters = True
    pointer_bytes = 8

    def opens(self, name: str) -> bool:
        """Implements `Rules.opens`."""
        return name in _OPENED

    def traits(self, signature: Signature) -> Traits:
        """Implements `Rules.traits`."""
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

    def expand(self, op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
        """Implements `Rules.expand`."""
        return xla_expansions.expand(op, operands, tensors, emit)

    def calls(self, computation: Computation) -> Mapping[int, Instruction]:
        """Implements `FusionRules.calls`."""
        return xla_library.calls(computation)

    def takes(self, user: Instruction, producer: Instruction) -> bool:
        """Implements `FusionRules.takes`."""
        return user.traits.role is Role.FUSIBLE and not any(map(_is_wide_concatenation, (user, producer)))

    def is_branching(self, one: Instruction) -> bool:
        """Implements `FusionRules.is_branching`: code with branches between operands is not emitted several times."""
        return one.name in _BRANCHING

    def repeats(self, user: Instruction, producer: Instruction) -> bool:
        """Implements `FusionRules.repeats`."""
        if user.name == "stablehlo.broadcast_in_dim":
            return user.results[0].tensor.elements > producer.results[0].tensor.elements
        return user.name == "stablehlo.gather" and user.operands[0].definer is producer

    def may_repeat(self, one: Instruction) -> bool:
        """Implements `FusionRules.may_repeat`."""
        return not one.traits.is_expensive

    def is_whole_or_not(self, one: Instruction) -> bool:
        """Implements `FusionRules.is_whole_or_not`: true for instructions that read more elements than they write."""
        rank = max(value.tensor.rank for value in one.results)
        large = [
            value
            for value in one.operands
            if value.definer.name not in _CREATED
            and not (value.definer.traits.role is Role.CONSTANT and value.tensor.rank == 0)
            and value.tensor.rank >= rank
        ]
        if len(large) <= 1:
            return False
        read = sum(value.tensor.elements for value in dict.fromkeys(one.operands))
        return read > sum(value.tensor.elements for value in one.results)

    def staging(self, one: Instruction) -> tuple[int, int]:
        """Implements `BufferRules.staging`: no bytes are staged."""
        return (0, 0)


def _is_wide_concatenation(one: Instruction) -> bool:
    return one.name == "stablehlo.concatenate" and len(one.operands) > _MOST_CONCATENATED
