# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `canonicalize`: the host's patterns and those of this folder; here, those of manual computations."""

from __future__ import annotations

from math import prod
from typing import Any, Literal

from mlir_shard.dialects import sdy
from mlir_shard.dialects.type_runs import type_run_attributes
from mlir_shard.host import ir, rewrite
from mlir_shard.ir import strided_inserts
from mlir_shard.ir.editing import (
    Contents,
    Purity,
    contents,
    first_operations,
    hoist_constants,
    inline_region,
    operations_named,
)
from mlir_shard.ir.patterns import Pattern, apply_greedily, matching
from mlir_shard.ir.values import users
from mlir_shard.passes import analyses, host_passes
from mlir_shard.passes.options import format_value, option
from mlir_shard.passes.registry import Changes, Pass, register
from mlir_shard.sharding import ManualAxes, TensorShardingPerValue
from mlir_shard.sharding.verify import common_mesh
from mlir_shard.transforms.canonicalize import collectives, reshard, slices, static_shapes, unused_results
from mlir_shard.transforms.canonicalize.purity import ISOLATED, PURITIES
from mlir_shard.transforms.dead_code import erase_dead_code, erase_unused_of_sdy

LABEL = "sdy-manual-computation"


def _value(op: Any, name: str) -> Any:
    return op.attributes[name].value


