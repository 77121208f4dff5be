# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The collectives of a local module with their bytes, times and consumers, as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from mlir_shard.dialects.data_flow import owning_op
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.fitted_table import FittedTable, as_text
from mlir_shard.resharding.cost.communication import Communication, GroupAxis
from mlir_shard.transforms.communication.communication_reading import COLLECTIVES

_WIDTH = 1000
_NOTHING = "no collectives: devices receive nothing"
_SECONDS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


@dataclass(frozen=True, slots=True)
class ReportedCollective:
    """A collective with its predicted time.

    Attributes:
        communication: its kind, groups and bytes.
        time: the predicted time, in seconds.
        op: the name of the op that it serves.
        place: the place of that op in the user's text, `file:line:column`.
        function: the name of the function around it.
        loops: the number of loops around it.
    """

    communication: Communication
    time: float
    op: str
    place: str
    function: str
    loops: int


@dataclass(frozen=True, slots=True)
class CommunicationReport:
    """The collectives of a module, in the order of its text. Each counts once, even if loops or calls repeat it."""

    collectives: tuple[ReportedCollective, ...]

    @property
    def bytes_received(self) -> int:
        """The bytes received by the device that receives most, as far as the receivers are known."""
        return round(self._most_of_a_device(lambda one: one.communication.bytes_received))

    @property
    def total_bytes(self) -> int:
        """The bytes that all devices receive."""
        return sum(one.communication.total_bytes for one in self.collectives)

    @property
    def time(self) -> float:
        """The seconds that the slowest device takes if collectives run one after the other."""
        return self._most_of_a_device(lambda one: one.time)

    def _most_of_a_device(self, amount: Callable[[ReportedCollective], float]) -> float:
        everyone, some = 0.0, Counter[int]()
        for one in self.collectives:
            receivers = one.communication.receivers
            if receivers is None or all(receivers):
                everyone += amount(one)
            else:
                some.update({device: amount(one) for device, receives in enumerate(receivers) if receives})
        return everyone + max(some.values(), default=0.0)

    def as_data(self) -> dict[str, Any]:
        """Returns the report in the types of JSON; sizes in bytes, times in seconds."""
        kinds = Counter(one.communication.kind.value for one in self.collectives)
        return {
            "collectives": [_as_data(one) for one in self.collectives],
            "totals": {
                "collectives": len(self.collectives),
                "kinds": dict(sorted(kinds.items())),
                "bytes_received": self.bytes_received,
                "total_bytes": self.total_bytes,
                "time": self.time,
            },
        }

    def as_table(self) -> RenderableType:
        """Returns a table for `rich`, with a line for each collective and one for the totals."""
        return self._table() if self.collectives else Text(_NOTHING)

    def _table(self) -> FittedTable:
        count = len(self.collectives)
        return FittedTable(
            ("collective", "axes", "groups", "a device receives", "all receive", "time", "for", "at"),
            [_row(one) for one in self.collectives],
            right=(2, 3, 4, 5),
            footer=(
                f"{count} collective{'' if count == 1 else 's'}",
                *("", ""),
                *(_bytes(self.bytes_received), _bytes(self.total_bytes), duration(self.time)),
                *("", ""),
            ),
            has_line=True,
        )

    def _repr_html_(self) -> str:
        return self._table()._repr_html_() if self.collectives else _NOTHING

    def __str__(self) -> str:
        return as_text(self.as_table(), _WIDTH)


def _row(one: ReportedCollective) -> tuple[str, ...]:
    communication = one.communication
    return (
        communication.kind.value,
        axes_text(communication.axes),
        str(communication.groups),
        _bytes(communication.bytes_received),
        _bytes(communication.total_bytes),
        duration(one.time),
        f"{one.op} (in {one.loops} loops)" if one.loops > 1 else one.op + " (in a loop)" * one.loops,
        one.place,
    )


def axes_text(axes: Sequence[GroupAxis]) -> str:
    """Returns the text of the axes of groups, or the number of devices in a group if the axes are not known."""
    return " ".join(f"{axis.name}={axis.size}" if axis.name else f"{axis.size} devices" for axis in axes)


def duration(seconds: float) -> str:
    """Returns the text of a time with three digits."""
    if seconds == 0:
        return "0 s"
    unit, scale = next(((unit, scale) for unit, scale in _SECONDS if seconds >= scale), _SECONDS[-1])
    return f"{seconds / scale:.3g} {unit}"


def _bytes(size: int) -> str:
    return f"{size:,} B"


def _as_data(one: ReportedCollective) -> dict[str, Any]:
    communication = one.communication
    return {
        "kind": communication.kind.value,
        "axes": [asdict(axis) for axis in communication.axes],
        "groups": communication.groups,
        "operand_bytes": communication.operand_bytes,
        "result_bytes": communication.result_bytes,
        "bytes_received": communication.bytes_received,
        "total_bytes": communication.total_bytes,
        "time": one.time,
        "op": one.op,
        "place": one.place,
        "function": one.function,
        "loops": one.loops,
    }


_REDUCING = ("all_reduce", "reduce", "reduce_scatter")
# The ops between collectives and the operations that they serve, which move data within a device.
_LOCAL_MOVES = frozenset(
    {
        "shard.all_slice",
        *op_names("stablehlo", "convert dynamic_slice pad reshape slice transpose"),
        "tensor.collapse_shape",
        "tensor.expand_shape",
        "tensor.extract_slice",
        "tensor.insert_slice",
    }
)


def served_op(collective: Any) -> Any:
    """Returns the op whose partial results a reduction completes; for other collectives, the first user of the result.

    Skips other collectives on the way, and ops with the same location that move data within a device. A reduction of an
    argument of a function or region serves the op that has the region.
    """
    if collective.name.partition(".")[2] in _REDUCING:
        return _definer(collective)
    return _user(collective)


def _definer(collective: Any) -> Any:
    value = collective.operands[0]
    while (op := defining_op(value)) is not None and _belongs_to(op, collective):
        value = op.operands[0]
    return owning_op(value)


def _user(collective: Any) -> Any:
    op = collective
    # The last use that was made is the first one listed.
    while users := [use.owner.operation for result in op.results for use in result.uses]:
        op = users[-1]
        if not _belongs_to(op, collective):
            break
    return op


def _belongs_to(op: Any, collective: Any) -> bool:
    return op.name in COLLECTIVES or (op.name in _LOCAL_MOVES and op.location == collective.location)
