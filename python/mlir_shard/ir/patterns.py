# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite patterns on one operation name, applied by the host's greedy driver, or directly if few can match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import rewrite
from mlir_shard.ir.editing import replace_with
from mlir_shard.ir.op_kinds import OpKinds, operations_of_results

Rewrite = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A rewrite of the operations called `root`.

    `apply(op, rewriter)` rewrites through the host's PatternRewriter and returns True, or changes nothing and
    returns False. Options of passes select patterns by `name` and `label`.

    operands: names of operations: the pattern matches only if the first operand is defined by an operation of one of
        these names, or by one that is rewritten to such an operation. None allows any operand.
    may_match: returns whether an operation may match, from its types and attributes, from the operations that define
        its operands, and from whether its results are used; None if any may.
    """

    name: str
    label: str
    root: str
    apply: Rewrite
    operands: tuple[str, ...] | None = None
    may_match: Callable[[Any], bool] | None = None


def matching(root: Any, patterns: Sequence[Pattern]) -> list[Pattern]:
    """Returns the patterns that may match below `root`.

    `may_match` of a pattern is called once for equal operations whose operands have equal definitions and users.
    """
    asked = {one.root for one in patterns if one.may_match is not None}
    representatives = OpKinds(root, *asked, neighbours=True).representatives if asked else ()
    return [
        one
        for one in patterns
        if one.may_match is None or any(op.name == one.root and one.may_match(op) for op in representatives)
    ]


def apply_greedily(op: Any, patterns: Iterable[Pattern], config: Any) -> bool:
    """Applies the patterns below `op` until none matches or the limits of `config` are reached.

    Returns whether any pattern changed the program.
    """
    applied: list[str] = []
    pattern_set = rewrite.RewritePatternSet()
    for pattern in patterns:
        pattern_set.add(pattern.root, _callback(pattern, applied))
    rewrite.apply_patterns_and_fold_greedily(op.operation, pattern_set.freeze(), config)
    return bool(applied)


class _DirectRewriter:
    """The methods of the host's PatternRewriter that patterns call."""

    def replace_op(self, op: Any, new: Any) -> None:
        replace_with(op, new if isinstance(new, list) else new.results)


def apply_directly(op: Any, patterns: Sequence[Pattern]) -> bool:
    """Applies the patterns below `op` until none matches, without the host's driver, which visits each operation.

    Nothing is folded, and only replaced operations are erased. All patterns must have the same root, have `operands`,
    and replace only the operation that they are applied to. Returns whether any pattern changed the program.
    """
    definers = {name for pattern in patterns for name in pattern.operands or ()}
    rewriter = _DirectRewriter()
    is_changed = False
    while patterns:
        candidates = operations_of_results(op, (patterns[0].root,), [*definers])
        rewritten = [one for one in candidates if any(pattern.apply(one, rewriter) for pattern in patterns)]
        if not rewritten:
            break
        is_changed = True
    return is_changed


def _callback(pattern: Pattern, applied: list[str]) -> Callable[[Any, Any], bool]:
    def match_and_rewrite(op: Any, rewriter: Any) -> bool:
        # The host interprets a true result of a callback as a failure to match.
        if not pattern.apply(op.operation, rewriter):
            return True
        applied.append(pattern.name)
        return False

    return match_and_rewrite
