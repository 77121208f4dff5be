# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that are known to have no sharding rule, and why."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding import OpShardingRule

_reasons: dict[str, str] = {}


def without_rule(*names: str, because: str) -> None:
    """Says that ops, or whole dialects (`"shape.*"`), have no sharding rule; `because` is a clause for people."""
    sharding_rule(*names)(_none)
    for name in names:
        _reasons[name] = because


def reason_without_rule(name: str) -> str | None:
    """Why ops of this name have no rule; None where nothing is known of them."""
    return _reasons.get(name) or _reasons.get(f"{name.partition('.')[0]}.*")


def _none(op: Any, options: RuleOptions) -> OpShardingRule | None:
    return None
