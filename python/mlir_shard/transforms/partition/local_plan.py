# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of each op of a program whose ops agree with their shardings, decided before anything changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow_edges import edges_of, has_edges
from mlir_shard.ir.editing import ops_below, terminator
from mlir_shard.passes.registry import PassFailure
from mlir_shard.transforms.partition.local_computations import BlockComputations, OnBlocks
from mlir_shard.transforms.partition.named_ops import COLLECTIVES, DRAWING, IDENTITY_OPS
from mlir_shard.transforms.partition.placed_values import Placed, PlacedValues, are_alike
from mlir_shard.transforms.shardings import Side, shardings_of, types_of

# Collectives that devices use in a manual computation: along its other axes the result is where the operand is.
SAME_FOR_EACH = ("stablehlo.all_reduce", "stablehlo.collective_broadcast", "stablehlo.collective_permute")
_RESHARD_FIRST = "reshard it first, as sdy-insert-explicit-reshards does, and make collectives of reshards"


@dataclass(frozen=True, slots=True)
class OpPlan:
    """What becomes of one op: where its operands and results are, None for whole ones, and how it is computed.

    `arguments` are where those of the blocks in its regions are, in the order of the regions.
    """

    op: Any
    operands: tuple[Placed | None, ...]
    results: tuple[Placed | None, ...]
    on_blocks: OnBlocks | None = None
    arguments: tuple[tuple[Placed | None, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """Where the arguments and results of a function are."""

    arguments: tuple[Placed | None, ...]
    results: tuple[Placed | None, ...]

    @staticmethod
    def of(function: Any, values: PlacedValues) -> Signature:
        """By the shardings in the function's attributes."""
        sides = []
        for side in Side:
            pairs = zip(types_of(function, side), shardings_of(function, side), strict=True)
            sides.append(tuple(values.placed(type_, sharding, function) for type_, sharding in pairs))
        return Signature(*sides)


class LocalPlanner:
    """Plans the ops of a module; raises PassFailure at the first op that cannot become local."""

    def __init__(self, values: PlacedValues, signatures: Mapping[str, Signature]) -> None:
        self._values = values
        self._signatures = signatures
        self._computations = BlockComputations()

    def plan(self, function: Any) -> list[OpPlan]:
        """The plans of the ops in a function, each before those in its regions; ops that stay as they are have none."""
        signature = self._signatures[function.attributes["sym_name"].value]
        blocks = function.regions[0].blocks
        if len(blocks):
            for argument, placed in zip(blocks[0].arguments, signature.arguments, strict=True):
                self._values.set(argument, placed)
        plans = (self._plan_op(op, signature) for op in ops_below(function))
        return [plan for plan in plans if plan is not None]

    def _plan_op(self, op: Any, signature: Signature) -> OpPlan | None:
        """Returns the plan of an op in a function of that signature; ops around it and before it have been planned."""
        name = op.name
        if name == "func.return":
            self._check_operands(op, signature.results, "returns")
            return None
        if name == "func.call":
            return self._call(op)
        if name in COLLECTIVES:
            return self._collective(op)
        if has_edges(name):
            return self._with_edges(op)
        if name in SAME_FOR_EACH and sdy.SHARDING not in op.attributes:
            for operand, result in zip(op.operands, op.results, strict=True):
                self._values.set(result, self._values.of(operand))
        operands, results = self._placed(op.operands), self._placed(op.results)
        if name in IDENTITY_OPS:
            return self._identity(op, operands, results)
        if name == "sdy.return":
            # That of a manual computation goes with it, before its turn would come.
            return None
        if name in ("sdy.constant", "sdy.sharding_group"):
            return OpPlan(op, operands, results)
        if name == DRAWING and not any(one is not None for one in operands):
            return None if _is_manual(op) else OpPlan(op, operands, results)
        if not any(one is not None for one in (*operands, *results)):
            return None
        if len(op.successors):
            raise PassFailure(f"'{name}' op passes blocks on to other blocks of code, which have no shardings", op)
        if not len(op.results) and any(one is not None for one in operands):
            # It ends a region, or makes nothing: it gets shards where it got tensors.
            return None
        self._check_inside(op)
        return OpPlan(op, operands, results, self._computations.find(op, operands, results))

    def _placed(self, values: Sequence[Any]) -> tuple[Placed | None, ...]:
        return tuple(map(self._values.of, values))

    def _check_operands(self, op: Any, wanted: Sequence[Placed | None], verb: str) -> None:
        for index, (value, want) in enumerate(zip(op.operands, wanted, strict=True)):
            _check_alike(op, f"{verb} operand {index} as {{}}, and it has to be {{}}", self._values.of(value), want)

    def _call(self, op: Any) -> OpPlan:
        callee = op.attributes["callee"].value
        if callee not in self._signatures:
            raise PassFailure(f"the callee @{callee} is no function of this module", op)
        signature = self._signatures[callee]
        self._check_operands(op, signature.arguments, f"passes @{callee}")
        has_shardings = sdy.SHARDING in op.attributes
        for index, (result, made) in enumerate(zip(op.results, signature.results, strict=True)):
            if has_shardings:
                _check_alike(
                    op, f"has result {index} as {{}}, and @{callee} returns it as {{}}", self._values.of(result), made
                )
            self._values.set(result, made)
        return OpPlan(op, signature.arguments, signature.results)

    def _collective(self, op: Any) -> OpPlan:
        sharding = op.attributes["out_sharding"].value
        self._placed((*op.operands, *op.results))
        return OpPlan(
            op,
            (self._values.exactly(op.operands[0], sharding),),
            (self._values.exactly(op.results[0], sharding),),
        )

    def _identity(self, op: Any, operands: tuple[Placed | None, ...], results: tuple[Placed | None, ...]) -> OpPlan:
        advice = "make collectives of reshards first, as sdy-reshard-to-collectives does"
        _check_alike(op, "changes a tensor that is {} to {}", operands[0], results[0], advice)
        return OpPlan(op, operands, results)

    def _with_edges(self, op: Any) -> OpPlan:
        """An op with regions: values on one data-flow edge must be sharded in the same way."""
        if op.name == "sdy.manual_computation":
            self._check_manual(op)
        else:
            for edge in edges_of(op):
                wanted = self._values.of(edge.owner)
                for source in edge.sources:
                    _check_alike(op, "passes on a tensor that is {} as {}", self._values.of(source), wanted)
                for target in edge.other_targets:
                    self._values.set(target, wanted)
        arguments = tuple(self._placed(block.arguments) for region in op.regions for block in region.blocks)
        return OpPlan(op, self._placed(op.operands), self._placed(op.results), None, arguments)

    def _check_manual(self, op: Any) -> None:
        inside = op.attributes["in_shardings"].value.shardings
        outside = op.attributes["out_shardings"].value.shardings
        manual = op.attributes["manual_axes"].value.value
        wanted = [self._values.placed(value.type, one, op) for value, one in zip(op.operands, inside, strict=True)]
        self._check_operands(op, wanted, "takes")
        returned = terminator(op).operands
        for index, (value, sharding) in enumerate(zip(returned, outside, strict=True)):
            made = self._values.placed(value.type, sharding.without_axes(manual), op)
            text = f"returns result {index} as {{}}, and out_shardings has it {{}} inside"
            _check_alike(op, text, self._values.of(value), made)

    def _check_inside(self, op: Any) -> None:
        """Regions that combine elements know nothing of blocks."""
        for inner in ops_below(op) if len(op.regions) else ():
            if any(one is not None for one in self._placed((*inner.operands, *inner.results))):
                raise PassFailure(f"'{op.name}' op uses a tensor in blocks inside its region", inner)


def _is_manual(op: Any) -> bool:
    """Whether an op is in a manual computation, where each device computes what it likes."""
    while op.parent is not None:
        op = op.parent.operation
        if op.name == "sdy.manual_computation":
            return True
    return False


def _check_alike(op: Any, text: str, have: Placed | None, want: Placed | None, advice: str = _RESHARD_FIRST) -> None:
    """Raises PassFailure where devices have other shards than they have to have; `text` has a place for each."""
    if not are_alike(have, want):
        shown = ("replicated" if one is None else str(one.sharding) for one in (have, want))
        raise PassFailure(f"'{op.name}' op {text.format(*shown)}: {advice}", op)
