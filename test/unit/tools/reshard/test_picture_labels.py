# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that labels are inside of pictures and do not overlap, for any mesh, shape and names of axes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from xml.etree import ElementTree

import pytest

import mlir_shard
from mlir_shard.explain.explanation import explain
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.tools import program_picture
from mlir_shard.tools.reshard.drawing import text_width
from mlir_shard.tools.reshard.notation import read_mesh, read_sharding
from mlir_shard.tools.reshard.picture import svg

LONG = "a_parallel_dimension_with_a_name_that_goes_on_and_on_and_on"
CASES = [
    ("x=16,y=16", (4096, 4096), '[{"x"}, {"y"}]', '[{"y"}, {"x"}]'),
    ("x=64,y=64", (4096, 4096), '[{"x"}, {"y"}]', '[{"y"}, {"x"}]'),
    ("x=32", (100_000, 40_000), '[{"x"}, {}]', '[{}, {"x"}]'),
    ("data=2,fsdp=8,tensor=4", (4096, 4096, 512), '[{"data"}, {"fsdp"}, {"tensor"}]', '[{"tensor"}, {}, {"fsdp"}]'),
    (f"{LONG}=4,b{LONG}=4", (64, 64), f'[{{"{LONG}"}}, {{"b{LONG}"}}]', "[{}, {}]"),
    ("x=16,y=4", (3, 3, 16, 20), '[{"x"}, {}, {"y"}, {}]', '[{}, {}, {}, {"x"}]'),
    ("x=2", (50_000, 5, 90_000), '[{"x"}, {}, {}]', '[{}, {"x"}, {}]'),
    ("x=8", (1_000_000_000_000, 7), '[{"x"}, {}]', '[{}, {"x"}]'),
    ("x=2,y=3", (1_000_000_000,), '[{"x"}]', '[{"y"}]'),
]


@dataclass(frozen=True)
class Label:
    """The rectangle that a text covers."""

    text: str
    left: float
    right: float
    top: float
    bottom: float

    def overlaps(self, other: Label) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


SIZES = {"title": 16, "heading": 14, "small": 10, "device": 10, "sender": 9}
BOLD = {"title", "heading", "device", "name"}


def labels(element: ElementTree.Element, x: float = 0, y: float = 0) -> Iterator[Label]:
    moved = re.fullmatch(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2])
    kinds = element.get("class", "").split()
    # The halo behind a text has the same text.
    if element.tag.endswith("}text") and "halo" not in kinds:
        text, size = element.text or "", next((SIZES[kind] for kind in kinds if kind in SIZES), 12)
        width = len(text) * size * 0.6 if "code" in kinds else text_width(text, size, is_bold=bool(BOLD & {*kinds}))
        at = x + float(element.get("x", 0))
        left = at - (width if "end" in kinds else width / 2 if {"middle", "sender"} & {*kinds} else 0)
        base = y + float(element.get("y", 0))
        yield Label(text, left, left + width, base - 0.72 * size, base)
    for child in element:
        yield from labels(child, x, y)


def random_case(seed: int) -> tuple[str, tuple[int, ...], str, str]:
    generator = random.Random(seed)
    axes = {name: generator.choice([2, 3, 4, 8, 16]) for name in generator.sample(["x", "data", "model", LONG], 2)}
    rank = generator.randint(1, 4)

    def sharding() -> str:
        dims: list[list[str]] = [[] for _ in range(rank)]
        for axis in axes:
            if generator.random() < 0.8:
                generator.choice(dims).append(f'"{axis}"')
        return "[" + ", ".join("{" + ", ".join(dim) + "}" for dim in dims) + "]"

    shape = tuple(generator.choice([1, 3, 16, 1000, 123_456]) for _ in range(rank))
    return ",".join(f"{name}={size}" for name, size in axes.items()), shape, sharding(), sharding()


@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(12))], ids=lambda case: case[0][:24])
def test_labels_do_not_overlap(case: tuple[str, tuple[int, ...], str, str]) -> None:
    text, shape, *shardings = case
    mesh = read_mesh(text)
    source, target = (TensorLayout(read_sharding(one, mesh), mesh, shape) for one in shardings)
    check_labels(svg(Planner().plan(source, target, 1), f"{shape} on mesh {mesh}"))


def check_labels(picture: str) -> None:
    root = ElementTree.fromstring(picture)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    found = list(labels(root))
    assert [one for one in found if one.left < 0 or one.right > width or one.top < 0 or one.bottom > height] == []
    assert [(one, other) for one, other in combinations(found, 2) if one.overlaps(other)] == []


@pytest.mark.parametrize("case", [*CASES[:-1], *map(random_case, range(4))], ids=lambda case: case[0][:24])
def test_labels_of_programs_do_not_overlap(case: tuple[str, tuple[int, ...], str, str]) -> None:
    text, shape, *shardings = case
    type_ = f"tensor<{'x'.join(map(str, shape))}xf32>"
    module = mlir_shard.parse(
        f"""sdy.mesh @mesh = {read_mesh(text)}
func.func @main(%a: {type_} {{sdy.sharding = #sdy.sharding<@mesh, {shardings[0]}>}}) -> {type_} {{
  %a_value_with_a_name_that_is_longer_than_a_card = sdy.sharding_constraint %a <@mesh, {shardings[1]}> : {type_}
  %b = stablehlo.negate %a_value_with_a_name_that_is_longer_than_a_card : {type_}
  return %b : {type_}
}}"""
    )
    check_labels(program_picture.svg(explain(module), f"{shape} on mesh {text}"))
