# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program as an SVG picture: the shards of its tensors on the devices, and the collectives that its ops need."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from mlir_shard.explain.explanation import Explanation
from mlir_shard.explain.model_explorer.graphs import Graphs
from mlir_shard.explain.model_explorer.node_data import shard_bytes
from mlir_shard.explain.text import sharding_text
from mlir_shard.explain.values import ExplainedCollective, Tensor
from mlir_shard.ir.op_names import op_names
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.drawing import Frame, slabs_of
from mlir_shard.tools.reshard.tensor_picture import MARGIN, WIDTH, Canvas, draw_tensor, fitting
from mlir_shard.transforms.communication.communication_report import axes_text

MOST_TENSORS = 48
"""The maximum number of drawn tensors; the others are counted."""
_COLUMNS = 4
_GAP = 20.0
_ACROSS = (WIDTH - 2 * MARGIN + _GAP) / _COLUMNS
_CARD = _ACROSS - _GAP
# The row ticks are to the left of a tensor.
_TICKS = 26.0
_TENSOR_HEIGHT = 92.0
_LINE = 15.0
_MOST_CODE = 27
"""The maximum number of fixed-width characters in a line of a card."""
_SLAB_GAP = 34.0
# Ops whose results contain the elements of an operand in another shape or order.
_VIEWS = frozenset(
    {
        *op_names("stablehlo", "broadcast_in_dim dynamic_slice reshape slice transpose"),
        *op_names("linalg", "broadcast transpose"),
        *op_names("tensor", "collapse_shape expand_shape extract_slice"),
        *op_names("tosa", "reshape slice transpose"),
    }
)


def svg(explanation: Explanation, title: str, chosen: Sequence[Tensor] = ()) -> str:
    """Returns the picture of an explained program.

    Args:
        explanation: the explanation of the program.
        title: the title of the picture.
        chosen: the tensors to draw; by default, the arguments and the tensors computed from them with another shape or
            sharding.
    """
    collectives = _collectives(explanation)
    tensors = [*chosen] or list(_drawn(explanation, collectives.keys()))
    shown = [one for one in tensors if _layout(explanation, one) is not None][:MOST_TENSORS]
    return _Picture(explanation, title, shown, len(tensors), collectives).text()


@dataclass(frozen=True, slots=True)
class _Card:
    """A tensor with the lines of text above and below it."""

    tensor: Tensor
    layout: TensorLayout
    above: tuple[tuple[str, str], ...]
    below: tuple[tuple[str, str], ...]
    frame: Frame

    @property
    def height(self) -> float:
        lines = len(self.above) + len(self.below)
        # The indices of slabs are between a tensor and the text below it.
        return lines * _LINE + self.frame.total_height + 26 + (14 if any(self.frame.slabs) else 0)


class _Picture:
    def __init__(
        self,
        explanation: Explanation,
        title: str,
        tensors: Sequence[Tensor],
        count: int,
        collectives: Mapping[int, Sequence[ExplainedCollective]],
    ) -> None:
        self._explanation, self._title, self._more = explanation, title, count - len(tensors)
        self._collectives = collectives
        self._cards = [self._card(one) for one in tensors]
        self._meshes = dict.fromkeys(card.layout.mesh for card in self._cards)
        devices = dict.fromkeys(device for mesh in self._meshes for device in mesh.devices)
        self._canvas = Canvas(tuple(devices) or (0,))

    def text(self) -> str:
        """Returns the SVG file."""
        cards = iter(self._cards)
        rows = iter(lambda: list(islice(cards, _COLUMNS)), [])
        facts = (fitting(line, 12, WIDTH - 2 * MARGIN) for line in self._facts())
        return self._canvas.page(self._title, facts, (partial(self._row, row) for row in rows), self._notes())

    def _row(self, cards: Sequence[_Card], y: float) -> float:
        top = y + max(len(card.above) for card in cards) * _LINE + 10
        for column, card in enumerate(cards):
            self._draw(card, MARGIN + column * _ACROSS, y, top)
        return top + max(card.height - len(card.above) * _LINE for card in cards)

    def _card(self, tensor: Tensor) -> _Card:
        layout = _layout(self._explanation, tensor)
        assert layout is not None
        numbered = tensor.op in ("argument", "result")
        op = f"{tensor.op} {tensor.index}" if numbered else tensor.op
        above = [(fitting(tensor.name, 12, _CARD), "name")]
        if tensor.name != op:
            above.append((words.cut(op, _MOST_CODE), "quiet"))
        shape = "x".join([*map(str, tensor.shape), tensor.element])
        above += [(line, "code") for text in (shape, sharding_text(tensor)) for line in textwrap.wrap(text, _MOST_CODE)]
        below = [(f"{words.amount(shard_bytes(self._explanation, tensor))} on a device", "quiet")]
        for one in self._collectives.get(tensor.number, ()):
            below += _lines(one)
        frame = Frame.within(tensor.shape, slabs_of((layout,)), _CARD - _TICKS, _TENSOR_HEIGHT, 10, _SLAB_GAP)
        return _Card(tensor, layout, tuple(above), tuple(below), frame)

    def _draw(self, card: _Card, x: float, y: float, top: float) -> None:
        for number, (line, kind) in enumerate(card.above):
            self._canvas.write(x, y + number * _LINE, line, kind)
        draw_tensor(self._canvas, self._canvas.group(x + _TICKS, top), card.frame, card.layout)
        below = top + card.frame.total_height + 18 + (14 if any(card.frame.slabs) else 0)
        for number, (line, kind) in enumerate(card.below):
            self._canvas.write(x, below + number * _LINE, line, kind)

    def _facts(self) -> Iterator[str]:
        for mesh in self._meshes:
            count = mesh.total_size
            yield f"{count} device{'' if count == 1 else 's'}: mesh {_axes(mesh)}"
        report = self._explanation.report
        count = len(report.collectives)
        if not count:
            yield "no collectives"
            return
        received = words.amount(report.bytes_received)
        yield f"{count} collective{'' if count == 1 else 's'}, by which a device receives {received}"

    def _notes(self) -> Iterator[str]:
        yield "Each shard has the colors and the numbers of the devices that hold it. Below a tensor are its bytes on a"
        yield "device, and the collectives for the op that computes it, with the bytes that a device receives."
        yield "Tensors with the shape and sharding of an operand, and reshaped operands, are not drawn."
        if self._more > 0:
            yield f"{self._more} more tensors are not drawn."


