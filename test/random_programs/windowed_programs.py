# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs random StableHLO programs of ops over windows and parts of sharded dimensions. From the folder `test`,

    python -m random_programs.windowed_programs [--programs 100] [--seed 0] [--target stablehlo]

prints the programs whose results on devices differ from those without sharding. Exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from hang_guard import SECONDS

from random_programs import generate, routes
from random_programs.execution import RIGHT
from random_programs.routes import Setting
from random_programs.worker import Worker

_MESHES = ('"x"=2', '"x"=4', '"x"=2, "y"=2', '"x"=2, "y"=3')
_OPS_OF_A_PROGRAM = 4
_NEUTRAL = {"add": 0, "maximum": -9, "minimum": 9, "multiply": 1}


class _Writer:
    """Writes one program, in which each op has its own arguments and result."""

    def __init__(self, random: Random, elements: str) -> None:
        self.random, self.elements = random, elements
        self.mesh = random.choice(_MESHES)
        self._arguments: list[str] = []
        self._results: list[tuple[str, str, str]] = []
        self._lines: list[str] = []
        self._count = 0

    def text(self) -> str:
        types = ", ".join(type_ for _, type_, _ in self._results)
        declared = ", ".join(f"{type_} {sharding}" for _, type_, sharding in self._results)
        body = "\n".join(f"  {line}" for line in self._lines)
        names = ", ".join(name for name, _, _ in self._results)
        signature = f"func.func @main({', '.join(self._arguments)}) -> ({declared})"
        return f"sdy.mesh @m = <[{self.mesh}]>\n{signature} {{\n{body}\n  return {names} : {types}\n}}\n"

    def tensor(self, *shape: int) -> str:
        return f"tensor<{'x'.join(map(str, (*shape, self.elements)))}>"

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def axes(self) -> str:
        """Returns the axes of one dimension."""
        if '"y"' not in self.mesh:
            return '"x"'
        return self.random.choice(['"x"', '"y"', '"x", "y"', '"y", "x"'])

    def sharding(self, rank: int, dim: int, axes: str) -> str:
        dims = ", ".join(f"{{{axes if one == dim else ''}}}" for one in range(rank))
        return f"{{sdy.sharding = #sdy.sharding<@m, [{dims}]>}}"

    def argument(self, shape: tuple[int, ...], sharding: str = "") -> str:
        name = self.name()
        self._arguments.append(f"{name}: {self.tensor(*shape)} {sharding}")
        return name

    def scalar(self, value: int) -> str:
        name, written = self.name(), value if self.elements.startswith("i") else f"{value}.0"
        self.line(f"{name} = stablehlo.constant dense<{written}> : {self.tensor()}")
        return name

    def line(self, text: str) -> None:
        """Writes a line of the body."""
        self._lines.append(text)

    def op(self, line: str, shape: tuple[int, ...], sharding: str) -> None:
        name = self.name()
        self.line(f"{name} = {line}")
        self._results.append((name, self.tensor(*shape), sharding))

    def region(self, combiner: str) -> str:
        scalar = self.tensor()
        return (
            f"({{\n  ^bb0(%l: {scalar}, %r: {scalar}):\n    %c = stablehlo.{combiner} %l, %r : {scalar}\n"
            f"    stablehlo.return %c : {scalar}\n  }})"
        )


def _windows(random: Random, *, least: int = 3) -> tuple[int, int, int, int, int, int, int, int]:
    """Draws a number of elements, and the size, stride, paddings, dilations and number of windows over them."""
    while True:
        elements, size, stride = random.randint(least, 19), random.randint(1, 7), random.choice([1, 1, 1, 2, 3])
        low, high = random.randint(-1, 4), random.randint(-1, 4)
        inside, between = random.choice([1, 1, 2]), random.choice([1, 1, 1, 2, 3])
        spare = (elements - 1) * between + 1 + low + high - (size - 1) * inside - 1
        if spare >= 0:
            return elements, size, stride, low, high, inside, between, spare // stride + 1


def _reduce_window(writer: _Writer) -> None:
    random = writer.random
    elements, size, stride, low, high, inside, between, count = _windows(random)
    combiner = random.choice(list(_NEUTRAL))
    axes = writer.axes()
    sharding = writer.sharding(2, 0, axes)
    value = writer.argument((elements, 3), sharding)
    initial = writer.scalar(random.choice([_NEUTRAL[combiner], _NEUTRAL[combiner], 1]))
    attributes = (
        f"window_dimensions = array<i64: {size}, 1>, window_strides = array<i64: {stride}, 1>, "
        f"window_dilations = array<i64: {inside}, 1>, base_dilations = array<i64: {between}, 1>, "
        f"padding = dense<[[{low}, {high}], [0, 0]]> : tensor<2x2xi64>"
    )
    types = f"({writer.tensor(elements, 3)}, {writer.tensor()}) -> {writer.tensor(count, 3)}"
    line = f'"stablehlo.reduce_window"({value}, {initial}) <{{{attributes}}}> {writer.region(combiner)} : {types}'
    writer.op(line, (count, 3), sharding)


