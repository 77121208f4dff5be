# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The changes of sharding in a program with explicit reshards, and those that partitioning adds, read from the IR and
from plans while a pipeline runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import owning_op, sharding_of
from mlir_shard.explain.places import Place, place_of, tag, tags_of
from mlir_shard.explain.propagation_trace import OP_TAG
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.values import defining_op
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.named_ops import COLLECTIVES, RESHARDING_OPS
from mlir_shard.transforms.partition.op_decisions import OpPlan, Role
from mlir_shard.transforms.partition.partial_results import reduced_axes

MOVE_TAG = "reshard"
_MOVING = (*COLLECTIVES, "sdy.reshard")


@dataclass(frozen=True, slots=True)
class OpenEnd:
    """One end of a reshard: an op by the tag in its location, and the number of its operand or result.

    `op` is -1 if the op has no tag; `name` is its name, `func.func` for an argument of a function.
    """

    op: int
    name: str
    index: int
    place: Place


@dataclass(frozen=True, slots=True)
class RecordedReshard:
    """A reshard or collective of a global program.

    Attributes:
        name: the name of the op; made_for: the tag of the op that it was made for, -1 if it has none.
        definer, user: the op that defines its operand and the op that uses its result, beyond other reshards.
        source, target: the shardings before and after it; reduced: the axes along which it reduces partial sums.
    """

    name: str
    made_for: int
    definer: OpenEnd
    user: OpenEnd | None
    source: TensorSharding | None
    target: TensorSharding | None
    reduced: tuple[AxisRef, ...] = ()


def read_reshards(function: Any, found: list[RecordedReshard]) -> None:
    """Adds the reshards of a function to `found`, and tags them with their numbers."""
    for op in operations_named(function, *_MOVING):
        if any(kind == MOVE_TAG for kind, _ in tags_of(op.location)):
            continue
        recorded = RecordedReshard(
            op.name,
            op_tag(op.location),
            _definer(op.operands[0]),
            _user(op.results[0]),
            sharding_of(op.operands[0]),
            sdy.get_sharding(op.results[0]),
            reduced_axes(op),
        )
        tag(op, MOVE_TAG, len(found))
        found.append(recorded)


def op_tag(location: Any) -> int:
    """Returns the number of the op that a location is tagged with; -1 if it has no tag."""
    return next((number for kind, number in tags_of(location) if kind == OP_TAG), -1)


def _definer(value: Any) -> OpenEnd:
    while (op := defining_op(value)) is not None and op.name in RESHARDING_OPS:
        value = op.operands[0]
    op = owning_op(value)
    index = ir.BlockArgument(value).arg_number if isinstance(value.owner, ir.Block) else value.result_number
    return OpenEnd(op_tag(op.location), op.name, index, place_of(op.location))


def _user(value: Any) -> OpenEnd | None:
    uses = list(value.uses)
    while uses:
        # Uses are listed in the reverse order of their creation.
        use = uses[-1]
        op = use.owner.operation
        if op.name not in RESHARDING_OPS:
            return OpenEnd(op_tag(op.location), op.name, use.operand_number, place_of(op.location))
        uses = list(op.results[0].uses)
    return None


@dataclass(frozen=True, slots=True)
class PlannedOp:
    """The changes that partitioning makes around an op, besides explicit reshards.

    Attributes:
        role: the role in its plan; has_rule: whether it has both a sharding and a partition rule.
        halos: the dimensions of operands that need elements of neighbours, each with its axes and the elements before
            and after a shard.
        combined: the axes along which its results are combined.
        gathered, changed: the numbers of operands, and of results, that are resharded.
    """

    name: str
    role: Role
    has_rule: bool
    halos: tuple[tuple[int, int, tuple[AxisRef, ...]], ...]
    combined: tuple[AxisRef, ...]
    gathered: tuple[int, ...]
    changed: tuple[int, ...]
    partial: tuple[AxisRef, ...]


def planned_op(planned: OpPlan, op: Any, grid: DeviceGrid) -> PlannedOp:
    """Returns the changes that a plan makes around its op."""

    def axes(numbers: Iterable[int]) -> tuple[AxisRef, ...]:
        return tuple(grid.atoms[number] for number in numbers)

    return PlannedOp(
        op.name,
        planned.role,
        planned.rule is not None and planned.partition is not None,
        tuple((update.operand, update.dim, axes(update.axes)) for update in planned.halos),
        axes(planned.combined),
        tuple(number for number, one in enumerate(planned.operand_reshards) if one is not None),
        tuple(number for number, one in enumerate(planned.results.reshards) if one is not None),
        tuple(dict.fromkeys(axis for made in planned.results.made for axis in axes(made.unreduced))),
    )