def unused_inputs(op: Any, rewriter: Any) -> bool:
    """Removes the inputs that the body does not use, with their shardings."""
    body = op.regions[0].blocks[0]
    used = [bool(list(argument.uses)) for argument in body.arguments]
    if all(used):
        return False
    shardings: TensorShardingPerValue = _value(op, "in_shardings")
    kept = tuple(sharding for sharding, keep in zip(shardings, used, strict=True) if keep)
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["in_shardings"] = sdy.attribute(TensorShardingPerValue(kept), op.context)
    operands = [operand for operand, keep in zip(op.operands, used, strict=True) if keep]
    results = [result.type for result in op.results]
    smaller = ir.Operation.create(
        op.name,
        results=results,
        operands=operands,
        attributes=attributes | type_run_attributes(operands, results, op.context),
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    body.append_to(smaller.regions[0])
    for index in reversed([index for index, keep in enumerate(used) if not keep]):
        body.erase_argument(index)
    rewriter.replace_op(op, smaller)
    return True


def empty(op: Any, rewriter: Any) -> bool:
    """Erases a manual computation without operands, results or ops other than its terminator."""
    if len(op.operands) or len(op.results) or len(op.regions[0].blocks[0].operations) > 1:
        return False
    rewriter.erase_op(op)
    return True


def trivial_manual_axes(op: Any, rewriter: Any) -> bool:
    """Inlines the body of a manual computation that has no manual axes, or only manual axes of size one."""
    manual: ManualAxes = _value(op, "manual_axes")
    if manual.value:
        shardings = (*_value(op, "in_shardings").shardings, *_value(op, "out_shardings").shardings)
        mesh = common_mesh(sdy.mesh_of(sharding, op) for sharding in shardings)
        if mesh is None or prod(mesh.axis_size(axis) for axis in manual.value) != 1:
            return False
    body = op.regions[0].blocks[0]
    # A data-flow edge has to stay the only user of its owner.
    if any(user.name == "sdy.data_flow_edge" for value in (*body.arguments, *op.results) for user in users(value)):
        return False
    rewriter.replace_op(op, inline_region(op.regions[0], op.operands, op))
    return True


MANUAL_COMPUTATION_PATTERNS = (
    Pattern("manual-computation-unused-inputs", LABEL, "sdy.manual_computation", unused_inputs),
    Pattern("manual-computation-empty", LABEL, "sdy.manual_computation", empty),
    Pattern("manual-computation-trivial", LABEL, "sdy.manual_computation", trivial_manual_axes),
)
PATTERNS: tuple[Pattern, ...] = (
    *MANUAL_COMPUTATION_PATTERNS,
    *reshard.PATTERNS,
    *collectives.PATTERNS,
    *collectives.REDUCE_SCATTER_PATTERNS,
    *collectives.CHAIN_PATTERNS,
    *slices.PATTERNS,
    *static_shapes.PATTERNS,
    *unused_results.PATTERNS,
)
_NAMES = frozenset(name for pattern in PATTERNS for name in (pattern.name, pattern.label))
# The operations in these dialects that the host folds or has patterns for.
_FOLDED = frozenset(("chlo.constant_like", "stablehlo.case"))
# The host also moves constants, and constant operands of commutative operations, unless only our patterns are enabled.
_CONSTANTS = ("chlo.constant", "stablehlo.constant")
_DIALECTS = ("chlo", "sdy", "stablehlo")
_FUNCTIONS = frozenset(("func.call", "func.func", "func.return", "builtin.module"))
_RESHARD_PATTERNS = frozenset((*reshard.EXACT, reshard.BACK))


def _is_never_folded(name: str) -> bool:
    return name in _FUNCTIONS or (name.partition(".")[0] in _DIALECTS and name not in _FOLDED)


@register
class Canonicalize(Pass):
    """Folds, removes dead code and applies the canonicalization patterns of every dialect, including sdy.

    The host's pass of this name has no patterns for dialects defined at run time. Therefore it alternates with the
    patterns of this project, for sdy and some StableHLO ops, until these make no more changes. These patterns have the
    names and labels given in the files of this folder; `disable-patterns` and `enable-patterns` accept them and the
    host's. If only patterns of this project are enabled, the host's pass does not run and nothing is folded, because it
    merges equal constants, whose shardings may differ.
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

    def run(self, op: Any) -> bool | Changes:
        held = analyses.held(op)
        if self._matches_nothing(op, held):
            is_smaller = erase_dead_code(op, held)
            return Changes() if is_smaller else False
        if self._moves_constants_alone(op, held):
            is_moved = hoist_constants(op, _CONSTANTS, ISOLATED)
            is_smaller = erase_dead_code(op, held)
            # Only one constant of each value is left, so these are few.
            moved = operations_named(op, *_CONSTANTS) if is_moved else ()
            return Changes(moved=moved) if is_moved or is_smaller else False
        if self._simplifies_reshards_alone(held):
            is_changed = reshard.simplify_directly(op, self._patterns_for(held))
            is_smaller = erase_dead_code(op, held)
            return is_changed or (Changes() if is_smaller else False)
        return self._rewrite(op, held) or Changes()

    def _simplifies_reshards_alone(self, held: Contents) -> bool:
        """Returns whether `reshard.simplify_directly` applies every enabled pattern."""
        if not (self._has_default_limits() and self._is_ours_alone()) or held.has_branches:
            return False
        return _RESHARD_PATTERNS.issuperset(one.name for one in self._patterns_for(held))

    def _has_default_limits(self) -> bool:
        return self.max_num_rewrites == -1 and self.max_iterations == 10 and not self.test_convergence

    def _is_ours_alone(self) -> bool:
        return bool(self.enable_patterns) and _NAMES.issuperset(self.enable_patterns)

    def _matches_nothing(self, op: Any, held: Contents) -> bool:
        """Returns whether no pattern or fold matches, the host's included: only unused operations are erased then."""
        if held.has_branches or self.cse_between_iterations:
            return False
        if self._is_ours_alone():
            return not self._may_rewrite(op, held)
        return held.operations.isdisjoint(_CONSTANTS) and self._folds_nothing(op, held)

    def _moves_constants_alone(self, op: Any, held: Contents) -> bool:
        """Returns whether no pattern or fold matches, and the driver only moves and merges constants."""
        if held.has_branches or self.cse_between_iterations or not self._has_default_limits():
            return False
        if self._is_ours_alone() or not self._folds_nothing(op, held):
            return False
        purities = PURITIES.of_names(held.operations, lambda: first_operations(op))
        return purities is not None and Purity.COMMUTATIVE not in purities.values()

    def _folds_nothing(self, op: Any, held: Contents) -> bool:
        return all(map(_is_never_folded, held.operations)) and not self._may_rewrite(op, held)

    def _may_rewrite(self, op: Any, held: Contents) -> bool:
        """Returns whether an enabled pattern of ours may match an operation below `op`."""
        patterns = self._patterns_for(held)
        return not all(one.may_match for one in patterns) or bool(matching(op, patterns))

    def _rewrite(self, op: Any, held: Contents) -> bool:
        """Runs the greedy drivers. Returns False if they only erased dead operations or changed nothing."""
        config = self._config(held)
        if self._is_ours_alone():
            config.enable_constant_cse = False
            config.enable_folding = False
            is_changed = apply_greedily(op, self._patterns_for(held), config)
            while erase_unused_of_sdy(op):
                is_changed |= apply_greedily(op, self._patterns_for(contents(op)), config)
            # The driver simplifies regions of several blocks without a pattern.
            return is_changed or held.has_branches
        self._run_host(op, held)
        while (patterns := matching(op, self._patterns_for(held := contents(op)))) and apply_greedily(
            op, patterns, config
        ):
            self._run_host(op, held)
        return True

    def _patterns_for(self, held: Contents) -> list[Pattern]:
        """Returns the enabled patterns that can match operations in `held`."""
        found = [pattern for pattern in PATTERNS if pattern.root in held.operations and self._is_enabled(pattern)]
        return [one for one in found if one.operands is None or not held.operations.isdisjoint(one.operands)]

    def _is_enabled(self, pattern: Pattern) -> bool:
        names = {pattern.name, pattern.label}
        return names.isdisjoint(self.disable_patterns) and not (
            self.enable_patterns and names.isdisjoint(self.enable_patterns)
        )

    def _region_simplify(self, held: Contents) -> str:
        """Returns how regions are simplified. Without branches, the liveness of values adds nothing to the removal of
        unused operations, and takes as long as all else."""
        return self.region_simplify if held.has_branches or self.region_simplify == "aggressive" else "disabled"

    def _config(self, held: Contents) -> Any:
        config = rewrite.GreedyRewriteConfig()
        config.use_top_down_traversal = self.top_down
        config.max_iterations = self.max_iterations
        config.max_num_rewrites = self.max_num_rewrites
        config.region_simplification_level = getattr(
            rewrite.GreedySimplifyRegionLevel, self._region_simplify(held).upper()
        )
        return config

    def _run_host(self, op: Any, held: Contents) -> None:
        strided_inserts.separate(op)
        simplified = {"region_simplify": self._region_simplify(held)}
        given = [(one.name, simplified.get(one.field, getattr(self, one.field)), one.default) for one in self.options()]
        options = " ".join(f"{name}={format_value(value)}" for name, value, default in given if value != default)
        pipeline = f"{op.name}(canonicalize{{{options}}})"
        host_passes.run(pipeline, op.operation, verify_each=False)
        while erase_unused_of_sdy(op):
            host_passes.run(pipeline, op.operation, verify_each=False)
