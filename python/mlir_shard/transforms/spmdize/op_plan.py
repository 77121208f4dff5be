# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is to become of one op: the values that planning hands to what carries plans out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.rules.partition import PartitionRule
from mlir_shard.rules.uneven_shards import Mask
from mlir_shard.sharding import Mesh, OpShardingRule
from mlir_shard.transforms.spmdize.grid_reshards import Resharding
from mlir_shard.transforms.spmdize.halo_update import HaloUpdate


@dataclass(frozen=True, slots=True)
class Signature:
    """Where the arguments and results of a function lie in its body.

    `argument_meshes` and `result_meshes` are those in whose order of devices a caller has the blocks, where that may be
    another order than the grid's.
    """

    arguments: tuple[Placement, ...]
    results: tuple[Placement, ...]
    argument_meshes: tuple[Mesh | None, ...]
    result_meshes: tuple[Mesh | None, ...]

    @property
    def is_sharded(self) -> bool:
        """Whether an argument or a result is not whole on every device."""
        return any(placement.used for placement in (*self.arguments, *self.results))


@dataclass(frozen=True, slots=True)
class UnevenEdge:
    """A dimension of an operand that is reduced in blocks of which the last are not full.

    It is along grid axes, and has `size` elements on all devices together; `dim` is a loop for `Mask.BODY`.
    """

    operand: int
    dim: int
    axes: GridAxes
    size: int


@dataclass(frozen=True, slots=True)
class Captured:
    """A value that ops in a region take from around it, as (op, operand number), resharded in front of the region."""

    uses: tuple[tuple[Any, int], ...]
    resharding: Resharding | None


class Role(Enum):
    """What happens to the op itself.

    KEPT: it stays what it is. COMPUTED: its partition rule makes it local. REPLACED: it goes, and its operand takes the
    place of its result. PASSED_ON: its results and the arguments of its blocks get local types.
    ENTERED: what is in its region takes its place, up to the terminator, which is LEFT. CONSTANT: a constant of sdy.
    """

    KEPT = "kept"
    COMPUTED = "computed"
    REPLACED = "replaced"
    PASSED_ON = "passed on"
    ENTERED = "entered"
    LEFT = "left"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class OpPlan:
    """What becomes of one op: reshards of operands, the op on blocks, reshards of results.

    `needed` is where the operands lie after their reshards, `made` where the results lie as the op makes them.
    `whole_reshards` are those of results that a partition rule has left whole. `argument_types` are those of the blocks
    in the regions, in order, `combined` the axes along which partial results are put together at once, `halos` what
    operands get of other blocks, `arrivals` what is done with the arguments of the block that the op is the first of.
    """

    op: Any
    operand_reshards: tuple[Resharding | None, ...]
    role: Role = Role.KEPT
    partition: PartitionRule | None = None
    rule: OpShardingRule | None = None
    factor_axes: tuple[GridAxes, ...] = ()
    made: tuple[Placement, ...] = ()
    result_reshards: tuple[Resharding | None, ...] = ()
    result_types: tuple[Any, ...] = ()
    whole_reshards: tuple[Resharding | None, ...] = ()
    needed: tuple[Placement, ...] = ()
    captured: tuple[Captured, ...] = ()
    argument_types: tuple[tuple[Any, ...], ...] = ()
    mask: Mask | None = None
    uneven_edges: tuple[UnevenEdge, ...] = ()
    arrivals: tuple[Resharding | None, ...] = ()
    combined: GridAxes = ()
    halos: tuple[HaloUpdate, ...] = ()
