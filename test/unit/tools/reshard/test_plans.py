# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of plans as text, pictures and data."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from xml.etree import ElementTree

import pytest

from mlir_shard.resharding.cost.step_cost import StepCost, StepTraffic, step_traffic
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import Plan, PlanStep
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    Move,
    ReduceScatter,
    Together,
)
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import ReductionOp
from mlir_shard.tools.reshard import plan_data, report, words
from mlir_shard.tools.reshard.notation import MESH_NAME, TensorType, read_mesh, read_sharding
from mlir_shard.tools.reshard.picture import svg
from mlir_shard.tools.reshard.plan_data import undelivered

SVG = "{http://www.w3.org/2000/svg}"
TENSOR = TensorType((12, 18), "f32", 4)


def plan_of(mesh: str, shape: tuple[int, ...], source: str, target: str, *moves: Move) -> Plan:
    """Returns a plan of these moves, without regard to its cost."""
    devices = read_mesh(mesh)
    layouts = [TensorLayout(read_sharding(one, devices), devices, shape) for one in (source, target)]
    grid = Grid.of(devices, (axis for layout in layouts for axis in layout.sharding.used_axes))
    tensor = GridTensor(grid, shape, 4)
    placement, steps = grid.placement(layouts[0].sharding), []
    for move in moves:
        after = tensor.after(move, placement)
        before_layout, after_layout = (
            TensorLayout(grid.sharding(one, MESH_NAME), devices, shape) for one in (placement, after)
        )
        received = step_traffic(move, placement, after, tensor).in_bytes(4).received
        cost = StepCost(1e-6, max(received), sum(received), 4)
        steps.append(PlanStep(move, grid, before_layout, after_layout, cost, partial(StepTraffic, received, received)))
        placement = after
    return Plan(layouts[0], layouts[1], 4, tuple(steps), 1.0, 1.0)


def transposed() -> Plan:
    moves = AllGather(0, (0,)), AllToAll((1,), 1, 0), AllSlice(1, (0,))
    return plan_of("x=2,y=3", (12, 18), "[[0], [1]]", "[[1], [0]]", *moves)


def test_moves_in_words() -> None:
    assert [words.move(step) for step in transposed().steps] == [
        'all-gather of dimension 0 along "x"',
        'all-to-all from dimension 1 to 0 along "y"',
        'slice of dimension 1 along "x"',
    ]


@pytest.mark.parametrize(
    ("source", "target", "move", "text"),
    [
        ('[{"x":(1)2}, {}]', "[[], []]", AllGather(0, (0,)), 'all-gather of dimension 0 along "x":(1)2'),
        ("[[0, 1], []]", "[[1, 0], []]", CollectivePermute(((1, 0), ())), "collective permute"),
        (
            "[[0], [1]]",
            "[[], []]",
            Together((AllGather(0, (0,)), AllGather(1, (1,)))),
            'all-gather of dimension 0 along "x"; of dimension 1 along "y"',
        ),
        (
            "[[], []], unreduced=max[0]",
            "[[], []]",
            AllReduce((0,), ReductionOp.MAX),
            'all-reduce (max) along "x"',
        ),
        (
            "[[], []], unreduced=[0]",
            "[[0], []]",
            ReduceScatter(0, (0,), ReductionOp.SUM),
            'reduce-scatter of dimension 0 along "x"',
        ),
    ],
)
def test_a_move_in_words(source: str, target: str, move: Move, text: str) -> None:
    (step,) = plan_of("x=4,y=2", (8, 8), source, target, move).steps
    assert words.move(step) == text


def test_a_move_as_data_says_what_it_is_about() -> None:
    data = json.loads(plan_data.json_text(transposed(), TENSOR, None))
    assert [step["move"] for step in data["steps"]] == ["all-gather", "all-to-all", "slice"]
    assert data["steps"][1]["parts"] == [{"axes": ['"y"'], "from_dimension": 1, "to_dimension": 0}]
    assert data["steps"][0]["bytes_received"] == [144] * 6
    assert data["bytes_received"] == {"all": 6 * 144 + 6 * 192, "most": 144 + 192}
    assert data["lower_bound"]["all"] == 624
    assert data["after"]["boxes"]["5"] == [[8, 12], [9, 18]]
    assert "delivers" not in data


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (9999, "9999 B"),
        (10_000, "9.77 KiB"),
        (1024 * 1024 - 1, "1024 KiB"),
        (1024 * 1024, "1.00 MiB"),
        (123 << 30, "123 GiB"),
        (1 << 70, "1048576 PiB"),
    ],
)
def test_amounts(size: int, text: str) -> None:
    assert words.amount(size) == text


def test_durations() -> None:
    assert [words.duration(seconds) for seconds in (0, 3e-10, 1.234e-6, 0.5, 70)] == [
        "0 s",
        "0.3 ns",
        "1.23 µs",
        "500 ms",
        "70 s",
    ]


