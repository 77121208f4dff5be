# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes in Python files, by operators of cosmic-ray: another operator, number or truth, a loop that never runs.

What changes annotations, decorators, messages of errors, names of types or whether a right `zip` checks lengths is
none, and left out.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from mutated_code.areas import ROOT, Area
from mutated_code.equivalent import EQUIVALENT

_Position = tuple[int, int]
# Python has no such thing, or only what is not of this project.
_LEFT_OUT = ("VariableReplacer", "VariableInserter", "NoOp", "RemoveDecorator", "_Is", "_IsNot")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A change of one place of a file: the line, what is there before and after, and the whole text after."""

    area: str
    path: Path
    line: int
    operator: str
    before: str
    after: str
    text: str

    def report(self) -> str:
        """Where what is changed."""
        return f"{self.path}:{self.line}: `{self.before}` becomes `{self.after}`"

    @property
    def why_equivalent(self) -> str | None:
        """Why the change is known to change nothing; None where it may."""
        return EQUIVALENT.get(f"{self.path}: `{self.before}` becomes `{self.after}`")


def mistakes(areas: Sequence[Area], count: int, seed: int) -> list[Mistake]:
    """Returns `count` mistakes, as many in each area, no two in one line."""
    draws = [_mistakes_of(area, Random(f"{seed}/{area.name}")) for area in areas]
    return [next(draws[number % len(draws)]) for number in range(count)]


def _mistakes_of(area: Area, draw: Random) -> Iterator[Mistake]:
    files = [(path, _places(path)) for path in area.files()]
    files = [(path, places) for path, places in files if places]
    seen = set()
    while True:
        ((path, places),) = draw.choices(files, [len(places) for _, places in files])
        line = draw.choice(sorted(places))
        if (path, line) in seen:
            continue
        seen.add((path, line))
        operator, occurrence = draw.choice(places[line])
        found = _mistake(area, path, operator, occurrence)
        if found is not None:
            yield found


def _mistake(area: Area, path: Path, operator: str, occurrence: int) -> Mistake | None:
    source = (ROOT / path).read_text(encoding="utf-8")
    text = mutate_code(source, _operator(operator), occurrence)
    if text is None or _meaning(text) in (None, _meaning(source)):
        return None
    lines = zip(source.splitlines(), text.splitlines(), strict=False)
    number, before, after = next((number, one, other) for number, (one, other) in enumerate(lines, 1) if one != other)
    return Mistake(area.name, path, number, operator, before.strip(), after.strip(), text)


def _meaning(source: str) -> str | None:
    """The syntax tree; None where the source does not parse."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return None


@functools.cache
def _operator(name: str) -> Any:
    return cosmic_ray.plugins.get_operator(name)()


@functools.cache
def _operators() -> tuple[str, ...]:
    names = sorted(cosmic_ray.plugins.operator_names())
    return tuple(name for name in names if not any(one in name for one in _LEFT_OUT))


def _places(path: Path) -> dict[int, list[tuple[str, int]]]:
    """By line, the operators that change something there, each with the number of the change in the file."""
    source = (ROOT / path).read_text(encoding="utf-8")
    nodes, without_effect = list(ast_nodes(get_ast(source))), _without_effect(ast.parse(source))
    found: dict[int, list[tuple[str, int]]] = {}
    for name in _operators():
        positions = (position for node in nodes for position in _operator(name).mutation_positions(node))
        for number, (start, _) in enumerate(positions):
            if not any(begin <= start < end for begin, end in without_effect):
                found.setdefault(start[0], []).append((name, number))
    return found


def _without_effect(tree: ast.Module) -> list[tuple[_Position, _Position]]:
    """The ranges of what no test can see: annotations, decorators, errors that are raised, aliases of types, imports
    for types, and whether `zip` checks what holds."""
    found: list[ast.expr | ast.stmt | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node.returns, *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            found += node.decorator_list
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.keyword) and node.arg == "strict":
            found.append(node.value)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found.append(node.test)
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Assign) and _is_alias(node.value)):
            found.append(node)
    return [
        ((one.lineno, one.col_offset), (one.end_lineno or one.lineno, one.end_col_offset or 0))
        for one in found
        if one is not None
    ]


def _is_alias(value: ast.expr) -> bool:
    names = {"Callable", "Mapping", "Sequence", "dict", "list", "tuple"}
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return all(isinstance(side, ast.Name | ast.Constant | ast.Subscript) for side in (value.left, value.right))
    return isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id in names
