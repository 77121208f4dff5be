# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-explain: explains the shardings and the communication of a program, and the effects of other annotations."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlir_shard.tools import output
from mlir_shard.tools.argument_parser import ArgumentParser, number
from mlir_shard.tools.command_line import UsageError, exit_status

if TYPE_CHECKING:
    from mlir_shard.explain.explanation import Explanation
    from mlir_shard.explain.suggestions import Suggestion
    from mlir_shard.explain.what_if import Comparison
    from mlir_shard.resharding.cost.cost_model import CostModel
    from mlir_shard.tools.source import Console

TOOL = "shard-explain"
FORMATS = ("auto", "text", "json", "html", "svg")
_SUFFIXES = {"json": (".json",), "html": (".html", ".htm"), "svg": (".svg",)}
_OUTPUTS = "an explanation is written to a .json, .html or .svg file, or as text to any other file"
_DESCRIPTION = """\
Explains the shardings of values of a program: for each axis, the chain of causes back to an annotation; the axes that
were lost, and why; and the collectives that move the values. Without values, explains the communication of the program.
The exit status is 0, or 1 on an error."""
_EPILOGUE = """\
A VALUE is '%w', a line ('9', 'file.mlir:9', '9:14'), 'argument 0', 'result 0', the name of an op, or a name from
a front end, with '*' and '?'; '@main:%w' selects a value of a function. '--what-if' takes a value and a sharding in the
syntax of sdy, '%w: [{}, {"model"}]', and may be given several times: the changes are made together."""


@dataclasses.dataclass(frozen=True, slots=True)
class ExplainArguments:
    """The arguments of the command line; `-` is standard input or output."""

    input: str
    values: tuple[str, ...]
    collectives: str
    what_if: tuple[str, ...]
    suggest: int
    costs: str | None
    format: str
    output: str
    load: tuple[str, ...]


