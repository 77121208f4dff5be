# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `canonicalize`: the host's, and the patterns of sdy."""

from __future__ import annotations

from typing import Any, Literal

from mlir_shard.host import rewrite
from mlir_shard.passes import host_passes
from mlir_shard.passes.options import format_value, option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.canonicalize import (
    collective_chains,
    collectives,
    manual_computation,
    reduce_scatter,
    reshard,
)
from mlir_shard.transforms.canonicalize.pattern import Pattern, apply_greedily
from mlir_shard.transforms.dead_code import erase_unused_of_sdy
from mlir_shard.transforms.operations import first_names

PATTERNS: tuple[Pattern, ...] = (
    *manual_computation.PATTERNS,
    *reshard.PATTERNS,
    *collectives.PATTERNS,
    *reduce_scatter.PATTERNS,
    *collective_chains.PATTERNS,
)


@register
class Canonicalize(Pass):
    """Folds, removes dead code and applies the canonicalization patterns of every dialect, those of sdy too.

    The host's pass of this name knows no patterns of a dialect defined at run time. So it runs in turn with the
    patterns of sdy until those change nothing more. Patterns of sdy go by the names and labels in the files beside
    this one; `disable-patterns` and `enable-patterns` take them and the host's.
    """

    name = "canonicalize"
    summary = "Canonicalize operations, those of sdy included"

    top_down: bool = option(True, "Seed the worklist in general top-down order")
    region_simplify: Literal["disabled", "normal", "aggressive"] = option(
        "normal", "Perform control flow optimizations to the region tree"
    )
    max_iterations: int = option(10, "Max. iterations between applying patterns / simplifying regions")
    max_num_rewrites: int = option(-1, "Max. number of pattern rewrites within an iteration")
    test_convergence: bool = option(False, "Fail on non-convergence, to detect patterns that undo each other")
    cse_between_iterations: bool = option(False, "Run CSE between the iterations of the host's patterns")
    disable_patterns: tuple[str, ...] = option((), "Labels of patterns that should be filtered out")
    enable_patterns: tuple[str, ...] = option((), "Labels of patterns that should be used, and no others")

    def run(self, op: Any) -> None:
        config = self._config()
        self._run_host(op)
        while (patterns := self._patterns_for(op)) and apply_greedily(op, patterns, config):
            self._run_host(op)

    def _patterns_for(self, op: Any) -> list[Pattern]:
        """The enabled patterns on operations that there are."""
        names = first_names(op)
        return [pattern for pattern in PATTERNS if pattern.root in names and self._is_enabled(pattern)]

    def _is_enabled(self, pattern: Pattern) -> bool:
        names = {pattern.name, pattern.label}
        return names.isdisjoint(self.disable_patterns) and not (
            self.enable_patterns and names.isdisjoint(self.enable_patterns)
        )

    def _config(self) -> Any:
        config = rewrite.GreedyRewriteConfig()
        config.use_top_down_traversal = self.top_down
        config.max_iterations = self.max_iterations
        config.max_num_rewrites = self.max_num_rewrites
        config.region_simplification_level = getattr(rewrite.GreedySimplifyRegionLevel, self.region_simplify.upper())
        return config

    def _run_host(self, op: Any) -> None:
        given = [(one.name, getattr(self, one.field), one.default) for one in self.options()]
        options = " ".join(f"{name}={format_value(value)}" for name, value, default in given if value != default)
        pipeline = f"{op.name}(canonicalize{{{options}}})"
        host_passes.run(pipeline, op.operation, verify_each=False)
        while erase_unused_of_sdy(op):
            host_passes.run(pipeline, op.operation, verify_each=False)
