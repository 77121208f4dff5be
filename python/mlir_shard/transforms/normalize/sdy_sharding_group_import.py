# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Merges sharding groups that share a tensor."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects.data_flow import ancestors
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import ModulePass, PassFailure, register
from mlir_shard.rules.builder import shape_of


@register
class ShardingGroupImport(ModulePass):
    """Merges groups that have a tensor in common, numbers the remaining groups from 0, and erases repeated memberships.

    Groups are merged into the first group of the common tensor, and numbered in the order of their first occurrence.
    The tensors of a group must have one shape, and be in the body of the same manual computation or in none.
    """

    name = "sdy-sharding-group-import"
    summary = "Checks sharding groups, merges those that share a tensor, and numbers them from 0"
    needs = ("sdy.sharding_group",)

    def run(self, op: Any) -> bool:
        members = operations_named(op, "sdy.sharding_group")
        _check(members)
        groups = _Groups()
        for ids in _ids_by_tensor(members).values():
            for group in ids:
                groups.merge(ids[0], group)
        numbers = groups.numbered()
        seen = set()
        for member in members:
            number = numbers[groups.leader(_group_id(member))]
            if (member.operands[0], number) in seen:
                member.erase()
                continue
            seen.add((member.operands[0], number))
            member.attributes["group_id"] = ir.IntegerAttr.get(member.attributes["group_id"].type, number)
        return bool(members)


def _group_id(member: Any) -> int:
    number: int = member.attributes["group_id"].value
    return number


def _ids_by_tensor(members: list[Any]) -> dict[Any, list[int]]:
    ids: dict[Any, list[int]] = {}
    for member in members:
        ids.setdefault(member.operands[0], []).append(_group_id(member))
    return ids


def _check(members: list[Any]) -> None:
    """Raises PassFailure if the tensors of a group cannot all have one sharding."""
    first: dict[int, tuple[Any, Any, Any]] = {}
    for member in members:
        group = _group_id(member)
        around = next((one for one in ancestors(member) if one.name == "sdy.manual_computation"), None)
        shape = shape_of(member.operands[0].type)
        known, known_around, known_shape = first.setdefault(group, (member, around, shape))
        if not _same(around, known_around):
            raise PassFailure(
                f"sharding group {group} crosses the boundary of a manual computation: its tensors must all be in "
                "the body of the same manual computation, or all outside",
                member,
                [("an earlier tensor of the group is here", known)],
            )
        if shape != known_shape:
            raise PassFailure(
                f"the tensors of sharding group {group} must have the same shape, but this one has type "
                f"{member.operands[0].type}",
                member,
                [(f"an earlier tensor of the group has type {known.operands[0].type}", known)],
            )


def _same(op: Any | None, other: Any | None) -> bool:
    return op is other if op is None or other is None else bool(op == other)


class _Groups:
    """Equivalence classes of group numbers, each with a leader."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def leader(self, group: int) -> int:
        """Returns the leader of the class of a group; a new group is its own leader."""
        while (above := self._above.setdefault(group, group)) != group:
            self._above[group] = self._above[above]
            group = above
        return group

    def merge(self, group: int, other: int) -> None:
        """Merges the classes of two groups; the leader of the first class leads the merged one."""
        leader = self.leader(group)
        self._above[self.leader(other)] = leader

    def numbered(self) -> dict[int, int]:
        """Returns consecutive numbers from 0 for the leaders, in the order in which the groups were first seen."""
        leaders = [group for group, above in self._above.items() if group == above]
        return {group: number for number, group in enumerate(leaders)}
