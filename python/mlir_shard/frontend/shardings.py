# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding of each tensor of a program, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.passes import diagnostic
from mlir_shard.passes.fitted_table import FittedTable, as_text
from mlir_shard.runtime import names
from mlir_shard.runtime.interface import entry_function
from mlir_shard.sharding import TensorSharding

_WIDTH = 1000
"""The width of tables as text, which is large enough for any table."""


@dataclass(frozen=True, slots=True)
class NamedSharding:
    """A tensor of a program and its sharding; None if it has no sharding.

    Attributes:
        kind: `argument`, `value` or `result`.
        name: the name of the argument or result, or of the location of the op.
        type: the type in MLIR's syntax.
        sharding: the sharding after propagation.
        place: `file:line:column` of the op; empty if unknown.
    """

    kind: str
    name: str
    type: str
    sharding: TensorSharding | None
    place: str = ""


@dataclass(frozen=True, slots=True)
class Shardings(Mapping[str, TensorSharding | None]):
    """The shardings of a program: arguments, the results of ops in program order, and results.

    It is a mapping from names: a key is the name or path of an argument or result, or the name of a location. If
    several tensors match, the first one is used.
    """

    tensors: tuple[NamedSharding, ...]

    def __getitem__(self, name: str) -> TensorSharding | None:
        for kind in ("argument", "result", "value"):
            for one in self.tensors:
                if one.kind == kind and names.matches(name, one.name):
                    return one.sharding
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(one.name for one in self.tensors))

    def __len__(self) -> int:
        return len(dict.fromkeys(one.name for one in self.tensors))

    def of(self, kind: str) -> dict[str, TensorSharding | None]:
        """Returns the shardings of tensors of one kind, `argument`, `value` or `result`, by name."""
        return {one.name: one.sharding for one in reversed(self.tensors) if one.kind == kind}

    def __rich__(self) -> FittedTable:
        rows = [(one.kind, one.name, one.type, str(one.sharding or ""), one.place) for one in self.tensors]
        return FittedTable(("", "name", "type", "sharding", "at"), rows, has_line=True)

    def _repr_html_(self) -> str:
        return self.__rich__()._repr_html_()

    def __str__(self) -> str:
        return as_text(self.__rich__(), _WIDTH)

    __repr__ = __str__


def shardings_of(module: Any, function: str) -> Shardings:
    """Returns the current shardings of a function of a module."""
    op = entry_function(module, function)
    type_ = op.attributes["function_type"].value
    arguments = op.regions[0].blocks[0].arguments
    found = [
        NamedSharding("argument", name, str(value.type), sdy.get_sharding(value))
        for name, value in zip(names.argument_names(op), arguments, strict=True)
    ]
    found += [
        NamedSharding("value", name, str(value.type), sdy.get_sharding(value), _place(one.location))
        for name, one in names.named_values(op)
        for value in one.results
    ]
    found += [
        NamedSharding("result", name, str(of), sdy.get_result_sharding(op, index))
        for index, (name, of) in enumerate(zip(names.result_names(op), type_.results, strict=True))
    ]
    return Shardings(tuple(found))


def _place(location: Any) -> str:
    position = diagnostic.at("remark", "", location).position
    return f"{position.file}:{position.line}:{position.column}" if position else ""
