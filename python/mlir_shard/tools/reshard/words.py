# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Amounts, boxes, devices, placements, moves and the stages of a plan in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mlir_shard.resharding.plan import Plan, PlanStep
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    DirectExchange,
    Move,
    OneDimStep,
    ReduceScatter,
    Together,
)
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef
from mlir_shard.sharding.axes import Axes, add_axes_or_merge
from mlir_shard.sharding.layout import Box

T = TypeVar("T")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SECONDS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def amount(size: int) -> str:
    """Returns a number of bytes as text, exact below 10,000 and with three digits above."""
    if size < 10_000:
        return f"{size} B"
    value, unit = float(size), 0
    while value >= 1024 and unit + 1 < len(_BINARY):
        value, unit = value / 1024, unit + 1
    return f"{value:.{2 - (value >= 10) - (value >= 100)}f} {_BINARY[unit]}"


def amounts(sizes: Sequence[int]) -> str:
    """Returns the amounts of the devices as text: one amount if all are equal, else the least and the most."""
    least, most = min(sizes), max(sizes)
    return amount(most) if least == most else f"{amount(least)} to {amount(most)}"


def duration(seconds: float) -> str:
    """Returns a time as text, with three digits."""
    if seconds == 0:
        return "0 s"
    unit, scale = next(((unit, scale) for unit, scale in _SECONDS if seconds >= scale), _SECONDS[-1])
    return f"{seconds / scale:.3g} {unit}"


def interval(start: int, size: int) -> str:
    """Returns the indices of a dimension as a slice of Python."""
    return f"{start}:{start + size}" if size else "none"


def box_text(box: Box) -> str:
    """Returns a box as a Python subscript of slices, or `nothing` if it is empty."""
    if box.is_empty:
        return "nothing"
    return "[" + ", ".join(map(interval, box.start, box.size)) + "]"


def first_and_last(values: Sequence[T], most: int) -> list[T | None]:
    """Returns all values or, if there are more than `most`, the first ones, None and the last one."""
    return [*values] if len(values) <= most else [*values[: most - 2], None, values[-1]]


def cut(text: str, most: int) -> str:
    """Returns the text, with an ellipsis for its end if it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def devices(ids: Sequence[int], most: int = 8, separator: str = " ") -> str:
    """Returns device numbers as text; if there are more than `most`, the first ones, the last one and their count."""
    shown = separator.join("…" if one is None else str(one) for one in first_and_last(ids, most))
    return shown if len(ids) <= most else f"{shown} ({len(ids)})"


def between_holders(layout: TensorLayout, holders: Sequence[int]) -> str:
    """Returns the separator of the devices that hold a shard: a plus sign if each holds one of its partial values."""
    return "+" if layout.partials > 1 and len(holders) == layout.partials else " "


def axes(refs: Iterable[AxisRef]) -> str:
    """Returns axes in sdy's syntax."""
    return ", ".join(map(str, refs))


def placement(layout: TensorLayout) -> str:
    """Returns the sharding of a layout in sdy's syntax, without the mesh."""
    sharding = layout.sharding
    return str(sharding).removeprefix(f"<{sharding.mesh_text}, ").removesuffix(">")


def move(step: PlanStep) -> str:
    """Returns the description of a step: its collective, axes and dimensions."""
    one = step.move
    if isinstance(one, CollectivePermute):
        return "collective permute"
    if isinstance(one, DirectExchange):
        return "direct exchange"
    if isinstance(one, AllReduce):
        return f"all-reduce ({one.reduction.value}) along {axes(move_axes(step, one))}"
    parts = move_parts(one)
    return f"{move_name(one)} {'; '.join(_about(step, part) for part in parts)}"


def move_name(one: Move) -> str:
    """Returns the name of the collective."""
    return _NAMES[type(move_parts(one)[0])]


def move_parts(one: Move) -> tuple[Move, ...]:
    """Returns the moves that are carried out as one."""
    return one.steps if isinstance(one, Together) else (one,)


def move_axes(step: PlanStep, one: AllReduce | OneDimStep) -> Axes:
    """Returns the mesh axes of a move of a step; sub-axes if the move is along a part of an axis."""
    return add_axes_or_merge((), (step.grid.atoms[axis] for axis in one.axes), step.grid.mesh)


_NAMES: dict[type[Move], str] = {
    AllGather: "all-gather",
    AllReduce: "all-reduce",
    AllSlice: "slice",
    AllToAll: "all-to-all",
    CollectivePermute: "collective permute",
    DirectExchange: "direct exchange",
    ReduceScatter: "reduce-scatter",
}


def _about(step: PlanStep, one: Move) -> str:
    if isinstance(one, AllToAll):
        return f"from dimension {one.source_dim} to {one.target_dim} along {axes(move_axes(step, one))}"
    if isinstance(one, AllGather | AllSlice | ReduceScatter):
        return f"of dimension {one.dim} along {axes(move_axes(step, one))}"
    return ""


@dataclass(frozen=True, slots=True)
class Stage:
    """The layout of the tensor, and the step that led to it; None before the first."""

    heading: str
    layout: TensorLayout
    step: PlanStep | None = None

    @property
    def placement(self) -> str:
        """The sharding in sdy's syntax."""
        return placement(self.layout)


def stages(plan: Plan) -> tuple[Stage, ...]:
    """Returns all stages, in order."""
    steps = (Stage(f"{number}. {move(step)}", step.after, step) for number, step in enumerate(plan.steps, 1))
    return (Stage("Before", plan.source), *steps)


def step_figures(step: PlanStep) -> str:
    """Returns the bytes, memory and time of a step, in a line."""
    if not any(step.bytes_received):
        return f"nothing moves · holds {amount(step.memory)}"
    return (
        f"{amounts(step.bytes_received)} a device, {amount(sum(step.bytes_received))} in all · "
        f"holds {amount(step.memory)} · {duration(step.time)}"
    )


def totals(plan: Plan) -> tuple[str, ...]:
    """Returns lines on the bytes, memory and time of the plan, the lower bound, and the distance to it."""
    if not plan.steps:
        return ("Every device holds its box already: nothing to do.",)
    count = plan.num_collectives
    collectives = f"{count} collective{'' if count == 1 else 's'}"
    if plan.total_bytes:
        moved = (
            f"Received: {amount(plan.total_bytes)} by all devices in {collectives}, {amount(plan.bytes_received)} by "
            "the device that receives most."
        )
    else:
        moved = f"Received: nothing, in {collectives}."
    bound = plan.bound
    least = (
        f"Lower bound: {amount(bound.total)} by all devices, {amount(bound.maximum)} by one; "
        f"the plan has {plan.bytes_over_bound:.3f} times the bytes."
    )
    proved = "no plan of these moves is cheaper" if plan.is_optimal else f"at most {plan.gap:.1%} above the optimum"
    held = f"{duration(plan.time)}, and {amount(plan.peak_memory)} held at most by a device"
    return moved, least, f"Predicted: {held}; {proved}."
