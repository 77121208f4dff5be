# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation beside upstream's `sharding-propagation`, in one process, on linalg and tosa programs.

    python benchmarks/upstream_propagation.py [--traversal backward-forward] [--ops]

The programs are those of `upstream_programs/`, with few annotations; with `--ops` they are instead the ops in
`tools/rule_examples/`, once for each dimension of an operand, which is sharded, and no table is printed. Upstream gets
the programs in its own form, and our shardings are converted to this form, so that both are read by the same code.
Prints for each program the number of tensors that each side shards, and of the axes that upstream puts on dimensions,
the number that we put there too (same), use for another dimension of the tensor or leave out because another axis is on
that dimension (other), or leave out (missing); axes that split a dimension of size one are counted separately (size 1).
Fails if an axis is missing.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlir_shard
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.passes.registry import PassFailure
from mlir_shard.sharding import AxisRef, TensorSharding

PROGRAMS = Path(__file__).parent / "upstream_programs"
OPS = Path(__file__).parent.parent / "tools" / "rule_examples"
IN_UPSTREAM_FORM = "convert-sdy-to-shard{partial=true}"
HERE = "convert-shard-to-sdy,sdy-apply-sharding-constraints,sdy-user-priority-propagate,sdy-close-shardings"

# Upstream crashes on these programs, so it does not run them.
CRASHES = ("tosa.mul operand 0 dim 1",)

# The axes of each dimension in an annotation of a tensor.
Axes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A program in sdy's form; `sharded` is an argument and dimension to shard, besides those in its text."""

    name: str
    text: str
    sharded: tuple[int, int] | None = None

    def parse(self, context: Any) -> Any:
        """Returns the module, in upstream's form."""
        module = mlir_shard.parse(self.text, context)
        if self.sharded is not None:
            number, dim = self.sharded
            argument = _function(module).regions[0].blocks[0].arguments[number]
            axes = [[AxisRef("x")] if index == dim else [] for index in range(argument.type.rank)]
            sdy.set_sharding(argument, TensorSharding.closed_with(axes, "mesh"))
        mlir_shard.run(module, f"builtin.module({IN_UPSTREAM_FORM})")
        return module


@dataclass(frozen=True, slots=True)
class Annotated:
    """A tensor and its annotations: that of the tensor itself or, if it has none, those for its users."""

    name: str
    shape: tuple[int, ...]
    annotations: tuple[Axes, ...]

    @property
    def is_sharded(self) -> bool:
        """Whether an annotation has an axis."""
        return any(any(axes) for axes in self.annotations)


@dataclass
class Comparison:
    """The results of both sides for one program: the numbers of sharded tensors, and the kinds of upstream's axes.

    `refusal` is upstream's error; if it is set, only our results are counted.
    """

    program: Program
    tensors: int
    ours: int
    upstream: int = 0
    same: int = 0
    size_one: int = 0
    other: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    refusal: str | None = None

    def add(self, theirs: Annotated, ours: Annotated) -> None:
        """Counts the axes in upstream's annotations of one tensor, compared with ours."""
        self.upstream += theirs.is_sharded
        taken = ours.annotations[0] if ours.annotations else ()
        used = {axis for axes in taken for axis in axes}
        for annotation in theirs.annotations:
            text = f"{theirs.name}: upstream {list(map(list, annotation))}, here {list(map(list, taken))}"
            for dim, axes in enumerate(annotation):
                here = taken[dim] if dim < len(taken) else ()
                for axis in axes:
                    if axis in here:
                        self.same += 1
                    elif theirs.shape[dim] == 1:
                        self.size_one += 1
                    elif axis in used or here:
                        self.other.append(text)
                    else:
                        self.missing.append(text)


def programs(folder: Path = PROGRAMS) -> Iterator[Program]:
    """Yields the programs in the files of a folder, which `// -----` separates; the first line is the name."""
    for file in sorted(folder.glob("*.mlir")):
        for text in file.read_text().split("// -----\n"):
            name = text.strip().splitlines()[0].removeprefix("// ")
            yield Program(f"{file.stem}: {name}", text)


def ops(context: Any, folder: Path = OPS) -> Iterator[Program]:
    """Yields the ops in the examples of the table of rules, with one dimension of one operand sharded in two."""
    for file in sorted(folder.glob("*.mlir")):
        for function in re.split(r"(?m)^(?=func\.func)", file.read_text())[1:]:
            text = f'sdy.mesh @mesh = <["x"=2]>\n{function}'
            module = mlir_shard.parse(text, context)
            arguments = _function(module).regions[0].blocks[0].arguments
            name = re.match(r"func\.func @(\w+)", function)
            for number, argument in enumerate(arguments):
                if isinstance(argument.type, ir.RankedTensorType):
                    for dim, size in enumerate(argument.type.shape):
                        if size % 2 == 0 and name:
                            title = f"{file.stem}.{name[1]} operand {number} dim {dim}"
                            yield Program(title, text, (number, dim))


