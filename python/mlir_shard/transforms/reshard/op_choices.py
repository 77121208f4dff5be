# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reshards around ops of a function read into arrays, chosen once for each signature and shardings."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Mapping, Sequence
from enum import Enum, auto
from math import prod
from typing import Any, NamedTuple

from mlir_shard._native import ShardedOps
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.host import ir
from mlir_shard.ir.values import element_size
from mlir_shard.passes.registry import shared
from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards, PricedReshards
from mlir_shard.resharding.operator.common_axes import is_on_one_device
from mlir_shard.resharding.operator.op_reshards import OpKind, ShardedOp, reshards_around
from mlir_shard.resharding.operator.reshard_prices import OpTensor
from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import Mesh, OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.propagation import order_of, propagation_key

_DOTS = ("stablehlo.dot", "stablehlo.dot_general")
_INDEXING = (
    "stablehlo.dynamic_slice",
    "stablehlo.dynamic_update_slice",
    "stablehlo.gather",
    "stablehlo.scatter",
    "stablehlo.slice",
)
_RESHAPES = ("stablehlo.reshape", "tensor.collapse_shape", "tensor.expand_shape")
# The size of elements of types of unknown size.
_ASSUMED_ELEMENT_SIZE = 4


class Treatment(Enum):
    """The treatment of an op."""

    EDGES = auto()
    CALL = auto()
    RETURN = auto()
    RESHARD = auto()
    OTHER = auto()

    @staticmethod
    def of(name: str) -> Treatment:
        """Returns the treatment of ops with a name."""
        return Treatment.EDGES if has_edges(name) else _TREATMENTS.get(name, Treatment.OTHER)


_TREATMENTS = {"func.call": Treatment.CALL, "func.return": Treatment.RETURN, "sdy.reshard": Treatment.RESHARD}


class Signature(NamedTuple):
    """The properties that ops of one signature share; `asks_each` is for rules that depend on more than the signature.

    `tensors` are the operands, then the results, of ops that may have a rule; `sizes` are their numbers of elements.
    """

    name: str
    treatment: Treatment
    kind: OpKind
    rule: OpShardingRule | None = None
    asks_each: bool = False
    has_regions: bool = False
    tensors: tuple[OpTensor, ...] = ()
    sizes: tuple[int, ...] = ()

    @property
    def has_rule(self) -> bool:
        """Whether ops of the signature have a rule, or may have one."""
        return self.rule is not None or self.asks_each


def kind_of(name: str) -> OpKind:
    """Returns the kind of ops with a name."""
    if name in _DOTS:
        return OpKind.DOT
    if name in _INDEXING:
        return OpKind.INDEXING
    return OpKind.RESHAPE if name in _RESHAPES else OpKind.OTHER


def size_of(type_: Any) -> int:
    """Returns the number of elements of a tensor, 0 if it is not known."""
    return prod(type_.shape) if isinstance(type_, ir.ShapedType) and type_.has_rank and type_.has_static_shape else 0


def tensor_of(type_: Any) -> OpTensor:
    """Returns the tensor of a type; types that are not tensors count as scalars."""
    known = element_size(type_) if isinstance(type_, ir.ShapedType) else None
    return OpTensor(shape_of(type_), known or _ASSUMED_ELEMENT_SIZE)


_CONCATENATIONS = ("stablehlo.concatenate",)
_ALWAYS_FULL = ("mhlo.ragged_dot",)
RESHARDED_ALWAYS = (*_ALWAYS_FULL, *_CONCATENATIONS)
"""Ops that always get all necessary reshards, also where other ops do not."""


def is_resharded_by_default(name: str) -> bool:
    """Returns whether reshards may be inserted around ops of a name for their rule, also without the full version."""
    return kind_of(name) is OpKind.DOT or name in RESHARDED_ALWAYS


def concerns_all_ops(sharding: TensorSharding | None, meshes: Mapping[str, Mesh]) -> bool:
    """Returns whether any op may need reshards around values with this sharding: it is unreduced, or on one device."""
    return sharding is not None and (bool(sharding.unreduced_axes) or is_on_one_device(sharding, meshes))


class AskedOp(NamedTuple):
    """The properties of an op that its choice depends on: the number of its signature, and its shardings by number.

    `combiner` is the reduction of its partial results; None if no collective performs it. `windows` are the known ones
    along the permutation factors of its rule. `summands` and `iterations` are those of `ShardedOp`. Shardings of
    operands are those before propagation barriers; `is_uniform` is whether those behind the barriers are all that of
    the first result.
    """

    number: int
    signature: Signature
    rule: OpShardingRule
    combiner: ReductionOp | None
    operands: tuple[int, ...]
    results: tuple[int, ...]
    windows: tuple[FactorWindow, ...] = ()
    summands: int = 1
    iterations: tuple[int, ...] = ()
    is_uniform: bool = False