def test_devices_in_words() -> None:
    assert words.devices(range(3)) == "0 1 2"
    assert words.devices(range(100), 4) == "0 1 … 99 (100)"


def test_the_report_is_as_wide_as_asked_and_the_same_without_colour() -> None:
    plan = transposed()
    plain = report.text(plan, "title", (), 80, in_colour=False)
    assert max(map(len, plain.splitlines())) <= 80
    assert "\x1b" not in plain
    coloured = report.text(plan, "title", (), 80, in_colour=True)
    assert "\x1b[" in coloured
    assert "the plan has 3.231 times" in plain


def drawing(plan: Plan, title: str = "title") -> ElementTree.Element:
    return ElementTree.fromstring(svg(plan, title))


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def test_a_picture_has_a_panel_for_each_stage() -> None:
    picture = drawing(transposed())
    headings = [element.text for element in picture.iter(f"{SVG}text") if element.get("class") == "heading"]
    assert headings == [
        "Before",
        '1. all-gather of dimension 0 along "x"',
        '2. all-to-all from dimension 1 to 0 along "y"',
        '3. slice of dimension 1 along "x"',
    ]
    assert svg(transposed(), "title") == svg(transposed(), "title")


def test_tiles_are_numbered_by_their_senders() -> None:
    picture = drawing(plan_of("x=2", (8, 8), "[[0], []]", "[[], [0]]", AllToAll((0,), 0, 1)))
    senders = [element.text for element in picture.iter(f"{SVG}text") if element.get("class") == "sender"]
    assert senders == ["1", "0"]


def test_rectangles_lie_within_the_picture() -> None:
    for plan in (
        transposed(),
        plan_of("2x2x2", (8, 4, 8), "[[2], [], [0, 1]]", "[[], [], [0, 1]]", AllGather(0, (2,))),
        plan_of("8", (5,), "[[0]]", "[[]]", AllGather(0, (0,))),
        plan_of("64x64", (4096, 4096), "[[0], []]", "[[], []]", AllGather(0, (0,))),
        plan_of("2", (0, 3), "[[0], []]", "[[], []]", AllGather(0, (0,))),
        plan_of("2", (), "[]", "[]"),
        plan_of("64", (128, 2, 2), "[[0], [], []]", "[[], [], []]", AllGather(0, (0,))),
    ):
        picture = drawing(plan)
        width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
        groups = [(0.0, 0.0, picture)]
        for group in picture.iter(f"{SVG}g"):
            left, top = map(float, group.get("transform", "").removeprefix("translate(").rstrip(")").split())
            groups.append((left, top, group))
        for left, top, group in groups:
            for element in group.findall(f"{SVG}rect"):
                x, y = left + float(element.get("x", 0)), top + float(element.get("y", 0))
                assert 0 <= x <= x + float(element.get("width", 0)) <= width
                assert 0 <= y <= y + float(element.get("height", 0)) <= height


def test_what_is_not_drawn_is_counted() -> None:
    picture = drawing(plan_of("64", (128, 2, 2), "[[0], [], []]", "[[], [], []]", AllGather(0, (0,))))
    assert "Only the first 12 of 64 slabs of the tensor are drawn." in texts(picture)
    picture = drawing(plan_of("64x64", (4096,), "[[0]]", "[[]]", AllGather(0, (0,))))
    assert "Only the first 64 of 4096 devices are drawn." in texts(picture)


def test_titles_are_escaped() -> None:
    picture = drawing(transposed(), 'a <b> & "c"\x01')
    assert picture.findtext(f"{SVG}title") == 'a <b> & "c"\N{REPLACEMENT CHARACTER}'
    page = report.html(transposed(), "a <b> & c", ("note",), 100)
    assert "<title>a &lt;b&gt; &amp; c</title>" in page
    assert "note" in page


def test_plans_deliver() -> None:
    assert undelivered(transposed()) == ()
    reduced = plan_of("2x2", (4, 6), "[[], [1]], unreduced=[0]", "[[0], [1]]", ReduceScatter(0, (0,), ReductionOp.SUM))
    assert undelivered(reduced) == ()


def test_a_plan_for_something_else_does_not_deliver() -> None:
    plan = plan_of("2", (4, 4), "[[0], []]", "[[], [0]]", AllToAll((0,), 0, 1))
    assert undelivered(plan) == ()
    assert undelivered(replace(plan, target=plan.source)) == (0, 1)


def test_too_large_to_simulate() -> None:
    plan = plan_of("2", (1 << 40,), "[[0]]", "[[]]", AllGather(0, (0,)))
    with pytest.raises(ValueError, match="too many to simulate"):
        undelivered(plan)