def compare(program: Program, context: Any, traversal: str = "backward-forward") -> Comparison:
    """Compares both propagations on one program."""
    module = program.parse(context)
    mlir_shard.run(module, f"builtin.module({HERE},convert-sdy-to-shard)")
    mine = annotated(module)
    comparison = Comparison(program, len(mine), sum(tensor.is_sharded for tensor in mine))
    if program.name in CRASHES:
        comparison.refusal = "segmentation fault"
        return comparison
    module = program.parse(context)
    try:
        mlir_shard.run(module, f"builtin.module(func.func(sharding-propagation{{traversal={traversal}}}))")
    except PassFailure as failure:
        reasons = [str(one).splitlines()[0] for one in failure.diagnostics] or [str(failure)]
        comparison.refusal = reasons[0].split("error: ")[-1]
        return comparison
    for theirs, ours in zip(annotated(module), mine, strict=True):
        comparison.add(theirs, ours)
    return comparison


def annotated(module: Any) -> list[Annotated]:
    """Returns the tensors of a function in the order of its text, with their annotations."""
    block = _function(module).regions[0].blocks[0]
    found = [(f"argument {index}", argument) for index, argument in enumerate(block.arguments)]
    own = [op.operation for op in block.operations if not op.operation.name.startswith("shard.")]
    for number, op in enumerate(own):
        found += [(f"result {index} of {op.name} (op {number})", result) for index, result in enumerate(op.results)]
    return [
        Annotated(name, tuple(value.type.shape), _annotations_of(value))
        for name, value in found
        if isinstance(value.type, ir.RankedTensorType)
    ]


def _annotations_of(value: Any) -> tuple[Axes, ...]:
    of_itself: list[Axes] = []
    for_users: list[Axes] = []
    for use in value.uses:
        op = use.owner.operation
        if op.name == "shard.shard":
            axes = shard.split_axes(op.operands[1].owner.operation)
            (for_users if "annotate_for_users" in op.attributes else of_itself).append(axes)
    return tuple(of_itself or for_users)


def _function(module: Any) -> Any:
    return next(op.operation for op in module.body.operations if op.operation.name == "func.func")


def report(comparisons: list[Comparison], *, rows: bool = True) -> bool:
    """Prints the table, with a row for each program, and the differences; returns whether no axis is missing."""
    if rows:
        _print_rows(comparisons)
    accepted = [one for one in comparisons if one.refusal is None]
    refused = [one for one in comparisons if one.refusal is not None]
    for one in accepted:
        for kind, texts in (("other", one.other), ("missing", one.missing)):
            for text in texts:
                print(f"{kind}: {one.program.name}: {text}")
    missing = sum(len(one.missing) for one in accepted)
    print(
        f"{len(comparisons)} programs, {len(accepted)} accepted by upstream\n"
        f"accepted: of {sum(one.tensors for one in accepted)} tensors upstream shards "
        f"{sum(one.upstream for one in accepted)}, we shard {sum(one.ours for one in accepted)}\n"
        f"refused: of {sum(one.tensors for one in refused)} tensors we shard {sum(one.ours for one in refused)}\n"
        f"axes that upstream puts on dimensions: {sum(one.same for one in accepted)} the same here, "
        f"{sum(len(one.other) for one in accepted)} otherwise, {missing} missing, "
        f"{sum(one.size_one for one in accepted)} on dimensions of size one"
    )
    return missing == 0


def _print_rows(comparisons: list[Comparison]) -> None:
    width = max(len(one.program.name) for one in comparisons)
    print(f"{'program':<{width}}  tensors  sharded: upstream  here  axes: same  other  missing  size 1")
    for one in comparisons:
        row = f"{one.program.name:<{width}}  {one.tensors:>7}  "
        if one.refusal is None:
            counts = f"{one.same:>10}  {len(one.other):>5}  {len(one.missing):>7}  {one.size_one:>6}"
            print(f"{row}{one.upstream:>17}  {one.ours:>4}  {counts}")
        else:
            print(f"{row}{'refused':>17}  {one.ours:>4}  {one.refusal}")


def main() -> int:
    """Runs the benchmark; returns 1 if an axis of upstream's shardings is missing here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = ("forward", "backward", "forward-backward", "backward-forward")
    parser.add_argument("--traversal", choices=choices, default="backward-forward", help="upstream's option")
    parser.add_argument("--ops", action="store_true", help="single ops instead of programs")
    arguments = parser.parse_args()
    context = mlir_shard.create_context()
    chosen = ops(context) if arguments.ops else programs()
    comparisons = [compare(program, context, arguments.traversal) for program in chosen]
    return 0 if report(comparisons, rows=not arguments.ops) else 1


if __name__ == "__main__":
    sys.exit(main())
