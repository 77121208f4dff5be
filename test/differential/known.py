# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The differences that are mistakes or accidents of Shardy itself, each with a function that recognizes exactly it."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby

from differential.compare import Comparison, Difference
from differential.stages import REMOVAL_OF_DEAD_CODE, pipeline

_PIPELINES = ("sdy-import-pipeline", "sdy-propagation-pipeline")
_PROPAGATION = "sdy-user-priority-propagate"
_SPLITTER = "sdy-constant-or-scalar-splitter"
_GROUP = "sdy.sharding_group "
Recogniser = Callable[[Difference, Comparison], bool]

# A rule that is not from the user, on an operation in the text.
_FOUND_RULE = re.compile(r" ?\{sdy\.sharding_rule = #sdy\.op_sharding_rule<(?:(?!custom)[^{}]|\{[^{}]*\})*>\}")
# The unreduced axes in the sharding of a tensor.
_UNREDUCED = re.compile(r", unreduced=\{[^}]*\}")
_NAME = re.compile(r"%[\w:#]+")
_DEFINITION = re.compile(r"(?P<name>%\w+)(?::\d+)? = (?P<op>[\w.]+)(?: \{[^}]*\})? (?P<operand>%\w+)?")
# Ops that change the sharding of a tensor.
_CONVERSIONS = ("sdy.reshard", "sdy.all_reduce", "sdy.replicated_to_unreduced")
# Ops that become a reshard.
_RESHARDS = re.compile(r" = sdy\.(reshard|sharding_constraint) ")
# The error when Shardy aborts.
_ABORT = "aborted"


def _is_explained_on(text: str | None, difference: Difference, comparison: Comparison) -> bool:
    """Returns True if both sides have the same output for another text, or differ by a known mistake."""
    if text is None or text == difference.before:
        return False
    again = comparison.difference(difference.stage, difference.name, text)[1]
    return again is None or mistake_of_shardy(again, comparison) is not None


def aborts_on_dead_code(difference: Difference, comparison: Comparison) -> bool:
    """Shardy's driver erases dead operations to which the user priorities still point, and aborts if their memory has
    been reused. It does not abort without dead code."""
    if difference.shardy.error != _ABORT:
        return False
    live = comparison.shardy.run(difference.before, pipeline(REMOVAL_OF_DEAD_CODE)).text
    return _is_explained_on(live, difference, comparison)


def aborts_on_partial_results(difference: Difference, comparison: Comparison) -> bool:
    """Shardy aborts if it inserts explicit reshards and a result of an operation is unreduced along other axes than the
    first result. It does not abort if no result is unreduced."""
    if difference.shardy.error != _ABORT or not difference.name.startswith(_PIPELINES[1]):
        return False
    lines = difference.before.splitlines(keepends=True)
    whole = [_UNREDUCED.sub("", line) if "sdy.sharding_per_value" in line else line for line in lines]
    return _is_explained_on("".join(whole), difference, comparison)


def aborts_on_exchanged_partial_axes(difference: Difference, comparison: Comparison) -> bool:
    """Shardy aborts at a reshard from a value that is unreduced along some axes to one that is unreduced along others
    and not along all of the former: it does not insert an all-reduce before, as it does for other operations. It does
    not abort if reshards have no unreduced axes."""
    if difference.shardy.error != _ABORT or not difference.name.startswith(_PIPELINES[1]):
        return False
    lines = difference.before.splitlines(keepends=True)
    whole = [_UNREDUCED.sub("", line) if _RESHARDS.search(line) else line for line in lines]
    return _is_explained_on("".join(whole), difference, comparison)


def aborts_on_returned_arguments(difference: Difference, comparison: Comparison) -> bool:
    """If a function returns an argument and is called with its own result, Shardy searches endlessly for the users of
    the argument. It does not if functions have data-flow edges, which it then finds instead."""
    if difference.shardy.error != _ABORT or "propagate" not in difference.name:
        return False
    if " call @" not in difference.before or "sdy.func_data_flow_edge" in difference.before:
        return False
    edged = comparison.shardy.run(difference.before, pipeline("sdy-add-func-data-flow-edges")).text
    return _is_explained_on(edged, difference, comparison)


def aborts_on_groups_that_meet(difference: Difference, comparison: Comparison) -> bool:
    """Shardy aborts if a value is in several sharding groups. It does not abort if these are merged, as by its own
    import."""
    if difference.shardy.error != _ABORT or "propagate" not in difference.name:
        return False
    imported = comparison.shardy.run(difference.before, pipeline("sdy-sharding-group-import")).text
    return _is_explained_on(imported, difference, comparison)


def adds_edges_twice(difference: Difference, comparison: Comparison) -> bool:
    """When Shardy imports calls, it adds data-flow edges to all named computations, including those that already have
    them, and its verifier then refuses an edge on an edge."""
    message = "expected input of sdy.data_flow_edge to not be defined by an SdyDialect op"
    return message in difference.shardy.error and "sdy.named_computation" in difference.before


