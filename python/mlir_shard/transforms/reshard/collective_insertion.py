# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The collectives of a course as operations, with their attributes made once for all places where it is taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.resharding.sharding_steps import CollectiveStep, ExchangeShards, GatherAlong, SliceAlong
from mlir_shard.sharding import AllToAllParam, AllToAllParamList, AxisRefList, ListOfAxisRefLists
from mlir_shard.sharding.axes import Axes


@dataclass(frozen=True, slots=True)
class Collective:
    """An operation with one operand and one result of its type, but for where it stands."""

    name: str
    attributes: dict[str, Any]


def collective_of(step: CollectiveStep, context: Any) -> Collective:
    """The operation of the sdy dialect that does a step."""
    attributes = {"out_sharding": sdy.attribute(step.sharding, context)}
    if isinstance(step, ExchangeShards):
        return Collective("sdy.collective_permute", attributes)
    if isinstance(step, SliceAlong):
        attributes["slicing_axes"] = sdy.attribute(_lists(step.axes_per_dim), context)
        return Collective("sdy.all_slice", attributes)
    if isinstance(step, GatherAlong):
        attributes["gathering_axes"] = sdy.attribute(_lists(step.axes_per_dim), context)
        return Collective("sdy.all_gather", attributes)
    param = AllToAllParam(step.axes, step.src_dim, step.tgt_dim)
    attributes["params"] = sdy.attribute(AllToAllParamList((param,)), context)
    return Collective("sdy.all_to_all", attributes)


def build(value: Any, collectives: Iterable[Collective], location: Any) -> Any:
    """What the collectives make of a value one after the other, built at the current insertion point."""
    for one in collectives:
        value = ir.Operation.create(one.name, [value.type], [value], one.attributes, loc=location).results[0]
    return value


def _lists(axes_per_dim: tuple[Axes, ...]) -> ListOfAxisRefLists:
    return ListOfAxisRefLists(tuple(map(AxisRefList, axes_per_dim)))
