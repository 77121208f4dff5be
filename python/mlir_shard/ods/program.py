# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates a TableGen program, its classes, defs and other statements, into records.

The semantics are those of the TableGen Programmer's Reference (llvm.org/docs/TableGen/ProgRef); multiclasses are
not supported, because ODS does not need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lark import Token, Tree

from mlir_shard.ods.expressions import Expressions, Node, location_of, trees_of, type_of
from mlir_shard.ods.loader import PRELUDE, Loader
from mlir_shard.ods.records import NO_FIELDS, UNSET, Field, FieldType, Record, Scope, Value, convert
from mlir_shard.ods.source import Location, OdsError, did_you_mean


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    type: FieldType
    default: Node | None


@dataclass(frozen=True, slots=True)
class _Class:
    """A class as written; `scope` is the enclosing scope."""

    name: str
    location: Location
    parameters: tuple[_Parameter, ...]
    parents: tuple[Node, ...]
    body: tuple[Node, ...]
    scope: Scope


class Program:
    """The records of a `.td` file and of all included files."""

    def __init__(self, path: Path, include_directories: Sequence[Path] = ()) -> None:
        self.records: dict[str, Record] = {}
        self._classes: dict[str, _Class] = {}
        self._globals: dict[str, Value] = {}
        self._loader = Loader(include_directories)
        self._expressions = Expressions(self)
        # The `let ... in` statements around the statement that is being run.
        self._bindings: list[tuple[Node, Scope]] = []
        self._run_file(path)

    def defs(self, class_name: str) -> list[Record]:
        """Returns the defs of a class, in order."""
        return [record for record in self.records.values() if record.is_a(class_name)]

    def find_record(self, name: str) -> Record | None:
        """Returns the `def` of this name; None if it has not been run."""
        return self.records.get(name)

    def is_class(self, name: str) -> bool:
        """Returns whether a class of this name has been run."""
        return name in self._classes

    def names(self) -> list[str]:
        """Returns the names of the classes and defs that have been run."""
        return [*self.records, *self._classes]

    def instantiate(self, name: Token, arguments: Node | None, scope: Scope) -> Record:
        """Returns the anonymous record `name<arguments>`."""
        location = location_of(name, scope)
        record = Record(f"anonymous_{name}", location, instance_of=str(name))
        bound = self._add_class(record, name, arguments, scope, location)
        record.instance_arguments = tuple(value() for value in bound)
        return record

    def _run_file(self, path: Path) -> None:
        source, tree = self._loader.load(path)
        self._run_all(tree, Scope(source, variables=self._globals))

    def _run_all(self, tree: Node | Token | None, scope: Scope) -> None:
        for statement in trees_of(tree):
            self._run(statement, scope)

    def _run(self, tree: Node, scope: Scope) -> None:
        method: Callable[[Node, Scope], None] = getattr(self, f"_run_{tree.data}")
        method(tree, scope)

    def _run_include(self, tree: Node, scope: Scope) -> None:
        name = str(tree.children[0])[1:-1]
        path = self._loader.included(name, location_of(tree, scope))
        if path == PRELUDE:
            self._adopt(_prelude())
        elif path is not None:
            self._run_file(path)

    def _adopt(self, other: Program) -> None:
        self.records.update(other.records)
        self._classes.update(other._classes)
        self._globals.update(other._globals)

    def _run_class(self, tree: Node, scope: Scope) -> None:
        name, template, parents, body = tree.children
        assert isinstance(name, Token)
        location = location_of(name, scope)
        known = self._classes.get(str(name))
        if known is not None and known.body:
            error = OdsError(f"class '{name}' is already defined", location)
            error.note("here", known.location)
            raise error
        self._classes[str(name)] = _Class(
            str(name), location, tuple(_parameters(template)), trees_of(parents), trees_of(body), scope
        )

    def _run_def(self, tree: Node, scope: Scope) -> None:
        name_tree, parents, body = tree.children
        assert isinstance(body, Tree)
        location = location_of(name_tree if isinstance(name_tree, Tree) else tree, scope)
        if isinstance(name_tree, Tree):
            name = self._expressions.name_text(name_tree, scope)
        else:
            name = f"anonymous_{len(self.records)}"
        if name in self.records:
            error = OdsError(f"'{name}' is already defined", location)
            error.note("here", self.records[name].location)
            raise error
        record = Record(name, location)
        known = NO_FIELDS
        for parent in trees_of(parents):
            known = known | self._add_parent(record, parent, Scope(scope.source, scope, {}, record, known))
        for bindings, outer in self._bindings:
            self._override(record, bindings, Scope(outer.source, outer, {}, record, known))
        self._add_items(record, trees_of(body), scope, known, {})
        self.records[name] = record
        # All fields are evaluated, so that errors are reported here and not when a field is first used.
        for field in record:
            record[field]

    def _run_let_in(self, tree: Node, scope: Scope) -> None:
        *bindings, block = tree.children
        pushed = [(binding, scope) for binding in bindings if isinstance(binding, Tree)]
        self._bindings.extend(pushed)
        self._run_all(block, scope)
        del self._bindings[-len(pushed) :]

    def _run_defvar(self, tree: Node, scope: Scope) -> None:
        name, value = tree.children
        assert isinstance(value, Tree)
        scope.variables[str(name)] = self._expressions.evaluate(value, scope)

    def _run_foreach(self, tree: Node, scope: Scope) -> None:
        name, items, block = tree.children
        assert isinstance(items, Tree)
        for item in self._expressions.sequence(items, scope):
            self._run_all(block, scope.nested({str(name): item}))

    def _run_if(self, tree: Node, scope: Scope) -> None:
        condition, then, otherwise = tree.children
        assert isinstance(condition, Tree)
        chosen = then if self._expressions.boolean(condition, scope) else otherwise
        if chosen is not None:
            self._run_all(chosen, scope.nested())

    def _run_assert(self, tree: Node, scope: Scope) -> None:
        condition, message = trees_of(tree)
        if not self._expressions.boolean(condition, scope):
            text = self._expressions.evaluate(message, scope)
            raise OdsError(f"assertion failed: {text}", location_of(condition, scope))

    def _add_parent(self, record: Record, tree: Node, scope: Scope) -> frozenset[str]:
        name, arguments = tree.children
        assert isinstance(name, Token)
        self._add_class(
            record, name, arguments if isinstance(arguments, Tree) else None, scope, location_of(name, scope)
        )
        return self._fields_of(str(name))

    def _fields_of(self, class_name: str) -> frozenset[str]:
        """Returns the names of the fields of a class and its base classes."""
        class_ = self._classes[class_name]
        fields = {str(item.children[1]) for item in class_.body if item.data == "field"}
        return frozenset(fields).union(*(self._fields_of(str(parent.children[0])) for parent in class_.parents))

    def _add_class(
        self, record: Record, name: Token, arguments: Node | None, scope: Scope, location: Location
    ) -> list[Callable[[], Value]]:
        """Adds the fields of a class to `record`, with values for its parameters; returns the arguments' values."""
        class_ = self._classes.get(str(name))
        if class_ is None:
            raise OdsError(f"unknown class '{name}'{did_you_mean(str(name), self._classes)}", location)
        parameters: dict[str, Callable[[], Value]] = {}
        given = self._bind(class_, trees_of(arguments), parameters, scope, location)
        known = NO_FIELDS
        for parent in class_.parents:
            inner = Scope(class_.scope.source, class_.scope, {}, record, known, parameters)
            known = known | self._add_parent(record, parent, inner)
        self._add_items(record, class_.body, class_.scope, known, parameters)
        if class_.name not in record.classes:
            record.classes.append(class_.name)
        return given

    def _bind(
        self,
        class_: _Class,
        arguments: tuple[Node, ...],
        parameters: dict[str, Callable[[], Value]],
        scope: Scope,
        location: Location,
    ) -> list[Callable[[], Value]]:
        given: dict[str, Node] = {}
        names = [parameter.name for parameter in class_.parameters]
        for position, argument in enumerate(arguments):
            place = location_of(argument, scope)
            if argument.data == "named_argument":
                name, value = str(argument.children[0]), argument.children[1]
                if name not in names:
                    raise OdsError(f"class '{class_.name}' has no parameter '{name}'{did_you_mean(name, names)}", place)
            elif position >= len(names):
                count = f"{len(names)} argument{'s' if len(names) != 1 else ''}"
                raise OdsError(f"class '{class_.name}' expects {count}, not {len(arguments)}", place)
            else:
                name, value = names[position], argument.children[0]
            assert isinstance(value, Tree)
            given[name] = value
        inner = Scope(class_.scope.source, class_.scope, parameters=parameters)
        for parameter in class_.parameters:
            if parameter.name in given:
                tree, around, place = given[parameter.name], scope, location_of(given[parameter.name], scope)
            elif parameter.default is not None:
                tree, around, place = parameter.default, inner, location
            else:
                raise OdsError(f"class '{class_.name}' needs a value for its parameter '{parameter.name}'", location)
            what = f"argument '{parameter.name}' of '{class_.name}'"
            parameters[parameter.name] = self._lazy(tree, around, parameter.type, what, place)
        return [parameters[name] for name in given]

    def _lazy(self, tree: Node, scope: Scope, type_: FieldType, what: str, location: Location) -> Callable[[], Value]:
        field = Field(type_, lambda: convert(self._expressions.evaluate(tree, scope), type_, what, location), location)
        return lambda: field.value(what)

    def _add_items(
        self,
        record: Record,
        items: tuple[Node, ...],
        around: Scope,
        known: frozenset[str],
        parameters: Mapping[str, Callable[[], Value]],
    ) -> None:
        variables: dict[str, Value] = {}
        for item in items:
            scope = Scope(around.source, around, variables, record, known, parameters)
            if item.data == "field":
                known = known | {self._add_field(record, item, scope)}
            elif item.data == "let":
                self._override(record, item, scope)
            else:
                self._run(item, scope)

    def _add_field(self, record: Record, item: Node, scope: Scope) -> str:
        type_tree, name, value = item.children
        assert isinstance(type_tree, Tree) and isinstance(name, Token)
        type_ = type_of(type_tree)
        if type_.is_class and type_.name not in self._classes:
            message = f"unknown class '{type_.name}'{did_you_mean(type_.name, self._classes)}"
            raise OdsError(message, location_of(type_tree, scope))
        record.fields[str(name)] = self._field(value, scope, type_, location_of(name, scope))
        return str(name)

    def _field(self, value: Node | Token | None, scope: Scope, type_: FieldType, location: Location) -> Field:
        if isinstance(value, Tree):
            tree = value
            return Field(type_, lambda: self._expressions.evaluate(tree, scope), location_of(tree, scope))
        return Field(type_, lambda: UNSET, location)

    def _override(self, record: Record, item: Node, scope: Scope) -> None:
        name, value = item.children
        assert isinstance(name, Token)
        former = record.fields.get(str(name))
        if former is None:
            message = f"'{record!r}' has no field '{name}' to set{did_you_mean(str(name), record.fields)}"
            raise OdsError(message, location_of(name, scope))
        kept = former
        inner = Scope(scope.source, scope, {}, overridden=(str(name), lambda: kept.value(str(name))))
        record.fields[str(name)] = self._field(value, inner, former.type, location_of(name, scope))


@cache
def _prelude() -> Program:
    """Returns the prelude, which all files share, because its definitions do not change."""
    return Program(PRELUDE)


def _parameters(template: Node | Token | None) -> Iterator[_Parameter]:
    for tree in trees_of(template):
        type_tree, name, default = tree.children
        assert isinstance(type_tree, Tree)
        yield _Parameter(str(name), type_of(type_tree), default if isinstance(default, Tree) else None)
