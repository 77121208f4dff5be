# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of sdy that occur between others."""

from __future__ import annotations

from differential.scope import Scope


def constraint(scope: Scope) -> None:
    if value := scope.pick():
        sharding = scope.sharding(len(value.shape))
        result = scope.define(value.shape)
        # Some constraints have no users: their sharding applies to the other users of the operand.
        seen = scope.chance(0.8)
        scope.add([result], f"sdy.sharding_constraint {value.name} {sharding} : {value.type}", seen=seen)


def reshard(scope: Scope) -> None:
    if value := scope.pick():
        sharding = scope.sharding(len(value.shape))
        scope.add([scope.define(value.shape)], f"sdy.reshard {value.name} {sharding} : {value.type}")


def barrier(scope: Scope) -> None:
    if value := scope.pick():
        direction = scope.random.choice(["NONE", "FORWARD", "BACKWARD"])
        text = f"sdy.propagation_barrier {value.name} allowed_direction={direction} : {value.type}"
        scope.add([scope.define(value.shape)], text)


def group(scope: Scope) -> None:
    """Puts a value into one of the two groups of its type."""
    if value := scope.pick(lambda one: len(one.shape) > 0):
        groups = scope.module.groups
        number = groups.setdefault((value.shape, value.element), 2 * len(groups)) + scope.chance(0.3)
        scope.add([], f"sdy.sharding_group {value.name} group_id={number} : {value.type}")
