# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the lowering to LLVM and MPI treats operations: `linalg` fusion, and bufferization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir_shard.explain.allocation import xla_rules
from mlir_shard.explain.allocation.instructions import Computation, Emit, Instruction, Role, Traits, Value
from mlir_shard.explain.allocation.local_values import Op, Signature, Tensor
from mlir_shard.ir.op_names import op_names

_OPENED = frozenset(op_names("stablehlo", "case if while")) | {"scf.for", "scf.if", "scf.while"}
_VIEWS = frozenset(
    op_names("stablehlo", "optimization_barrier reshape slice")
    + op_names("tensor", "cast collapse_shape expand_shape extract_slice reshape")
    + op_names("shard", "all_slice")
)
_GENERIC = frozenset(op_names("linalg", "broadcast elementwise generic map transpose"))
_FUSIBLE = frozenset(op_names("stablehlo", "broadcast_in_dim iota transpose"))
_TAKES = frozenset(op_names("stablehlo", "reduce"))
_CONSTANTS = frozenset({"stablehlo.constant", "arith.constant", "tosa.const", "tensor.empty", "linalg.fill"})
_ELEMENTWISE_DIALECTS = ("arith.", "math.", "tosa.", "chlo.")
_NOT_ELEMENTWISE = frozenset(
    op_names(
        "tosa",
        "argmax avg_pool2d concat conv2d conv3d depthwise_conv2d gather matmul max_pool2d pad reduce_max reduce_min "
        "reduce_sum reduce_prod reduce_all reduce_any reshape reverse scatter slice tile transpose table",
    )
    + op_names("chlo", "top_k")
)
_UPDATES = frozenset(
    op_names("stablehlo", "dynamic_update_slice scatter sort") + op_names("tensor", "insert insert_slice")
)


class MpiRules:
    """The rules of the lowering to MPI."""

    is_breadth_first = False
    is_in_place = False
    copies_parameters = False
    pointer_bytes = 0

    def opens(self, name: str) -> bool:
        """As `Rules.opens`."""
        return name in _OPENED

    def traits(self, signature: Signature) -> Traits:
        """As `Rules.traits`."""
        name = signature.name
        if name in _CONSTANTS:
            return Traits(Role.CONSTANT)
        is_collective = name in xla_rules.COLLECTIVES or (name.startswith("shard.") and name not in _VIEWS)
        is_elementwise = (
            name in xla_rules.ELEMENTWISE
            or name in _GENERIC
            or (name.startswith(_ELEMENTWISE_DIALECTS) and name not in _NOT_ELEMENTWISE)
        )
        return Traits(
            Role.FUSIBLE if is_elementwise or name in _FUSIBLE else Role.OPAQUE,
            is_elementwise=is_elementwise,
            is_folded=is_elementwise or name == "stablehlo.broadcast_in_dim",
            is_pure=not is_collective,
            is_collective=is_collective,
            updates=len(signature.results) if name in _UPDATES else 0,
        )

    def expand(self, op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
        """As `Rules.expand`: views are the operands that they are of."""
        name = op.name
        if name in _VIEWS:
            return operands
        if len(operands) != 1:
            return None
        same = name in ("stablehlo.convert", "stablehlo.broadcast_in_dim") and tensors[0] == op.signature.results[0]
        return operands if same else None

    def calls(self, computation: Computation) -> Mapping[int, Instruction]:
        """As `FusionRules.calls`: libraries compute single operations."""
        return {}

    def takes(self, user: Instruction, producer: Instruction) -> bool:
        """As `FusionRules.takes`."""
        if user.traits.role is not Role.FUSIBLE and user.name not in _TAKES:
            return False
        return sum(value.definer is producer for value in user.operands) == 1

    def is_branching(self, one: Instruction) -> bool:
        """As `FusionRules.is_branching`."""
        return False

    def repeats(self, user: Instruction, producer: Instruction) -> bool:
        """As `FusionRules.repeats`: nothing is too expensive."""
        return False

    def may_repeat(self, one: Instruction) -> bool:
        """As `FusionRules.may_repeat`: only what has one use is fused."""
        return False

    def is_whole_or_not(self, one: Instruction) -> bool:
        """As `FusionRules.is_whole_or_not`."""
        return False

    def staging(self, one: Instruction) -> tuple[int, int]:
        """As `BufferRules.staging`: MPI sends and receives parts along the first dimension."""
        attributes = one.op.signature.op.attributes if one.op else {}
        if one.name == "shard.all_gather" and attributes["gather_axis"].value:
            return (0, one.results[0].tensor.bytes)
        if one.name == "shard.reduce_scatter" and attributes["scatter_dim"].value:
            return (one.operands[0].tensor.bytes, 0)
        return (0, 0)
