# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is the same of all ops of one signature, as far as their reshards are concerned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from typing import Any

from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.host import ir
from mlir_shard.ir.values import element_size
from mlir_shard.resharding.op_cost import OpTensor
from mlir_shard.resharding.op_reshards import OpKind
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import OpShardingRule

_DOTS = ("stablehlo.dot", "stablehlo.dot_general")
_INDEXING = (
    "stablehlo.dynamic_slice",
    "stablehlo.dynamic_update_slice",
    "stablehlo.gather",
    "stablehlo.scatter",
    "stablehlo.slice",
)
_RESHAPES = ("stablehlo.reshape", "tensor.collapse_shape", "tensor.expand_shape")
# Of types that do not say how large they are.
_ASSUMED_ELEMENT_SIZE = 4


class Way(Enum):
    """How an op is treated."""

    EDGES = auto()
    CALL = auto()
    RETURN = auto()
    RESHARD = auto()
    OTHER = auto()

    @staticmethod
    def of(name: str) -> Way:
        """How ops of a name are treated."""
        if has_edges(name):
            return Way.EDGES
        return {"func.call": Way.CALL, "func.return": Way.RETURN, "sdy.reshard": Way.RESHARD}.get(name, Way.OTHER)


@dataclass(frozen=True, slots=True)
class Signature:
    """What ops of one signature have in common; `asks_each` is for rules that look at more than the signature.

    `tensors` are the operands, then the results, of ops that may have a rule, and `sizes` how many elements they have.
    """

    name: str
    way: Way
    kind: OpKind
    rule: OpShardingRule | None = None
    asks_each: bool = False
    has_regions: bool = False
    tensors: tuple[OpTensor, ...] = ()
    sizes: tuple[int, ...] = ()

    @property
    def has_rule(self) -> bool:
        """Whether ops of it have a rule, or may have one."""
        return self.rule is not None or self.asks_each


def kind_of(name: str) -> OpKind:
    """The kind of ops of a name."""
    if name in _DOTS:
        return OpKind.DOT
    if name in _INDEXING:
        return OpKind.INDEXING
    return OpKind.RESHAPE if name in _RESHAPES else OpKind.OTHER


def size_of(type_: Any) -> int:
    """The number of elements of a tensor, 0 where it is not known."""
    return prod(type_.shape) if isinstance(type_, ir.ShapedType) and type_.has_rank and type_.has_static_shape else 0


def tensor_of(type_: Any) -> OpTensor:
    """The tensor of a type; what is none is a scalar."""
    known = element_size(type_) if isinstance(type_, ir.ShapedType) else None
    return OpTensor(shape_of(type_), known or _ASSUMED_ELEMENT_SIZE)
