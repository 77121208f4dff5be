# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a name in a TableGen value can refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mlir_shard.ods.records import Record, Value
from mlir_shard.ods.source import Source

NO_FIELDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scope:
    """The names visible at one place of a file.

    Local variables come first, then the fields of the record being made that the class around the place knows,
    then template parameters, and then what encloses the place. `overridden` is the field whose former value a
    `let` may use, and that value.
    """

    source: Source
    enclosing: Scope | None = None
    variables: dict[str, Value] = field(default_factory=dict)
    record: Record | None = None
    fields: frozenset[str] = NO_FIELDS
    parameters: Mapping[str, Callable[[], Value]] = field(default_factory=dict)
    overridden: tuple[str, Callable[[], Value]] | None = None

    def lookup(self, name: str) -> Callable[[], Value] | None:
        """How to get the value of `name`, None where no scope has it."""
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
        """All names that can be looked up."""
        yield from self.variables
        yield from self.fields
        yield from self.parameters
        if self.enclosing is not None:
            yield from self.enclosing.names()

    def nested(self, variables: dict[str, Value] | None = None) -> Scope:
        """A scope inside this one."""
        return Scope(self.source, self, variables if variables is not None else {})
