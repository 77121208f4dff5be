# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is put around ops, chosen once for all that agree in signature and shardings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from mlir_shard.resharding.cheapest_reshards import CheapestReshards, PricedReshards
from mlir_shard.resharding.factor_window import FactorWindow
from mlir_shard.resharding.op_reshards import ShardedOp, reshards_around
from mlir_shard.sharding import Mesh, OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.transforms.reshard.op_signatures import Signature

_CONCATENATIONS = ("stablehlo.concatenate",)
_ALWAYS_FULL = ("mhlo.ragged_dot",)
RESHARDED_ALWAYS = (*_ALWAYS_FULL, *_CONCATENATIONS)
"""Ops around which everything is resharded that has to be, whether or not it is around others."""


@dataclass(frozen=True, slots=True)
class AskedOp:
    """An op as a choice sees it: the number of its signature, and its shardings by number.

    `combiner` is what its partial results are reduced with; None where no collective does. `windows` are those known
    along its permutation factors, which its rule says which are. `summands` is as of `ShardedOp`.
    """

    number: int
    signature: Signature
    rule: OpShardingRule
    combiner: ReductionOp | None
    operands: tuple[int, ...]
    results: tuple[int, ...]
    windows: tuple[FactorWindow, ...] = ()
    summands: int = 1


class OpChoices:
    """The choices for the ops of a function: Shardy's, or with `cheapest` those that cost least.

    `shardings` are those of the function, by number.
    """

    def __init__(
        self,
        shardings: Sequence[TensorSharding | None],
        meshes: Mapping[str, Mesh],
        cheapest: CheapestReshards | None,
        *,
        is_full: bool,
    ) -> None:
        self._shardings = shardings
        self._meshes = meshes
        self._is_full = is_full
        self._cheapest = cheapest
        self._known: dict[Hashable, PricedReshards] = {}

    def of(self, op: AskedOp) -> PricedReshards:
        """What is put around an op; raises ReshardError where nothing can be."""
        is_full = self._is_full or op.signature.name in _ALWAYS_FULL
        if not is_full and op.signature.name in _CONCATENATIONS:
            is_full = any(operand != op.results[0] for operand in op.operands)
        key = (op.number, id(op.rule), op.combiner, is_full, op.operands, op.results, op.summands)
        if key not in self._known:
            self._known[key] = self._choose(op, is_full=is_full)
        return self._known[key]

    def _choose(self, op: AskedOp, *, is_full: bool) -> PricedReshards:
        operands = tuple([self._shardings[one] for one in op.operands])
        results = tuple([self._shardings[one] for one in op.results])
        is_unreduced = bool(results and results[0] is not None and results[0].unreduced_axes)
        is_reducible = op.combiner is not None or is_unreduced
        signature = op.signature
        asked = ShardedOp(
            op.rule, operands, results, signature.sizes, signature.kind, is_reducible, op.windows, op.summands
        )
        if self._cheapest is None or not is_full:
            return PricedReshards(reshards_around(asked, self._meshes, full=is_full))
        return self._cheapest.around(asked, op.signature.tensors, op.combiner or ReductionOp.SUM, self._meshes)