def _axes(mesh: Mesh) -> str:
    return ", ".join(f"{axis.name}={axis.size}" for axis in mesh.axes) or "without axes"


def _lines(one: ExplainedCollective) -> list[tuple[str, str]]:
    communication = one.collective.communication
    where = f"on {axes_text(communication.axes)}: {words.amount(round(communication.bytes_received))}"
    return [(communication.kind.value.replace("_", "-"), "collective"), (fitting(where, 12, _CARD), "quiet")]


def _layout(explanation: Explanation, tensor: Tensor) -> TensorLayout | None:
    """Returns the layout of a tensor, on the program's only mesh if it has no sharding; None if it is unknown."""
    mesh = explanation.mesh_of(tensor)
    if mesh is None or any(size < 0 for size in tensor.shape):
        return None
    sharding = tensor.sharding or TensorSharding.fully_closed(len(tensor.shape), mesh)
    return TensorLayout(sharding, mesh, tensor.shape)


def _drawn(explanation: Explanation, moved: Collection[int]) -> Iterator[Tensor]:
    """Yields the arguments and the tensors computed from them that differ from the operands in shape or sharding.

    The results of views are left out. Also yields tensors that need collectives and tensors that are returned; a result
    of a function only if its sharding differs from that of the returned tensor.
    """
    shown, returned = _computed(explanation)
    for tensor in explanation.tensors:
        if tensor.op == "result":
            source = returned.get((tensor.function, tensor.index))
            if source is None or sharding_text(source) != sharding_text(tensor):
                yield tensor
        elif not tensor.shape or _is_local(explanation, tensor):
            continue
        elif tensor.number in shown or tensor.number in moved or tensor in returned.values():
            yield tensor


def _computed(explanation: Explanation) -> tuple[set[int], dict[tuple[str, int], Tensor | None]]:
    """Returns the numbers of the arguments and of tensors unlike their operands; the returned tensors by index."""
    dependent: set[int] = set()
    shown: set[int] = set()
    returned: dict[tuple[str, int], Tensor | None] = {}
    for op in explanation.operations:
        operands = [explanation.tensor_of(value) for value in op.operands]
        if op.name == "func.return":
            returned |= {(op.function, index): tensor for index, tensor in enumerate(operands)}
        if op.name != "func.func" and not dependent.intersection(op.operands):
            continue
        dependent.update(op.arguments, op.results)
        if op.name in _VIEWS:
            continue
        alike = {(one.shape, sharding_text(one)) for one in operands if one is not None}
        tensors = map(explanation.tensor_of, (*op.arguments, *op.results))
        shown.update(one.number for one in tensors if one and (one.shape, sharding_text(one)) not in alike)
    return shown, returned


def _is_local(explanation: Explanation, tensor: Tensor) -> bool:
    """Returns whether a tensor is in the region of a manual computation, where tensors are local."""
    return any(op == "sdy.manual_computation" for op, _ in explanation.regions(tensor))


def _collectives(explanation: Explanation) -> dict[int, list[ExplainedCollective]]:
    """Returns, by the number of a tensor, the collectives that its op needs."""
    graphs = Graphs(explanation)
    found: dict[int, list[ExplainedCollective]] = {}
    for nodes in graphs.outputs.values():
        for node, tensors in nodes.items():
            first = next((one for one in tensors if one is not None), None)
            if first is not None and node in graphs.collectives:
                found.setdefault(first.number, []).extend(graphs.collectives[node])
    return found
