# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Some ops are partitioned, each alone, and the rest of the program is left to another partitioner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram
from mlir_shard.transforms.gathers import Gathers, remarks_above
from mlir_shard.transforms.halo.moving_ops import Surroundings
from mlir_shard.transforms.limits import check_sizes
from mlir_shard.transforms.shardings import meshes_around
from mlir_shard.transforms.spmdize.partitioned_instruction import partition_alone

# What the dialect says about a program, and collectives, which are for what comes later.
LEFT_GLOBAL = frozenset(
    (
        "sdy.all_gather",
        "sdy.all_reduce",
        "sdy.all_slice",
        "sdy.all_to_all",
        "sdy.collective_permute",
        "sdy.data_flow_edge",
        "sdy.manual_computation",
        "sdy.propagation_barrier",
        "sdy.reduce_scatter",
        "sdy.replicated_to_unreduced",
        "sdy.sharded_to_unreduced",
        "sdy.sharding_constraint",
        "sdy.sharding_group",
    )
)
SHARDING_CALLS = ("Sharding", "mhlo.sharding")


@register
class PerInstructionPartitioning(Pass):
    """Replaces selected ops by manual computations that hold what one device does.

    For finding the op that a partitioner gets wrong. Ops of function bodies that have a sharded tensor are numbered
    from 0 on, and selected by `filter`: all where it is empty; else those whose name contains one of the given texts,
    numbered between `selectLow` and `selectHigh`, both included. Inside there is what
    the full `sdy-insert-explicit-reshards`, `sdy-resolve-permutation-factors`, `sdy-reshard-to-collectives`,
    `sdy-pad-for-divisibility` and `sdy-convert-global-to-local` make of the op; operands in uneven shards are padded
    outside, and results cut. An op that cannot be made local is an error.
    """

    name = "sdy-per-instruction-partitioning"
    anchor = "builtin.module"
    summary = "Partitions selected operations alone, in manual computations"

    filter: str = option("", "what to select: parts of names, selectLow=N, selectHigh=N, apart by commas")
    enable_halo_exchange: bool = option(True, "exchange shards between neighbours where that can be")
    replica_count: int = option(1, "the number of replicas; more than 1 are told apart by replica_id")
    partition_count: int = option(1, "the number of partitions")
    remarks_above: int | None = remarks_above()

    def run(self, op: Any) -> None:
        if self.replica_count > 1 and self.partition_count > 1:
            counts = f"{self.replica_count} replicas of {self.partition_count} partitions"
            raise PassFailure(f"{counts} cannot be told apart: replica-count or partition-count has to be 1", op)
        try:
            selection = Selection.parse(self.filter)
        except ValueError as error:
            raise PassFailure(str(error), op) from error
        check_sizes(op)
        around = Surroundings(meshes_around(op), StablehloProgram(Channels.of(op), self.replica_count > 1))
        gathers = Gathers(self.remarks_above)
        chosen = [one for number, one in enumerate(_candidates(op)) if selection.selects(number, one.name)]
        for one in chosen:
            partition_alone(one, around, gathers, by_exchange=self.enable_halo_exchange)
        gathers.remark()


@dataclass(frozen=True, slots=True)
class Selection:
    """Which ops are meant: numbered from `low` to `high`, with one of `names` in their name if there are any."""

    names: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None

    @staticmethod
    def parse(text: str) -> Selection:
        """Reads a filter, which may be in quotes; ValueError where a bound is no number."""
        text = text.strip()
        if len(text) > 1 and text[0] == text[-1] and text[0] in ("'", '"'):
            text = text[1:-1]
        names = []
        bounds: dict[str, int] = {}
        for token in filter(None, map(str.strip, text.split(","))):
            key, is_bound, value = token.partition("=")
            if not is_bound:
                names.append(token)
            elif key.strip() in ("selectLow", "selectHigh") and value.strip().isdecimal():
                bounds[key.strip()] = int(value)
            else:
                raise ValueError(f"filter has '{token}', and takes parts of names, selectLow=N and selectHigh=N")
        return Selection(tuple(names), bounds.get("selectLow"), bounds.get("selectHigh"))

    def selects(self, number: int, name: str) -> bool:
        """Whether the op of this number and name is meant."""
        is_low, is_high = self.low is not None and number < self.low, self.high is not None and number > self.high
        return not (is_low or is_high) and (not self.names or any(one in name for one in self.names))


def _candidates(module: Any) -> list[Any]:
    """The ops in the bodies of functions, but not inside other ops, that have a sharded tensor."""
    found = []
    for function in operations_named(module, "func.func"):
        for block in function.regions[0].blocks:
            # The last one is the terminator.
            found += [one.operation for one in list(block.operations)[:-1] if _is_candidate(one.operation)]
    return found


def _is_candidate(op: Any) -> bool:
    if op.name in LEFT_GLOBAL or (op.name == "stablehlo.custom_call" and _target(op) in SHARDING_CALLS):
        return False
    shardings = (sharding_of(value) for value in (*op.operands, *op.results))
    return any(sharding is not None and not sharding.is_fully_replicated for sharding in shardings)


def _target(op: Any) -> str:
    target: str = op.attributes["call_target_name"].value
    return target