def leaves_rules_on_constraints(difference: Difference, comparison: Comparison) -> bool:
    """Shardy leaves the rule that it looks up for its debugging output on each constraint that it applies."""
    if not difference.name.startswith(("sdy-apply-sharding-constraints", *_PIPELINES)):
        return False
    theirs = [
        _FOUND_RULE.sub("", line) if "sdy.sharding_constraint" in line else line for line in difference.shardy.lines
    ]
    return theirs == difference.here.lines


def visits_dead_code(difference: Difference, comparison: Comparison) -> bool:
    """Shardy's driver propagates through an operation before it visits the operation's users, finds them unused, and
    erases both. For the module without dead code it has the same output as this project for that module or for the
    original one, or differs by another mistake; dead code changes nothing in this project."""
    if "propaga" not in difference.name:
        return False
    live = comparison.shardy.run(difference.before, pipeline(REMOVAL_OF_DEAD_CODE)).text
    if live is None:
        return False
    theirs, again = comparison.difference(difference.stage, difference.name, live)
    if again is None or theirs.lines == difference.here.lines:
        return True
    matters_there = theirs.lines != difference.shardy.lines
    matters_here = again.here.lines != difference.here.lines
    return matters_there and not matters_here and mistake_of_shardy(again, comparison) is not None


def allows_lost_reductions(difference: Difference, comparison: Comparison) -> bool:
    """The Shardy in jaxlib does not yet verify in this pipeline that unreduced axes are reduced; later ones do."""
    return (
        difference.name.startswith("sdy-propagation-pipeline")
        and difference.shardy.text is not None
        and "unreduced" in difference.here.error
        and "unreduced=" in difference.before
    )


def ignores_unreduced_results(difference: Difference, comparison: Comparison) -> bool:
    """Unlike later versions, the Shardy in jaxlib does not reshard the result of a call if it and the function's result
    are replicated and differ only in unreduced axes: the output is the same if the call has no unreduced axes."""
    if not difference.name.startswith(("sdy-insert-func-call-reshards", *_PIPELINES)):
        return False
    calls = [
        _UNREDUCED.sub("", line) if " call @" in line else line for line in difference.before.splitlines(keepends=True)
    ]
    sides = (comparison.shardy, comparison.here)
    return all(one.run("".join(calls), pipeline(difference.name)).lines == difference.shardy.lines for one in sides)


def declares_no_partial_results(difference: Difference, comparison: Comparison) -> bool:
    """As above, if only propagation finds that a result is unreduced, or if function and caller differ in that: this
    project reduces the result, or makes it unreduced, directly after the call."""
    if not difference.name.startswith(_PIPELINES[1]) or difference.shardy.text is None:
        return False
    ours, theirs = (_without_conversions_of_calls(side.lines) for side in (difference.here, difference.shardy))
    return ours == theirs and len(ours) < len(difference.here.lines)


def _without_conversions_of_calls(lines: list[str]) -> list[str]:
    """Returns the lines without names, and without the ops that change the sharding of the result of a call."""
    kept: list[str] = []
    converted: set[str] = set()
    for line in lines:
        defined = _DEFINITION.match(line)
        if line.startswith("func.func"):
            converted.clear()
        if defined and defined["op"] == "call":
            converted.add(defined["name"])
        elif defined and defined["op"] in _CONVERSIONS and defined["operand"] in converted:
            converted.add(defined["name"])
            continue
        kept.append(_NAME.sub("%", line))
    return kept


def takes_manual_axes(difference: Difference, comparison: Comparison) -> bool:
    """Shardy shards open results of a manual computation along its manual axes, which their types do not allow, if the
    computation has not been cleaned up. For a module that has been cleaned up, without dead code, it has the same
    output as this project, or, if its verifier has found the error, differs by another mistake."""
    if "propagate" not in difference.name or "sdy.manual_computation" not in difference.before:
        return False
    passes = f"builtin.module(sdy-manual-axes-cleanup,{REMOVAL_OF_DEAD_CODE})"
    clean = comparison.shardy.run(difference.before, passes).text
    if clean is None or clean == difference.before:
        return False
    if "manual axes" in difference.shardy.error:
        return _is_explained_on(clean, difference, comparison)
    theirs, ours = (one.run(clean, pipeline(difference.name)) for one in (comparison.shardy, comparison.here))
    return theirs.text is not None and theirs.lines == ours.lines