def _cumulative(writer: _Writer) -> None:
    random = writer.random
    size, dim = random.randint(2, 17), random.randint(0, 1)
    shape = (size, 3) if dim == 0 else (4, size)
    combiner = random.choice(list(_NEUTRAL))
    sharding = writer.sharding(2, dim, writer.axes())
    value = writer.argument(shape, sharding)
    initial = writer.scalar(_NEUTRAL[combiner])
    around = [size - 1, 0] if random.random() < 0.5 else [0, size - 1]
    padding = [around if one == dim else [0, 0] for one in range(2)]
    sizes = [size if one == dim else 1 for one in range(2)]
    attributes = f"window_dimensions = array<i64: {sizes[0]}, {sizes[1]}>, padding = dense<{padding}> : tensor<2x2xi64>"
    types = f"({writer.tensor(*shape)}, {writer.tensor()}) -> {writer.tensor(*shape)}"
    line = f'"stablehlo.reduce_window"({value}, {initial}) <{{{attributes}}}> {writer.region(combiner)} : {types}'
    writer.op(line, shape, sharding)


def _convolution(writer: _Writer) -> None:
    random = writer.random
    elements, size, stride, low, high, inside, between, count = _windows(random)
    sharding = writer.sharding(3, 1, writer.axes())
    grouped = random.random() < 0.2
    image = writer.argument((2, elements, 2), sharding)
    kernel = writer.argument((size, 1 if grouped else 2, 4))
    line = (
        f"stablehlo.convolution({image}, {kernel}) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], "
        f"window = {{stride = [{stride}], pad = [[{low}, {high}]], lhs_dilate = [{between}], rhs_dilate = [{inside}], "
        f"reverse = [{random.choice(['true', 'false'])}]}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {1 + grouped} : i64}} : "
        f"({writer.tensor(2, elements, 2)}, {writer.tensor(size, 1 if grouped else 2, 4)}) -> "
        f"{writer.tensor(2, count, 4)}"
    )
    writer.op(line, (2, count, 4), sharding)


def _pad(writer: _Writer) -> None:
    random = writer.random
    elements, between = random.randint(1, 15), random.choice([0, 0, 1, 2])
    low, high = random.randint(-2, 9), random.randint(-2, 9)
    count = (elements - 1) * (between + 1) + 1 + low + high
    if count < 1:
        return
    sharding = writer.sharding(2, 0, writer.axes())
    value, scalar = writer.argument((elements, 3), sharding), writer.argument(())
    line = (
        f"stablehlo.pad {value}, {scalar}, low = [{low}, 1], high = [{high}, 0], interior = [{between}, 0] : "
        f"({writer.tensor(elements, 3)}, {writer.tensor()}) -> {writer.tensor(count, 4)}"
    )
    writer.op(line, (count, 4), sharding)


def _select_and_scatter(writer: _Writer) -> None:
    random = writer.random
    size, windows = random.randint(1, 3), random.randint(1, 8)
    stride = random.choice([size, size, 1])
    low = random.choice([0, 0, 1]) if size > 1 else 0
    elements = (windows - 1) * stride + size - low
    if elements < 1:
        return
    axes = writer.axes()
    sharding = writer.sharding(2, 0, axes)
    value = writer.argument((elements, 3), sharding)
    source = writer.argument((windows, 3), sharding if random.random() < 0.5 else "")
    zero = writer.scalar(0)
    scalar = writer.tensor()
    kind = "SIGNED" if writer.elements.startswith("i") else "FLOAT"
    select = (
        f"({{\n  ^bb0(%l: {scalar}, %r: {scalar}):\n    %c = stablehlo.compare GE, %l, %r, {kind} : "
        f"({scalar}, {scalar}) -> tensor<i1>\n    stablehlo.return %c : tensor<i1>\n  }}, "
    )
    attributes = (
        f"window_dimensions = array<i64: {size}, 1>, window_strides = array<i64: {stride}, 1>, "
        f"padding = dense<[[{low}, 0], [0, 0]]> : tensor<2x2xi64>"
    )
    types = f"({writer.tensor(elements, 3)}, {writer.tensor(windows, 3)}, {scalar}) -> {writer.tensor(elements, 3)}"
    scatter = writer.region("add")[1:]
    line = f'"stablehlo.select_and_scatter"({value}, {source}, {zero}) <{{{attributes}}}> {select}{scatter} : {types}'
    writer.op(line, (elements, 3), sharding)


