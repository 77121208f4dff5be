# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An explanation as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlir_shard.explain.places import Place
from mlir_shard.explain.values import Chain, ExplainedCollective, Link, Lost, Tensor
from mlir_shard.transforms.communication.communication_report import axes_text, duration

if TYPE_CHECKING:
    from mlir_shard.explain.explanation import Explanation
    from mlir_shard.explain.suggestions import Suggestion
    from mlir_shard.explain.what_if import Comparison

# The number of steps that are shown at each end of a longer chain.
_ENDS = 6
_MOST_REPLICATED = 5


def tensor_text(explanation: Explanation, tensor: Tensor) -> str:
    """Returns the origins of the axes of a tensor, the axes that it lost, and the collectives that move it."""
    return "\n".join(_tensor_lines(explanation, tensor))


def _tensor_lines(explanation: Explanation, tensor: Tensor) -> Iterator[str]:
    yield f"{heading(tensor)}"
    yield f"  {_sharding(tensor)}"
    for chain in explanation.chains(tensor):
        yield from _chain_lines(explanation, chain)
    for lost in explanation.lost(tensor):
        yield from _lost_lines(lost)
    for collective in explanation.collectives:
        for cause in collective.causes:
            if cause.tensor == tensor.number:
                yield f"  moved by {collective_title(collective)}: {cause.text}"
                if cause.alternative:
                    yield f"    instead: {cause.alternative}"


def heading(tensor: Tensor) -> str:
    """Returns the name, kind, type and place of a tensor in a line."""
    numbered = tensor.op in ("argument", "result")
    name = "" if numbered and tensor.name == f"{tensor.op} {tensor.index}" else f"{tensor.name}: "
    kind = f"{tensor.op} {tensor.index} of @{tensor.function}" if numbered else f"'{tensor.op}' in @{tensor.function}"
    return f"{name}{kind}, {tensor.type}{_at(tensor.place, tensor.name, ', at ')}"


def _sharding(tensor: Tensor) -> str:
    sharding = tensor.sharding
    if sharding is None or sharding.is_fully_replicated:
        return "replicated: no dimension is sharded"
    return f"sharded as {sharding.close()}"


def sharding_text(tensor: Tensor) -> str:
    """Returns the axes of each dimension, `[{"data"}, {}]`, or `replicated`."""
    sharding = tensor.sharding
    if sharding is None or sharding.is_fully_replicated:
        return "replicated"
    return f"[{', '.join(str(dim.closed()) for dim in sharding.dim_shardings)}]"


def _chain_lines(explanation: Explanation, chain: Chain) -> Iterator[str]:
    given = chain.annotation
    priority = f", priority {given.priority}" if given.priority else ""
    sharding = f" {given.sharding}" if given.sharding is not None else ""
    yield f"  dimension {chain.dim} on {chain.axis}:"
    yield f"    from {given.text}{_at(given.place, given.text)}:{sharding}{priority}"
    links = chain.links
    shown: Sequence[Link | None] = links
    if len(links) > 2 * _ENDS:
        shown = (*links[:_ENDS], None, *links[-_ENDS:])
    for link in shown:
        if link is None:
            yield f"    ... {len(links) - 2 * _ENDS} more steps"
            continue
        factor = f", factor {link.factor}" if link.factor else ""
        source, target = explanation.tensor(link.source).name, explanation.tensor(link.target).name
        ends = f"{link.source_role} {source} to {link.target_role} {target}"
        yield f"    → {link.op} at {_short(link.place, given.place)}{factor}: {ends}"


def _at(place: Place, name: str, words: str = " at ") -> str:
    """Returns the place to print after a name; empty if the place only repeats the name."""
    is_named = not place.file and place.called_from is None and place.name and name.endswith(place.name)
    return "" if is_named else f"{words}{place}"


def _short(place: Place, other: Place) -> str:
    """Returns a place as text, without the file if it is that of the other place."""
    place = place.in_text
    if place.file and place.file == other.in_text.file and not place.called_from:
        name = f' "{place.name}"' if place.name else ""
        return f"{place.line}:{place.column}{name}"
    return str(place)


def _lost_lines(lost: Lost) -> Iterator[str]:
    yield f"  dimension {lost.dim} not on {lost.axis} ({lost.reason.value}):"
    yield f"    {lost.text}"
    yield f"    to change it: {lost.remedy}"


def collective_title(one: ExplainedCollective) -> str:
    """Returns the kind, axes, bytes and time of a collective."""
    communication = one.collective.communication
    axes = axes_text(communication.axes)
    size = f"{communication.bytes_received:,} B"
    return f"{communication.kind.value} on {axes} ({size}, {duration(one.collective.time)})"


@dataclass(frozen=True, slots=True)
class CollectiveGroup:
    """Collectives with equal causes except for places, such as those of repeated layers.

    Attributes:
        first: the first collective; count: their number; bytes, time: the sums over all of them.
    """

    first: ExplainedCollective
    count: int
    bytes: int
    time: float


def grouped(collectives: Iterable[ExplainedCollective]) -> tuple[CollectiveGroup, ...]:
    """Returns collectives in groups of equal kinds and causes, the most expensive first."""
    groups: dict[object, list[ExplainedCollective]] = {}
    for one in collectives:
        communication = one.collective.communication
        causes = tuple(dict.fromkeys((cause.kind, cause.op) for cause in one.causes))
        groups.setdefault((communication.kind, communication.axes, causes), []).append(one)
    found = [
        CollectiveGroup(
            members[0],
            len(members),
            round(sum(one.collective.communication.bytes_received for one in members)),
            sum(one.collective.time for one in members),
        )
        for members in groups.values()
    ]
    return tuple(sorted(found, key=lambda group: (-group.time, -group.bytes)))