def stops_early(difference: Difference, comparison: Comparison) -> bool:
    """Shardy does not revisit everything that a change affects: it looks for the edge of a block argument at the
    operand, and misses the users of a block argument whose sharding is stored at another value. When its own pass
    continues from its result, it either adds nothing to the result of this project or has the same output for both."""
    if "propagate" not in difference.name:
        return False
    again = [
        comparison.shardy.run(one.text, pipeline(difference.name)).lines
        for one in (difference.shardy, difference.here)
        if one.text is not None
    ]
    if len(again) < 2 or again[0] == difference.shardy.lines:
        return False
    return again[1] in (difference.here.lines, again[0])


def forgets_arguments_without_edges(difference: Difference, comparison: Comparison) -> bool:
    """In a module without edges, Shardy does not revisit the users of a loop's argument whose sharding is stored at the
    loop's result, so that another axis is propagated first. With edges it has the same output as this project."""
    if "propagate" not in difference.name or "stablehlo.while" not in difference.before:
        return False
    if "sdy.data_flow_edge" in difference.before:
        return False
    edged = comparison.shardy.run(difference.before, pipeline("sdy-add-data-flow-edges")).text
    return _is_explained_on(edged, difference, comparison)


def comes_back_by_chance(difference: Difference, comparison: Comparison) -> bool:
    """An operation with a repeated operand is not revisited after it changes, in Shardy or in this project. In a module
    without edges Shardy revisits the users of a call when the function changes, and only by that finds more."""
    if "propagate" not in difference.name or difference.here.text is None:
        return False
    if " call @" not in difference.before or "data_flow_edge" in difference.before:
        return False
    return comparison.shardy.run(difference.here.text, pipeline(difference.name)).lines == difference.shardy.lines


def loses_members_of_groups(difference: Difference, comparison: Comparison) -> bool:
    """Shardy copies a constant call for each use of a result, with only that result's memberships of sharding groups,
    and erases the call with those of the other results. If this happens, its pipelines have the same output as this
    project for the module without groups."""
    if not difference.name.startswith((_SPLITTER, *_PIPELINES)):
        return False
    if all(re.match(r"\+ sdy\.sharding_group %\d+#\d+ ", line) for line in difference.lines()):
        return True
    if difference.name == _SPLITTER or _GROUP not in difference.before:
        return False
    lost = comparison.difference(difference.stage, _SPLITTER, difference.before)[1]
    if lost is None or not loses_members_of_groups(lost, comparison):
        return False
    lines = difference.before.splitlines(keepends=True)
    return _is_explained_on("".join(line for line in lines if _GROUP not in line), difference, comparison)


def reorders_memberships(difference: Difference, comparison: Comparison) -> bool:
    """Shardy gives a copy of a constant the memberships of sharding groups in the order of the uses in memory, which is
    the reverse of the order in the text. This has no effect."""
    if not difference.name.startswith((_SPLITTER, *_PIPELINES)):
        return False
    theirs, ours = (_with_sorted_memberships(side.lines) for side in (difference.shardy, difference.here))
    return theirs == ours and difference.here.text is not None


def _with_sorted_memberships(lines: list[str]) -> list[str]:
    """Returns the lines with runs of adjacent memberships of sharding groups sorted."""
    runs = groupby(lines, key=lambda line: line if not line.startswith(_GROUP) else None)
    return [line for key, run in runs for line in (sorted(run) if key is None else [key for _ in run])]


def follows_order_of_uses(difference: Difference, comparison: Comparison) -> bool:
    """Shardy's driver visits the users of a value in their order in memory, which passes reverse and text does not
    preserve. If the module is written and parsed again before, it propagates differently, and in the same way as this
    project."""
    if not difference.name.startswith(_PIPELINES[1]):
        return False
    imported = difference.name.replace(*reversed(_PIPELINES))
    before = f"{imported},sdy-add-func-data-flow-edges,sdy-pre-order-funcs"
    read = comparison.shardy.run(difference.before, f"builtin.module({before})").text
    if read is None:
        return False
    at_once = comparison.shardy.run(difference.before, f"builtin.module({before},{_PROPAGATION})")
    theirs, again = comparison.difference(difference.stage, _PROPAGATION, read)
    return again is None and theirs.lines != at_once.lines


RECOGNISERS: tuple[Recogniser, ...] = (
    aborts_on_partial_results,
    aborts_on_exchanged_partial_axes,
    aborts_on_returned_arguments,
    aborts_on_groups_that_meet,
    aborts_on_dead_code,
    adds_edges_twice,
    leaves_rules_on_constraints,
    loses_members_of_groups,
    reorders_memberships,
    visits_dead_code,
    allows_lost_reductions,
    ignores_unreduced_results,
    declares_no_partial_results,
    takes_manual_axes,
    stops_early,
    forgets_arguments_without_edges,
    comes_back_by_chance,
    follows_order_of_uses,
)


def mistake_of_shardy(difference: Difference, comparison: Comparison) -> str | None:
    """Returns the name of the mistake that explains a difference, or None."""
    return next((one.__name__ for one in RECOGNISERS if one(difference, comparison)), None)
