# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reshards around ops of a function read into arrays, chosen once for all of one signature and shardings."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.values import element_size
from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards, PricedReshards
from mlir_shard.resharding.operator.op_reshards import OpKind, ShardedOp, reshards_around
from mlir_shard.resharding.operator.reshard_prices import OpTensor
from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import Mesh, OpShardingRule, ReductionOp, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.propagation import order_of, propagation_key
from mlir_shard.transforms.shardings import Side, shardings_of

UNSHARDED = 0


class ShardedFunction:
    """The operations and values of a function by number, with the number of each value's sharding.

    Equal shardings have equal numbers, and none at all has UNSHARDED. Whoever puts something in the place of a value
    says so by `replaced`, and `changed` has the values of which that was said: what is read here is the function as it
    was. `any_sizes` is as of `ModuleArrays`.
    """

    def __init__(self, function: Any, any_sizes: Callable[[str], bool] | None = None) -> None:
        self.arrays = ModuleArrays(function, (sdy.SHARDING,), any_sizes)
        self.representatives = self.arrays.representatives()
        self.shardings: list[TensorSharding | None] = [None]
        self._by_sharding: dict[TensorSharding | None, int] = {None: UNSHARDED}
        self.numbers = array("i", [UNSHARDED]) * self.arrays.value_count
        self._origins: dict[int, int] = {}
        self._read(function)

    def sharding_of(self, value: int) -> TensorSharding | None:
        """The sharding of a value."""
        return self.shardings[self.numbers[value]]

    def number(self, sharding: TensorSharding | None) -> int:
        """The number of a sharding."""
        number = self._by_sharding.setdefault(sharding, len(self.shardings))
        if number == len(self.shardings):
            self.shardings.append(sharding)
        return number

    @property
    def has_barriers(self) -> bool:
        """Whether some value has passed a propagation barrier."""
        return bool(self._origins)

    def replaced(self, value: int, sharding: TensorSharding | None) -> None:
        """Records that users of a value have another one now, with this sharding."""
        self.numbers[value] = self.number(sharding)
        self._origins.pop(value, None)

    def number_before_barriers(self, value: int) -> int:
        """The number of the sharding of a value, or of the one it passes a chain of propagation barriers from."""
        return self.numbers[self._origins.get(value, value)]

    def in_post_order(self, ops: list[int]) -> list[int]:
        """The operations, which are in pre-order, each after those inside it."""
        parents = self.arrays.parents
        if all(parents[op] < 0 for op in ops):
            return ops
        # Pre-order numbers the operations inside one right after it, so the last of them is where it ends.
        ends = list(range(len(self.arrays)))
        for op in reversed(ends):
            if parents[op] >= 0:
                ends[parents[op]] = max(ends[parents[op]], ends[op])
        return sorted(ops, key=lambda op: (ends[op], -op))

    def _read(self, function: Any) -> None:
        arrays = self.arrays
        arrays.set_result_numbers(sdy.SHARDING, self._numbers_of, self.numbers)
        own, edges, barriers = {}, set(), set()
        for signature, op in enumerate(self.representatives):
            if has_edges(op.name):
                edges.add(signature)
            elif op.name == "sdy.propagation_barrier":
                barriers.add(signature)
            elif sdy.sharding_key(op) != sdy.SHARDING:
                own[signature] = [self.number(sdy.get_sharding(result)) for result in op.results]
        if own or edges or barriers:
            read = {*own, *edges, *barriers}
            for op in arrays.with_signatures([one in read for one in range(len(self.representatives))]):
                signature = arrays.signatures[op]
                if signature in own:
                    for value, number in zip(arrays.results(op), own[signature], strict=True):
                        self.numbers[value] = number
                elif signature in edges:
                    self._read_around_edges(arrays.operation(op))
                else:
                    operand = arrays.operands(op)[0]
                    self._origins[arrays.results(op)[0]] = self._origins.get(operand, operand)
        blocks = function.regions[0].blocks
        if len(blocks) and len(blocks[0].arguments):
            # They are read before anything that could use them, so their numbers come one after the other.
            first = arrays.number_of(blocks[0].arguments[0]) or 0
            for index, sharding in enumerate(shardings_of(function, Side.ARGUMENTS)):
                self.numbers[first + index] = self.number(sharding)

    def _numbers_of(self, attribute: Any) -> list[int]:
        value = sdy.value(attribute)
        return [self.number(one) for one in value.shardings] if isinstance(value, TensorShardingPerValue) else []

    def _read_around_edges(self, op: Any) -> None:
        for result in op.results:
            self._set_value(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self._set_value(argument)

    def _set_value(self, value: Any) -> None:
        number = self.arrays.number_of(value)
        if number is not None:
            self.numbers[number] = self.number(sharding_of(value))


_DOTS = ("stablehlo.dot", "stablehlo.dot_general")
_INDEXING = (
    "stablehlo.dynamic_slice",
    "stablehlo.dynamic_update_slice",
    "stablehlo.gather",
    "stablehlo.scatter",
    "stablehlo.slice",
)
_RESHAPES = ("stablehlo.reshape", "tensor.collapse_shape", "tensor.expand_shape")
# Of types of unknown size.
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
    """The tensor of a type; other types count as scalars."""
    known = element_size(type_) if isinstance(type_, ir.ShapedType) else None
    return OpTensor(shape_of(type_), known or _ASSUMED_ELEMENT_SIZE)


_CONCATENATIONS = ("stablehlo.concatenate",)
_ALWAYS_FULL = ("mhlo.ragged_dot",)
RESHARDED_ALWAYS = (*_ALWAYS_FULL, *_CONCATENATIONS)
"""Ops around which everything is resharded that has to be, whether or not it is around others."""


@dataclass(frozen=True, slots=True)
class AskedOp:
    """An op as a choice sees it: the number of its signature, and its shardings by number.

    `combiner` is what its partial results are reduced with; None where no collective does. `windows` are those known
    along the permutation factors of its rule. `summands` is as of `ShardedOp`. Shardings of operands are those before
    propagation barriers; `is_uniform` says whether those behind them are all the first result's.
    """

    number: int
    signature: Signature
    rule: OpShardingRule
    combiner: ReductionOp | None
    operands: tuple[int, ...]
    results: tuple[int, ...]
    windows: tuple[FactorWindow, ...] = ()
    summands: int = 1
    is_uniform: bool = False


class OpChoices:
    """The choices for the ops of a function: Shardy's, or with `cheapest` those that cost least.

    `shardings` are those of the function, by number. Without `reuses` each op gets a choice of its own.
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
        # Numbers of signatures with rules, those that a choice does not tell apart having the same; rules are kept.
        self._kinds: dict[tuple[int, int, bool], tuple[int, OpShardingRule]] = {}
        self._numbers: dict[Hashable, int] = {}

    def of(self, op: AskedOp) -> PricedReshards:
        """The reshards around an op; raises ReshardError where there are none that do."""
        is_full = self._is_full or op.signature.name in _ALWAYS_FULL
        if not is_full and op.signature.name in _CONCATENATIONS:
            is_full = not op.is_uniform
        key = (self._kind_of(op, is_full), op.combiner, is_full, op.operands, op.results, op.windows, op.summands)
        if key not in self._known or not self._reuses:
            self._known[key] = self._choose(op, is_full=is_full)
        return self._known[key]

    def _kind_of(self, op: AskedOp, is_full: bool) -> int:
        asked = (op.number, id(op.rule), is_full)
        found = self._kinds.get(asked)
        if found is None:
            one = op.signature
            if is_full:
                key: Hashable = (one.kind, one.tensors, one.sizes, op.rule)
            else:
                # What is made to fit alone goes by which tensor is larger.
                key = (one.kind, order_of(one.sizes), propagation_key(op.rule))
            found = self._kinds[asked] = (self._numbers.setdefault((is_full, key), len(self._numbers)), op.rule)
        return found[0]

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