def program_text(explanation: Explanation) -> str:
    """Returns the shardings of arguments and results, the causes of communication, and replicated tensors."""
    return "\n".join(_program_lines(explanation))


def _program_lines(explanation: Explanation) -> Iterator[str]:
    tensors = explanation.tensors
    ends = [one for one in tensors if one.op in ("argument", "result")]
    yield "Arguments and results"
    for tensor in ends:
        origins = {chain.annotation.text for chain in explanation.chains(tensor)}
        own = {tensor.name, f"argument {tensor.name}", f"result {tensor.index} of @{tensor.function}"}
        via = ", ".join(sorted(origins - own))
        yield f"  {_brief(tensor)}{f'  from {via}' if via else ''}"
    yield ""
    report = explanation.report
    count = len(report.collectives)
    total = f"{report.bytes_received:,} B for a device, {duration(report.time)}"
    yield f"Communication: {count} collective{'' if count == 1 else 's'}, {total}"
    for group in grouped(explanation.collectives):
        communication = group.first.collective.communication
        times = f"{group.count} x " if group.count > 1 else ""
        amount = f"{group.bytes:,} B, {duration(group.time)}"
        yield f"  {times}{communication.kind.value} on {axes_text(communication.axes)}: {amount}"
        for cause in group.first.causes[:_MOST_REPLICATED]:
            yield f"    {cause.kind.value}: {cause.text}"
            if cause.alternative:
                yield f"      instead: {cause.alternative}"
        more = len(group.first.causes) - _MOST_REPLICATED
        if more > 0:
            yield f"    and for {more} other ops"
    replicated = largest_replicated(explanation)
    if replicated:
        yield ""
        yield "Largest tensors that are replicated and could be sharded"
        for tensor in replicated:
            lost = explanation.lost(tensor)[0]
            yield f"  {_brief(tensor)}, {tensor.bytes:,} B"
            yield f"    {lost.text}"
            yield f"    to change it: {lost.remedy}"


def largest_replicated(explanation: Explanation, most: int = _MOST_REPLICATED) -> tuple[Tensor, ...]:
    """Returns the largest replicated tensors that lost axes, one for each op and type."""
    found: dict[object, Tensor] = {}
    plain = [one for one in explanation.tensors if one.sharding is None or one.sharding.is_fully_replicated]
    for tensor in sorted(plain, key=lambda one: -one.bytes):
        key = (tensor.op, tensor.type)
        if key not in found and explanation.lost(tensor):
            found[key] = tensor
        if len(found) == most:
            break
    return tuple(found.values())


def _brief(tensor: Tensor) -> str:
    dims = "" if tensor.sharding is None else f" {_dims(tensor)}"
    name = tensor.name if tensor.op != "result" else f"result {tensor.index}"
    return f"{name} {tensor.type}{dims or ' replicated'}"


def _dims(tensor: Tensor) -> str:
    sharding = tensor.sharding
    assert sharding is not None
    return f"[{', '.join(str(dim.closed()) for dim in sharding.dim_shardings)}]"


_MOST_CHANGED = 20


def comparison_text(comparison: Comparison) -> str:
    """Returns the effects of another annotation on bytes, time, collectives and shardings."""
    return "\n".join(_comparison_lines(comparison))


def _comparison_lines(comparison: Comparison) -> Iterator[str]:
    before, after = comparison.before.report, comparison.after.report
    yield "What if"
    yield f"  a device receives {_change(before.bytes_received, after.bytes_received, 'B')}"
    yield f"  predicted time {duration(before.time)} → {duration(after.time)}"
    yield f"  collectives {_change(len(before.collectives), len(after.collectives))}"
    changed = comparison.changed_shardings()
    yield f"  shardings of {len(changed)} tensor{'' if len(changed) == 1 else 's'} change"
    for one, other in changed[:_MOST_CHANGED]:
        yield f"    {one.name}{_at(one.place, one.name)}: {_spelled(one)} → {_spelled(other)}"
    if len(changed) > _MOST_CHANGED:
        yield f"    and {len(changed) - _MOST_CHANGED} more"


def _spelled(tensor: Tensor) -> str:
    return "replicated" if tensor.sharding is None else _dims(tensor)


def _change(before: int, after: int, unit: str = "") -> str:
    unit = unit and f" {unit}"
    percent = f" ({(after - before) / before:+.1%})" if before and after != before else ""
    return f"{before:,}{unit} → {after:,}{unit}{percent}"


def suggestions_text(suggestions: Sequence[Suggestion]) -> str:
    """Returns annotations that save bytes as text, the best first."""
    if not suggestions:
        return "No single annotation that was tried saves bytes"
    lines = ["Annotations that save bytes, each tried alone"]
    for one in suggestions:
        saved = _change(one.bytes_before, one.bytes, "B")
        lines.append(f"  {one.change.query}: {one.change.sharding}")
        lines.append(f"    {one.tensor.name}{_at(one.tensor.place, one.tensor.name)}: {saved}, {duration(one.time)}")
    return "\n".join(lines)
