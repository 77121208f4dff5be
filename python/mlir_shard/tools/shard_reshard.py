# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-reshard: plans the resharding of a tensor, and shows its boxes, the steps and the lower bound."""

from __future__ import annotations

import dataclasses
import os
import sys
from argparse import BooleanOptionalAction
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mlir_shard.tools import output
from mlir_shard.tools.argument_parser import ArgumentParser, number
from mlir_shard.tools.command_line import UsageError, complain, exit_status

if TYPE_CHECKING:
    from mlir_shard.resharding.cost.cost_model import CostModel
    from mlir_shard.resharding.plan import Plan
    from mlir_shard.tools.reshard.notation import TensorType


FORMATS = ("auto", "text", "rich", "svg", "html", "json")
_SUFFIXES = {"svg": (".svg",), "html": (".html", ".htm"), "json": (".json",)}
OBJECTIVES = ("time", "bytes", "memory")
LEAST_WIDTH = 40
_OUTPUTS = "a plan is drawn to a .svg or .html file, and written to a .json file, or as text to any other file"
_DESCRIPTION = """\
Plans the resharding of a tensor on a mesh of devices and shows the plan: the boxes before and after, the data that
devices send, receive and hold in each step, and the lower bound of bytes. The exit status is 0, or 1 on an error."""
_EPILOGUE = """\
Shardings are written as in sdy, '[{"x"}, {"y"}]', with sub-axes '"x":(1)2' and ', unreduced={"z"}' behind them, or as
the numbers of mesh axes: '[[0], [1]]', ', unreduced=[2]'."""


@dataclasses.dataclass(frozen=True, slots=True)
class ReshardArguments:
    """The arguments of the command line; `-` is standard output, and a None is determined by the others."""

    mesh: str
    target_mesh: str | None
    shape: str
    source: str
    target: str
    objective: str | None
    direct_exchange: bool
    costs: str | None
    format: str
    output: str
    colour: str
    width: int | None
    simulate: bool


def parse(argv: Sequence[str]) -> ReshardArguments:
    """Parses a command line; raises UsageError if it is invalid. Prints and exits for --help and --version."""
    return ReshardArguments(**vars(_parser().parse_args(argv)))


def _parser() -> ArgumentParser:
    parser = ArgumentParser("shard-reshard", _DESCRIPTION, _EPILOGUE)
    add = parser.add_argument
    add("source", metavar="SOURCE", help="the sharding before")
    add("target", metavar="TARGET", help="the sharding after")
    add("--mesh", required=True, metavar="MESH", help="""x=2,y=3, or '<["x"=2, "y"=3]>', or 2x3 without names""")
    add("--target-mesh", metavar="MESH", help="the mesh after, of any devices (default: the mesh before)")
    add("--shape", required=True, metavar="SHAPE", help="sizes and element type, as 12x18xf32")
    add(
        "--objective", choices=OBJECTIVES, help="the objective to minimize (default: time, or the objective of --costs)"
    )
    add(
        "--direct-exchange",
        action=BooleanOptionalAction,
        default=True,
        help="allow direct exchanges between devices in addition to collectives (the default)",
    )
    add("--costs", metavar="FILE", help="latencies and bandwidths, as TOML or JSON (default: those of the planner)")
    add("--simulate", action="store_true", help="simulate the plan on NumPy arrays and check the result")
    add(
        "--format",
        choices=FORMATS,
        default="auto",
        help="text, rich for text in colour, a picture (svg), both (html), or data (json) "
        "(default: by the suffix of the output, else text, in colour on a terminal)",
    )
    add("-o", "--output", default="-", metavar="FILE", help="the output file; - is standard output (the default)")
    add("--colour", choices=("auto", "always", "never"), default="auto", help="when to color text")
    width = number(f"is not a width: expected {LEAST_WIDTH} columns or more", LEAST_WIDTH, 10_000)
    add("--width", type=width, metavar="COLUMNS", help="the width of text (default: that of the terminal, else 120)")
    return parser


TOOL = "shard-reshard"
DEFAULT_WIDTH = 120


def main(argv: Sequence[str] | None = None) -> int:
    """Runs shard-reshard; returns its exit status: 0, 1 for any error, 130 if interrupted."""
    given = sys.argv[1:] if argv is None else argv
    return exit_status(TOOL, lambda: _drive(parse(given)))


