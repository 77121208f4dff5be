# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of ops, found once for all passes of a run: no pass changes what the rule of an op is."""

from __future__ import annotations

from mlir_shard.passes.registry import shared
from mlir_shard.rules import RuleCache, RuleOptions

COMPUTING = RuleOptions(computing=True)
"""For passes that make ops compute: of these rules there are others than for how shardings propagate."""


def rule_cache(options: RuleOptions | None = None) -> RuleCache:
    """The rules that passes of this run have asked for with these options."""
    given = options or RuleOptions()
    return shared((RuleCache, given), lambda: RuleCache(given))
