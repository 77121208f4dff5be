# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inserts explicit reshards around ops whose operands and results do not agree on the sharding of a factor."""

from __future__ import annotations

from typing import Any, Literal

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow_edges import keeps_argument_shardings
from mlir_shard.ir.editing import contents
from mlir_shard.passes.analyses import analysis, held
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Changes, Pass, PassFailure, register
from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards, shared_cheapest_reshards
from mlir_shard.resharding.operator.common_axes import is_on_one_device
from mlir_shard.resharding.operator.reshard_prices import PlannedPrices
from mlir_shard.rules import RuleError
from mlir_shard.transforms.dead_code import erase_dead_code
from mlir_shard.transforms.gathers import Gathers, remarks_above
from mlir_shard.transforms.reshard.compatible_ops import CompatibleOps
from mlir_shard.transforms.reshard.op_choices import concerns_all_ops, is_resharded_by_default
from mlir_shard.transforms.reshard.single_device import Meshes, check_signature
from mlir_shard.transforms.shardings import listed_meshes, shardings_in
from mlir_shard.transforms.verified_repetition import change_verified, verify_repetition


@register
class InsertExplicitReshards(Pass):
    """Makes the shardings of operands and results compatible with their operations, by `sdy.reshard` and collectives.

    Operands that are partial along axes along which a result is not are reduced before the op. Partial results of a
    sharded reduction are reduced after it, along the axes along which the result is not declared unreduced. Operands of
    an op on one device are resharded to the device, and its results from it. Operands of a `func.call` get the
    shardings of the function's arguments.

    The full version also chooses, for each op with a sharding rule, the axes along which it is computed. It reshards
    operands before the op and results after it that are sharded differently, the sources of data-flow edges to their
    owners' shardings, and returned values to the shardings of the function's results. The other version does this only
    for concatenations and ragged dots, and reshards the result of a dot after it if that saves resharding an operand.

    With `planner=optimal`, an op is computed along the axes of the least total cost: of resharding its operands before
    it, of reducing and resharding its results after it, and of its computation on a device. A result has the sharding
    that is cheapest for the op that produces it and the ops that use it. Shardy's choice is kept if it costs no more,
    and if tensors are partial. Only ops around which this version inserts reshards are considered; see
    docs/resharding.md. Dead code is erased first.

    A reduction that no collective performs, such as a product, is not sharded. Custom rules are for propagation only.
    """

    name = "sdy-insert-explicit-reshards"
    anchor = "func.func"
    summary = "Inserts explicit reshards to make all operations have compatible shardings"

    enable_full_version: bool = option(False, "insert reshards on all ops that have a sharding rule")
    planner: Literal["shardy", "optimal"] = option(
        "shardy", "the planner of reshards: Shardy's algorithm, or minimum cost"
    )

    remarks_above: int | None = remarks_above()
    verify_repetition: bool = verify_repetition()

    def run(self, op: Any) -> Changes | Literal[False]:
        is_planned = self.planner == "optimal"
        # Shardy's choice depends on axes alone, and does not list devices.
        meshes = listed_meshes(op) if is_planned else sdy.meshes(op)
        check_signature(op, meshes)
        is_full = is_planned or self.enable_full_version
        may_insert = _is_sharded(op, meshes) if is_full else _may_insert(op, meshes)
        if is_planned:
            # Sharding constraints without uses have become reshards after propagation.
            erase_dead_code(op, held(op))
        if not may_insert:
            return Changes() if is_planned else False
        inserted: CompatibleOps | None = None

        def insert(function: Any, reuses: bool) -> None:
            nonlocal inserted
            gathers = Gathers(self.remarks_above if reuses else None)
            full = self.enable_full_version
            cheapest = None
            if is_planned:
                cheapest = shared_cheapest_reshards() if reuses else CheapestReshards(PlannedPrices())
            inserted = CompatibleOps(function, meshes, is_full=full, cheapest=cheapest, gathers=gathers, reuses=reuses)
            inserted.make()
            gathers.remark()

        try:
            if self.verify_repetition:
                change_verified(op, insert)
            else:
                insert(op, True)
        except RuleError as error:
            raise PassFailure(str(error), error.op) from error
        assert inserted is not None
        # Dead code may have been erased.
        is_changed = is_planned or inserted.made or inserted.attributed
        return Changes(inserted.made, inserted.attributed) if is_changed else False


def _is_sharded(function: Any, meshes: Meshes) -> bool:
    """Returns whether a value in a function may be sharded, or on one device."""
    if any(name == "func.call" or keeps_argument_shardings(name) for name in contents(function).operations):
        return True
    shardings = analysis(shardings_in, function)
    return any(sharding.used_axes or is_on_one_device(sharding, meshes) for sharding in shardings)


def _may_insert(function: Any, meshes: Meshes) -> bool:
    """Returns whether the version that is not full may insert ops into a function."""
    return any(map(_may_need_reshards, contents(function).operations)) or any(
        concerns_all_ops(sharding, meshes) for sharding in analysis(shardings_in, function)
    )


def _may_need_reshards(name: str) -> bool:
    # Where a dialect keeps shardings in a place of its own, `shardings_in` does not find them.
    return name == "func.call" or is_resharded_by_default(name) or keeps_argument_shardings(name)