class _ChoicesOfRun:
    """Shardy's choices, which the functions of a run share.

    Attributes:
        kinds: numbers of ops by all properties that a choice depends on, but for shardings and windows.
        reshards: the reshards around ops by kind, shardings and windows.
    """

    def __init__(self) -> None:
        self.kinds: dict[Hashable, int] = {}
        self.reshards: dict[Hashable, PricedReshards] = {}


class OpChoices:
    """The choices for the ops of a function: Shardy's, or with `cheapest` those of least cost.

    `shardings` are those of the function, by number. Without `reuses`, each op gets a choice of its own.
    """

    def __init__(
        self,
        shardings: Sequence[TensorSharding | None],
        meshes: Mapping[str, Mesh],
        cheapest: CheapestReshards | None,
        *,
        is_full: bool,
        reuses: bool = True,
    ) -> None:
        self._shardings = shardings
        self._meshes = meshes
        self._is_full = is_full
        self._reuses = reuses
        self._cheapest = cheapest
        self._known: dict[Hashable, PricedReshards] = {}
        # Numbers of signatures with rules, equal if choices cannot differ; the rules are kept alive.
        self._kinds: dict[tuple[int, int, bool], tuple[int, OpShardingRule]] = {}
        self._of_run = shared((OpChoices, *meshes.items()), _ChoicesOfRun)

    def of(self, op: AskedOp) -> PricedReshards:
        """Returns the reshards around an op; raises ReshardError if no reshards are sufficient."""
        is_full = self._is_full or op.signature.name in _ALWAYS_FULL
        if not is_full and op.signature.name in _CONCATENATIONS:
            is_full = not op.is_uniform
        kind = self._kind_of(op, is_full)
        key = (kind, op.combiner, op.operands, op.results, op.windows, op.summands, op.iterations)
        if key not in self._known or not self._reuses:
            self._known[key] = self._choose(op, kind, is_full=is_full)
        return self._known[key]

    def _kind_of(self, op: AskedOp, is_full: bool) -> int:
        asked = (op.number, id(op.rule), is_full)
        found = self._kinds.get(asked)
        if found is None:
            one = op.signature
            if is_full:
                key: Hashable = (one.kind, one.tensors, one.sizes, op.rule)
            else:
                # Without the full version, the choice depends on sizes only by their order.
                key = (one.kind, order_of(one.sizes), propagation_key(op.rule))
            kinds = self._of_run.kinds
            found = self._kinds[asked] = (kinds.setdefault((is_full, key), len(kinds)), op.rule)
        return found[0]

    def keep(self, op: AskedOp, number: int, ops: ShardedOps, numbers: array[int]) -> None:
        """Records in `ops` the form of an op around which nothing is resharded, if it is proved for other sizes too.

        `number` is that of the op, and `numbers` has the number of the sharding of each value.
        """
        cheapest, tensors = self._cheapest, op.signature.tensors
        shards = None if cheapest is None else cheapest.kept_shards(self._sharded(op), tensors, self._meshes)
        if cheapest is not None and shards is not None:
            ops.keep(
                number,
                numbers,
                factors=shards.factors,
                factor_shards=shards.of_factors,
                element_sizes=[tensor.element_size for tensor in tensors],
                tensor_shards=shards.of_tensors,
                operations_per_element=shards.operations_per_element,
                rates=(cheapest.rates.operations, cheapest.rates.memory),
                move_latency=cheapest.move_latency,
            )

    def _sharded(self, op: AskedOp) -> ShardedOp:
        operands = tuple([self._shardings[one] for one in op.operands])
        results = tuple([self._shardings[one] for one in op.results])
        is_unreduced = bool(results and results[0] is not None and results[0].unreduced_axes)
        is_reducible = op.combiner is not None or is_unreduced
        one, shared = op.signature, (op.summands, op.iterations)
        return ShardedOp(op.rule, operands, results, one.sizes, one.kind, is_reducible, op.windows, *shared)

    def _choose(self, op: AskedOp, kind: int, *, is_full: bool) -> PricedReshards:
        sharded = self._sharded(op)
        if self._cheapest is not None and is_full:
            reduction = op.combiner or ReductionOp.SUM
            return self._cheapest.around(sharded, op.signature.tensors, reduction, self._meshes)
        known = self._of_run.reshards
        key = (kind, sharded.operands, sharded.results, sharded.reducible, op.windows, op.summands)
        if key not in known or not self._reuses:
            known[key] = PricedReshards(reshards_around(sharded, self._meshes, full=is_full))
        return known[key]
