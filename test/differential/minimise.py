# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Minimises programs: removes operations, annotations and functions while a predicate still holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from differential.program import Body, Function, Mark, Part, Program, Statement, Tied, Value

# Returns True if the text of a program still shows the difference.
Shows = Callable[[str], bool]
Source = Callable[[Value], Statement]
_AXIS = re.compile(r'"\w+"(?::\(\d+\)\d+)?(?:, (?=["?]))?')
_PRIORITY = re.compile(r"(?<=\})p\d")
_LIST = re.compile(r", (?:replicated|unreduced)=\{[^}]*\}")
_OPEN = re.compile(r"(?<=[,{ ])\?(?=\})")


def source(value: Value) -> Statement:
    """Returns an operation without operands and without a sharding rule that defines a value."""
    return Statement((value,), (f'"stablehlo.custom_call"() <{{call_target_name = "source"}}> : () -> {value.type}',))


def minimise(program: Program, shows: Shows, source: Source = source) -> str:
    """Returns the text of a program from which nothing can be removed such that `shows` still holds.

    If a value is needed but its operation is not, `source` defines it.
    """
    # Candidates before the last successful one are tried again only after all others have been tried.
    tried, is_finished = 0, False
    while not is_finished:
        is_finished = tried == 0
        for index, candidate in enumerate(_candidates(program, source)):
            if index >= tried and shows(candidate.write()):
                program, tried, is_finished = candidate, index, False
                break
        else:
            tried = 0
    text = program.write()
    for pattern in (_LIST, _PRIORITY, _AXIS, _OPEN):
        text = _without_matches(text, pattern, shows)
    return text


def _without_matches(text: str, pattern: re.Pattern[str], shows: Shows) -> str:
    at = 0
    while found := pattern.search(text, at):
        candidate = text[: found.start()] + text[found.end() :]
        if shows(candidate):
            text, at = candidate, found.start()
        else:
            at = found.end()
    return text


def _candidates(program: Program, source: Source) -> Iterator[Program]:
    """Returns programs with one part less, the largest cuts first."""
    for index, function in enumerate(program.functions):
        if index and not re.search(rf"@{function.name}\b", program.write().replace(f"private @{function.name}(", "")):
            yield replace(program, functions=program.functions[:index] + program.functions[index + 1 :])
        for smaller in _smaller_functions(function, source, is_main=index == 0):
            yield replace(program, functions=(*program.functions[:index], smaller, *program.functions[index + 1 :]))
    for mesh in program.meshes:
        yield replace(program, meshes=tuple(other for other in program.meshes if other is not mesh))


def _smaller_functions(function: Function, source: Source, *, is_main: bool) -> Iterator[Function]:
    text = function.write()
    if is_main:
        for one in function.returned:
            yield replace(function, returned=tuple(other for other in function.returned if other is not one))
        for one in function.arguments:
            if len(re.findall(rf"{one.value.name}\b", text)) == 1:
                yield replace(function, arguments=tuple(other for other in function.arguments if other is not one))
    for statement in reversed(list(_all(function.statements))):
        if not statement.is_terminator:
            yield from _without(function, statement, text, source)
    for arguments in _unmarked(function.arguments):
        yield replace(function, arguments=arguments)
    for returned in _unmarked(function.returned):
        yield replace(function, returned=returned)


def _unmarked(tied: tuple[Tied, ...]) -> Iterator[tuple[Tied, ...]]:
    for index, one in enumerate(tied):
        if one.mark.text:
            yield (*tied[:index], replace(one, mark=Mark("")), *tied[index + 1 :])


def _all(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in statements:
        yield statement
        for part in statement.parts:
            if isinstance(part, Body):
                yield from _all(part.statements)


def _without(function: Function, statement: Statement, text: str, source: Source) -> Iterator[Function]:
    """Returns the function without a statement, with another value or a new one for its results; or without a mark."""
    used = [value for value in statement.results if len(re.findall(rf"{value.name}\b", text)) > 1]
    if not used:
        yield _replaced(function, statement, ())
        return
    if len(used) == 1:
        for value in _earlier(function, statement):
            if value.type == used[0].type:
                yield _renamed(_replaced(function, statement, ()), used[0], value)
    sources = tuple(source(value) for value in used)
    if not any(statement.parts == one.parts for one in sources):
        yield _replaced(function, statement, sources)
    for index, part in enumerate(statement.parts):
        if isinstance(part, Mark) and part.text:
            parts = (*statement.parts[:index], Mark(""), *statement.parts[index + 1 :])
            yield _replaced(function, statement, (replace(statement, parts=parts),))


def _earlier(function: Function, statement: Statement) -> list[Value]:
    values = [one.value for one in function.arguments]
    for one in function.statements:
        if any(inner is statement for inner in _all((one,))):
            break
        values += one.results
    return values


def _replaced(function: Function, statement: Statement, others: tuple[Statement, ...]) -> Function:
    """Returns the function with one statement replaced by others."""
    return replace(function, statements=_replace(function.statements, statement, others))


def _replace(statements: tuple[Statement, ...], old: Statement, new: tuple[Statement, ...]) -> tuple[Statement, ...]:
    replaced: list[Statement] = []
    for statement in statements:
        if statement is old:
            replaced += new
            continue
        parts = tuple(
            replace(part, statements=_replace(part.statements, old, new)) if isinstance(part, Body) else part
            for part in statement.parts
        )
        # Unchanged statements stay identical objects, by which they are found again.
        replaced.append(statement if parts == statement.parts else replace(statement, parts=parts))
    return tuple(replaced)


def _renamed(function: Function, old: Value, new: Value) -> Function:
    def rename(part: Part) -> Part:
        if isinstance(part, Body):
            return replace(part, statements=tuple(in_statement(one) for one in part.statements))
        return re.sub(rf"{old.name}\b", new.name, part) if isinstance(part, str) else part

    def in_statement(statement: Statement) -> Statement:
        return replace(statement, parts=tuple(rename(part) for part in statement.parts))

    returned = tuple(replace(one, value=new) if one.value == old else one for one in function.returned)
    return replace(function, statements=tuple(map(in_statement, function.statements)), returned=returned)