def parse(argv: Sequence[str]) -> ExplainArguments:
    """Parses a command line; raises UsageError if it is invalid. Prints and exits for --help and --version."""
    given: dict[str, Any] = vars(_parser().parse_intermixed_args(argv))
    lists: dict[str, Any] = {name: tuple(given.pop(name)) for name in ("values", "what_if", "load")}
    return ExplainArguments(**given, **lists)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(TOOL, _DESCRIPTION, _EPILOGUE)
    add = parser.add_argument
    add("input", metavar="FILE", help="the program, in text or bytecode; - is standard input")
    add("values", metavar="VALUE", nargs="*", help="the values to explain (default: the entire program)")
    add(
        "--collectives",
        choices=("shard", "stablehlo"),
        default="shard",
        help="the dialect of the collectives of the local program (default: shard)",
    )
    add("--what-if", metavar="CHANGE", action="append", default=[], help="compare with another annotation")
    add(
        "--suggest",
        metavar="N",
        default=0,
        type=number("is not a number of annotations: expected 1 or more", 1),
        help="try single annotations, and show the N that save the most bytes",
    )
    add("--costs", metavar="FILE", help="latencies and bandwidths of mesh axes, as TOML or JSON")
    add("--load", metavar="FILE", action="append", default=[], help="run a Python file that registers rules")
    add(
        "--format",
        choices=FORMATS,
        default="auto",
        help="text, json, html, svg (default: by the suffix of the output)",
    )
    add("-o", "--output", default="-", metavar="FILE", help="the output file; - is standard output (the default)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs shard-explain; returns its exit status: 0, 1 for any error, 130 if interrupted."""
    given = sys.argv[1:] if argv is None else argv
    return exit_status(TOOL, lambda: _drive(parse(given)))


def _drive(arguments: ExplainArguments) -> int:
    from mlir_shard.tools import crashes, modules
    from mlir_shard.tools.source import Console

    crashes.report(TOOL)
    written = _OUTPUTS if arguments.format == "auto" else f"--format={arguments.format} does not produce such a file"
    output.check_form(arguments.output, written, drawn=_SUFFIXES.get(_format(arguments), ()))
    output.check(arguments.output)
    if arguments.what_if and _format(arguments) in ("html", "svg"):
        raise UsageError("--what-if requires text or JSON: a page or a picture shows a single program")
    if arguments.suggest and _format(arguments) == "svg":
        raise UsageError("--suggest requires text, JSON or HTML: a picture does not show annotations")
    console = Console(sys.stderr)
    try:
        modules.load_passes(arguments.load, console)
        text = _explained(arguments, console)
    except modules.Reported:
        return 1
    output.write(arguments.output, text)
    return 0


def _explained(arguments: ExplainArguments, console: Console) -> str:
    from mlir_shard.dialects.contexts import create_context
    from mlir_shard.explain.explanation import explain
    from mlir_shard.explain.selection import NothingSelected
    from mlir_shard.explain.suggestions import suggest
    from mlir_shard.explain.what_if import Change, WhatIfError, what_if
    from mlir_shard.passes.registry import PassFailure
    from mlir_shard.tools import modules

    costs = _costs(arguments.costs)
    module = modules.read_module(arguments.input, create_context(), console)
    _check_links(costs, arguments.costs, module)
    options: dict[str, Any] = {"collectives": arguments.collectives, "sources": console.texts(), "costs": costs}
    try:
        explanation = explain(module, **options)
        changes = [Change.read(text) for text in arguments.what_if]
        comparison = what_if(module, changes, before=explanation, **options) if changes else None
        suggested = suggest(module, explanation, most=arguments.suggest, **options) if arguments.suggest else None
        return _text(arguments, explanation, comparison, suggested)
    except PassFailure as failure:
        for found in failure.diagnostics:
            console.report(found)
        raise modules.Reported from failure
    except (NothingSelected, WhatIfError) as wrong:
        raise UsageError(str(wrong)) from None


def _costs(path: str | None) -> CostModel | None:
    from mlir_shard.resharding.cost.cost_model import CostModel

    try:
        return None if path is None else CostModel.of_file(path)
    except ValueError as error:
        raise UsageError(f"costs: {error}") from None


def _check_links(costs: CostModel | None, path: str | None, module: Any) -> None:
    from mlir_shard.dialects import sdy

    meshes = sdy.meshes(module).values()
    # The axes of meshes of upstream's dialect have names only after the conversion.
    if costs is None or not meshes:
        return
    try:
        costs.check_axes(axis for mesh in meshes for axis in mesh.axis_names)
    except ValueError as error:
        raise UsageError(f"costs: cost model {path}: {error}") from None


def _text(
    arguments: ExplainArguments,
    explanation: Explanation,
    comparison: Comparison | None,
    suggested: tuple[Suggestion, ...] | None,
) -> str:
    from mlir_shard.explain import data, text

    chosen = [tensor for query in arguments.values for tensor in explanation.select(query)]
    form = _format(arguments)
    if form == "json":
        content: dict[str, Any] = {}
        if comparison is not None:
            content |= data.comparison_data(comparison)
        if suggested is not None:
            content |= {"suggestions": [data.suggestion_data(one) for one in suggested]}
        if chosen or not content:
            content |= data.explanation_data(explanation, chosen)
        return json.dumps(content, indent=2) + "\n"
    title = os.path.basename(arguments.input) if arguments.input != "-" else "standard input"
    if form == "svg":
        from mlir_shard.tools import program_picture

        return program_picture.svg(explanation, title, tuple(dict.fromkeys(chosen)))
    if form == "html":
        from mlir_shard.explain.page.document import page_html

        return page_html(explanation, title, suggested or (), chosen[0] if chosen else None)
    parts = [text.tensor_text(explanation, tensor) for tensor in dict.fromkeys(chosen)]
    if comparison is not None:
        parts.append(text.comparison_text(comparison))
    if suggested is not None:
        parts.append(text.suggestions_text(suggested))
    return "\n\n".join(parts or [text.program_text(explanation)]) + "\n"


def _format(arguments: ExplainArguments) -> str:
    if arguments.format == "auto":
        suffix = output.suffix(arguments.output)
        return next((form for form, suffixes in _SUFFIXES.items() if suffix in suffixes), "text")
    return arguments.format


if __name__ == "__main__":
    sys.exit(main())
