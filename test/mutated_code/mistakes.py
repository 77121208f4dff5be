# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes in Python files, by operators of cosmic-ray: another operator, number or truth, a loop that never runs.

Changes of annotations, decorators, error messages, names of types and the length checks of correct `zip` calls are not
mistakes, and are left out.
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
# Operators without an equivalent in Python, or without use in this project.
_LEFT_OUT = ("VariableReplacer", "VariableInserter", "NoOp", "RemoveDecorator", "_Is", "_IsNot")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A change at one place of a file: the line, the text of the place before and after, and the entire text after."""

    area: str
    path: Path
    line: int
    operator: str
    before: str
    after: str
    text: str

    def report(self) -> str:
        """Returns the place and the change."""
        return f"{self.path}:{self.line}: `{self.before}` becomes `{self.after}`"

    @property
    def why_equivalent(self) -> str | None:
        """The reason why the change is known to have no effect, or None."""
        return EQUIVALENT.get(f"{self.path}: `{self.before}` becomes `{self.after}`")


def mistakes(areas: Sequence[Area], count: int, seed: int) -> list[Mistake]:
    """Returns `count` mistakes, the same number in each area, with at most one in each line."""
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
    """Returns the syntax tree as text, or None if the source does not parse."""
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
    """Returns, by line, the operators that change something there, each with the number of the change in the file."""
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
    """Returns the ranges that tests cannot observe: annotations, decorators, raised errors, aliases of types, imports
    for types, and the `strict` arguments of `zip`."""
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