def _drive(arguments: ReshardArguments) -> int:
    written = _OUTPUTS if arguments.format == "auto" else f"--format={arguments.format} does not produce such a file"
    output.check_form(arguments.output, written, drawn=_SUFFIXES.get(_format(arguments), ()))
    output.check(arguments.output)
    return _show(arguments)


def _show(arguments: ReshardArguments) -> int:
    from mlir_shard.tools.reshard import notation, plan_data

    try:
        tensor = notation.read_tensor(arguments.shape)
        plan = _plan(arguments, tensor)
        missed = plan_data.undelivered(plan) if arguments.simulate else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    # Parts of the command line that were not UTF-8 cannot be encoded.
    text = _text(arguments, plan, tensor, missed).encode(errors="replace").decode()
    output.write(arguments.output, text)
    if missed:
        return complain(TOOL, f"the plan is incorrect: wrong values on {_devices(missed)}")
    return 0


def _plan(arguments: ReshardArguments, tensor: TensorType) -> Plan:
    from mlir_shard.resharding.planner import Planner
    from mlir_shard.resharding.tensor_layout import TensorLayout
    from mlir_shard.tools.reshard.notation import read_mesh, read_sharding

    mesh = read_mesh(arguments.mesh)
    target_mesh = mesh if arguments.target_mesh is None else read_mesh(arguments.target_mesh)
    source = TensorLayout(read_sharding(arguments.source, mesh), mesh, tensor.shape)
    target = TensorLayout(read_sharding(arguments.target, target_mesh), target_mesh, tensor.shape)
    model = _cost_model(arguments, (*mesh.axis_names, *target_mesh.axis_names))
    planner = Planner(model, uses_direct_exchange=arguments.direct_exchange)
    return planner.plan(source, target, tensor.element_size)


def _cost_model(arguments: ReshardArguments, axes: Iterable[str]) -> CostModel:
    from dataclasses import replace

    from mlir_shard.resharding.cost.cost_model import CostModel, Objective

    model = CostModel() if arguments.costs is None else CostModel.of_file(arguments.costs, axes)
    return model if arguments.objective is None else replace(model, objective=Objective(arguments.objective))


def _text(arguments: ReshardArguments, plan: Plan, tensor: TensorType, missed: tuple[int, ...] | None) -> str:
    from mlir_shard.tools.reshard import picture, plan_data, report

    form = _format(arguments)
    meshes = dict.fromkeys(map(str, (plan.source.mesh, plan.target.mesh)))
    title = f"{tensor} on mesh {', then '.join(meshes)}"
    notes = [] if missed is None else [_verdict(missed)]
    if form == "json":
        return plan_data.json_text(plan, tensor, None if missed is None else not missed)
    if form == "svg":
        return picture.svg(plan, title)
    if form == "html":
        return report.html(plan, title, notes, arguments.width or DEFAULT_WIDTH)
    on_terminal = arguments.output == "-" and sys.stdout.isatty()
    by_itself = form == "rich" or (form == "auto" and on_terminal and not os.environ.get("NO_COLOR"))
    in_colour = by_itself if arguments.colour == "auto" else arguments.colour == "always"
    return report.text(plan, title, notes, arguments.width or _columns(on_terminal), in_colour=in_colour)


def _format(arguments: ReshardArguments) -> str:
    suffix = output.suffix(arguments.output)
    by_suffix = next((form for form, suffixes in _SUFFIXES.items() if suffix in suffixes), arguments.format)
    return by_suffix if arguments.format == "auto" else arguments.format


def _columns(on_terminal: bool) -> int:
    return max(os.get_terminal_size(sys.stdout.fileno()).columns, LEAST_WIDTH) if on_terminal else DEFAULT_WIDTH


def _verdict(missed: tuple[int, ...]) -> str:
    if missed:
        return f"Simulated: wrong values on {_devices(missed)}."
    return "Simulated: every device holds the values of its box."


def _devices(devices: tuple[int, ...]) -> str:
    from mlir_shard.tools.reshard import words

    return f"{'device' if len(devices) == 1 else 'devices'} {words.devices(devices)}"


if __name__ == "__main__":
    sys.exit(main())