def _slice(writer: _Writer, value: str, size: int, start: int, limit: int) -> str:
    """Writes a slice of the rows of a tensor of `size` rows; returns its result."""
    name = writer.name()
    types = f"({writer.tensor(size, 3)}) -> {writer.tensor(limit - start, 3)}"
    writer.line(f"{name} = stablehlo.slice {value} [{start}:{limit}, 0:3] : {types}")
    return name


def _concatenation(writer: _Writer, values: Sequence[tuple[str, int]], sharding: str) -> None:
    """Writes a concatenation of tensors, each with its number of rows."""
    names, sizes = ", ".join(name for name, _ in values), [size for _, size in values]
    types = ", ".join(writer.tensor(size, 3) for size in sizes)
    line = f"stablehlo.concatenate {names}, dim = 0 : ({types}) -> {writer.tensor(sum(sizes), 3)}"
    writer.op(line, (sum(sizes), 3), sharding)


def _rotation(writer: _Writer) -> None:
    size = writer.random.choice([2, 5, 6, 8, 12, 24])
    cut = writer.random.randint(1, size - 1)
    sharding = writer.sharding(2, 0, writer.axes())
    value = writer.argument((size, 3), sharding)
    parts = [(_slice(writer, value, size, cut, size), size - cut), (_slice(writer, value, size, 0, cut), cut)]
    _concatenation(writer, parts, sharding)


def _parts(writer: _Writer) -> tuple[int, int, str, str]:
    """Draws a number of equal parts, their size, and the shardings of all of them together and of each."""
    count, size = writer.random.choice([2, 2, 3, 4, 6, 8]), writer.random.choice([1, 2, 4, 5, 6, 12, 24])
    whole, part = (writer.sharding(2, 0, writer.axes()) for _ in range(2))
    return count, size, whole, whole if writer.random.random() < 0.5 else part


def _joined(writer: _Writer) -> None:
    count, size, whole, part = _parts(writer)
    _concatenation(writer, [(writer.argument((size, 3), part), size) for _ in range(count)], whole)


def _split(writer: _Writer) -> None:
    count, size, whole, part = _parts(writer)
    value = writer.argument((count * size, 3), whole)
    for number in writer.random.sample(range(count), writer.random.randint(1, count)):
        bounds = f"[{number * size}:{(number + 1) * size}, 0:3]"
        types = f"({writer.tensor(count * size, 3)}) -> {writer.tensor(size, 3)}"
        writer.op(f"stablehlo.slice {value} {bounds} : {types}", (size, 3), part)


_KINDS: tuple[Callable[[_Writer], None], ...] = (
    _reduce_window,
    _cumulative,
    _convolution,
    _pad,
    _select_and_scatter,
    _rotation,
    _joined,
    _split,
)


def program(seed: int, index: int, count: int = _OPS_OF_A_PROGRAM) -> str:
    """Returns the program of a number."""
    random = Random(f"windowed/{seed}/{index}")
    writer = _Writer(random, random.choice(["f32", "f64", "i32"]))
    _pad(writer)
    for _ in range(count):
        random.choice(_KINDS)(writer)
    return writer.text()


def run(setting: Setting, seed: int, count: int, timeout: float = SECONDS) -> tuple[Counter[str], list[str]]:
    """Runs programs, and returns the number of outcomes of each kind and the failures."""
    kinds: Counter[str] = Counter()
    wrong = []
    with Worker(setting, timeout) as worker:
        for index in range(count):
            outcome = worker.run(program(seed, index), seed)
            kinds[outcome.kind] += 1
            if outcome.kind != RIGHT:
                wrong.append(f"program {seed}/{index}, {outcome.kind} in '{outcome.stage}': {outcome.detail}")
    return kinds, wrong


def main() -> int:
    """Runs the programs and prints the failures."""
    parser = argparse.ArgumentParser(
        prog="python -m random_programs.windowed_programs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--programs", type=int, default=100, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="which programs")
    routes.add_options(parser)
    arguments = parser.parse_args()
    setting = routes.setting_of(arguments, parser, generate.SMALL.most_devices)
    kinds, wrong = run(setting, arguments.seed, arguments.programs)
    print("\n".join(wrong))
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
