# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results of evaluating a TableGen program: records of named fields, their values, and the names of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, Union

from mlir_shard.ods.source import Location, OdsError, Source, did_you_mean


class Unset:
    """The value `?`."""

    def __repr__(self) -> str:
        return "?"


UNSET = Unset()


@dataclass(frozen=True, slots=True)
class Dag:
    """`(operator value:$name, ...)`; an omitted name is empty."""

    operator: Value
    arguments: tuple[tuple[Value, str], ...]
    locations: tuple[Location, ...]


Value = Union[int, str, tuple["Value", ...], Dag, "Record", Unset]


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field or template parameter; `name` is a keyword or, if `is_class`, the name of a class."""

    name: str
    element: FieldType | None = None
    is_class: bool = False

    def __str__(self) -> str:
        return self.name if self.element is None else f"{self.name}<{self.element}>"


class Field:
    """A field of a record: evaluated once, when first read, and converted to its declared type."""

    __slots__ = ("_evaluate", "_state", "_value", "location", "type")

    def __init__(self, type_: FieldType, evaluate: Callable[[], Value], location: Location) -> None:
        self.type = type_
        self.location = location
        self._evaluate = evaluate
        self._state = "new"
        self._value: Value = UNSET

    def value(self, name: str) -> Value:
        """Returns the value; `name` is the name of the field in error messages."""
        if self._state == "busy":
            raise OdsError(f"the value of '{name}' depends on itself", self.location)
        if self._state == "new":
            self._state = "busy"
            try:
                self._value = convert(self._evaluate(), self.type, f"'{name}'", self.location)
            finally:
                self._state = "new"
            self._state = "done"
        return self._value


_Known = TypeVar("_Known")


class Record:
    """A `def`, or the anonymous record of `Class<arguments>`."""

    def __init__(self, name: str, location: Location, instance_of: str = "") -> None:
        self.name = name
        self.location = location
        self.classes: list[str] = []
        self.fields: dict[str, Field] = {}
        # The class and the arguments of an anonymous record, as written.
        self.instance_of = instance_of
        self.instance_arguments: tuple[Value, ...] = ()

    @property
    def is_anonymous(self) -> bool:
        """Whether the record has no name of its own."""
        return bool(self.instance_of)

    def __repr__(self) -> str:
        return self.instance_of or self.name

    def is_a(self, class_name: str) -> bool:
        """Returns whether the record derives from this class."""
        return class_name in self.classes

    def __contains__(self, field: str) -> bool:
        return field in self.fields

    def __getitem__(self, field: str) -> Value:
        try:
            return self.fields[field].value(field)
        except OdsError as error:
            error.note(f"in '{self!r}'", self.location)
            raise

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def member(self, field: str, location: Location) -> Value:
        """Returns the value of the field; raises OdsError at `location` if it is missing."""
        if field not in self.fields:
            raise OdsError(f"'{self!r}' has no field '{field}'{did_you_mean(field, self.fields)}", location)
        return self[field]

    def _known(self, field: str, type_: type[_Known]) -> _Known | None:
        """Returns the value of a field if it is of this type, else None."""
        value = self[field] if field in self.fields else UNSET
        return value if isinstance(value, type_) else None

    def text(self, field: str) -> str | None:
        """Returns the value of a field that contains a string; None if it is unset or missing."""
        return self._known(field, str)

    def record(self, field: str) -> Record | None:
        """Returns the value of a field that contains a record; None if it is unset or missing."""
        return self._known(field, Record)

    def number(self, field: str) -> int | None:
        """Returns the value of a field that contains an integer; None if it is unset or missing."""
        return self._known(field, int)

    def flag(self, field: str) -> bool:
        """Returns the value of a field that contains a bit; False if it is unset or missing."""
        return field in self.fields and self[field] == 1

    def items(self, field: str) -> tuple[Value, ...]:
        """Returns the items of a field that contains a list; empty if it is unset or missing."""
        return self._known(field, tuple) or ()


def describe(value: Value) -> str:
    """Returns the description of a value in error messages."""
    if isinstance(value, Record):
        return f"'{value!r}'"
    if isinstance(value, str):
        return f'the string "{value if len(value) <= 40 else value[:37] + "..."}"'
    if isinstance(value, tuple):
        return "a list"
    if isinstance(value, Dag):
        return "a dag"
    return f"'{value}'"


def convert(value: Value, type_: FieldType, what: str, location: Location) -> Value:
    """Returns `value` converted to `type_`; raises OdsError at `location` if it does not fit."""
    if value is UNSET:
        return value
    name = type_.name
    if type_.is_class:
        fits = isinstance(value, Record) and value.is_a(name)
        expected = f"a record of class '{name}'"
    elif name == "list":
        if isinstance(value, tuple) and type_.element is not None:
            element = type_.element
            return tuple(convert(item, element, f"element {i} of {what}", location) for i, item in enumerate(value))
        fits, expected = False, f"a list of '{type_.element}'"
    elif name in ("string", "code"):
        fits, expected = isinstance(value, str), "a string"
    elif name == "bit":
        fits, expected = value in (0, 1), "0 or 1"
    elif name == "dag":
        fits, expected = isinstance(value, Dag), "a dag"
    else:
        fits, expected = isinstance(value, int), "an integer"
    if not fits:
        raise OdsError(f"{what} must be {expected}, not {describe(value)}", location)
    return value


NO_FIELDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scope:
    """The names visible at one place of a file.

    Local variables come first, then the visible fields of the record being made, then template parameters, and then the
    names of the enclosing scope. `overridden` is the field whose former value a `let` may use, and a function that
    returns this value. The field precedes all but local variables.
    """

    source: Source
    enclosing: Scope | None = None
    variables: dict[str, Value] = field(default_factory=dict)
    record: Record | None = None
    fields: frozenset[str] = NO_FIELDS
    parameters: Mapping[str, Callable[[], Value]] = field(default_factory=dict)
    overridden: tuple[str, Callable[[], Value]] | None = None

    def lookup(self, name: str) -> Callable[[], Value] | None:
        """Returns a function that returns the value of `name`; None if no scope contains the name."""
        if name in self.variables:
            value = self.variables[name]
            return lambda: value
        if self.overridden is not None and self.overridden[0] == name:
            return self.overridden[1]
        if self.record is not None and name in self.fields:
            record = self.record
            return lambda: record[name]
        if name in self.parameters:
            return self.parameters[name]
        return self.enclosing.lookup(name) if self.enclosing is not None else None

    def names(self) -> Iterator[str]:
        """Yields all names that can be looked up."""
        yield from self.variables
        yield from self.fields
        yield from self.parameters
        if self.enclosing is not None:
            yield from self.enclosing.names()

    def nested(self, variables: dict[str, Value] | None = None) -> Scope:
        """Returns a scope inside this one."""
        return Scope(self.source, self, variables if variables is not None else {})
