# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a dialect from ODS, the definitions of operations, attributes and types in TableGen."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TypeVar

from mlir_shard.ods import format_parser
from mlir_shard.ods.assembly_format import AssemblyFormat
from mlir_shard.ods.constraint_reader import ConstraintReader, Variable, line
from mlir_shard.ods.model import (
    AttrDef,
    DialectDef,
    EnumCase,
    EnumDef,
    OpDef,
    ParametricDef,
    TraitArgument,
    TraitRef,
    TypeDef,
)
from mlir_shard.ods.program import Program
from mlir_shard.ods.records import Dag, Record, Value
from mlir_shard.ods.source import LocatedText, OdsError, did_you_mean

_Definition = TypeVar("_Definition")
_Parametric = TypeVar("_Parametric", bound=ParametricDef)


def read(
    path: str | PathLike[str], include_dirs: Sequence[str | PathLike[str]] = (), *, dialect: str | None = None
) -> DialectDef:
    """Returns the dialect that the `.td` file at `path` defines, or the one called `dialect` if several are visible.

    Included files are searched beside the file and in `include_dirs`; upstream's files (`mlir/...`) may be missing.
    Raises OdsError, whose text is a diagnostic with file, line and column, if a definition is invalid.
    """
    program = Program(Path(path), [Path(directory) for directory in include_dirs])
    return _Reader(program, _choose(program, Path(path), dialect)).dialect()


def clean(text: str | None) -> str:
    """Returns a description without the indentation of its file; `}\\]` stands for the end of a code block."""
    return textwrap.dedent((text or "").strip("\n").replace("}\\]", "}]")).strip()


def _choose(program: Program, path: Path, name: str | None) -> Record:
    dialects = program.defs("Dialect")
    names = [str(record["name"]) for record in dialects]
    if name is not None:
        for record in dialects:
            if record["name"] == name:
                return record
        raise OdsError(f"'{path}' defines no dialect '{name}'{did_you_mean(name, names)}")
    # The definitions in the file itself, not in included ones, belong to its own dialect.
    here = str(path)
    owners = [
        record.record(field)
        for class_name, field in (("Op", "opDialect"), ("AttrDef", "dialect"), ("TypeDef", "dialect"))
        for record in program.defs(class_name)
        if record.location.source.name == here
    ]
    own = [record for record in dialects if record in owners]
    own = own or [record for record in dialects if record.location.source.name == here] or dialects
    if not own:
        raise OdsError(f"'{path}' defines no dialect")
    if len(own) > 1:
        listed = ", ".join(str(record["name"]) for record in own)
        raise OdsError(f"'{path}' defines several dialects, {listed}: specify one of them", own[-1].location)
    return own[0]


class _Reader:
    def __init__(self, program: Program, dialect: Record) -> None:
        self._dialect = dialect
        self._namespace = dialect.text("cppNamespace") or ""
        self._attributes = [record for record in program.defs("AttrDef") if record.record("dialect") is dialect]
        self._types = [record for record in program.defs("TypeDef") if record.record("dialect") is dialect]
        self._ops = [record for record in program.defs("Op") if record.record("opDialect") is dialect]
        self._enums = [
            record for record in program.defs("EnumInfo") if record.text("cppNamespace") in ("", self._namespace)
        ]
        self._constraints = ConstraintReader(dialect, self._attributes, self._enums)

    def dialect(self) -> DialectDef:
        return DialectDef(
            str(self._dialect["name"]),
            self._namespace,
            line(self._dialect.text("summary")),
            clean(self._dialect.text("description")),
            ops=_unique(self._ops, "opName", self._op),
            attributes=_unique(self._attributes, "mnemonic", partial(self._parametric, AttrDef)),
            types=_unique(self._types, "mnemonic", partial(self._parametric, TypeDef)),
            enums=_unique(self._enums, "className", self._enum),
        )

    def _op(self, record: Record) -> OpDef:
        successors = _variables(record, "successors")
        if successors:
            raise OdsError("ops with successors are not supported", successors[0].location)
        op = OpDef(
            mnemonic=str(record["opName"]),
            name=record.name.split("_", 1)[-1],
            def_name=record.name,
            summary=line(record.text("summary")),
            description=clean(record.text("description")),
            arguments=tuple(self._constraints.argument(each) for each in _variables(record, "arguments")),
            results=tuple(self._constraints.result(each) for each in _variables(record, "results")),
            regions=tuple(self._constraints.region(each) for each in _variables(record, "regions")),
            traits=_traits(record),
            assembly_format=_format(record),
            has_custom_assembly_format=record.flag("hasCustomAssemblyFormat"),
            has_verifier=record.flag("hasVerifier") or record.flag("hasRegionVerifier"),
        )
        _checked(record, lambda text: format_parser.check_op(op, text, _derived_types(record)))
        return op

    def _parametric(self, kind: type[_Parametric], record: Record) -> _Parametric:
        definition = kind(
            mnemonic=str(record["mnemonic"]),
            name=str(record["cppClassName"]),
            def_name=record.name,
            summary=line(record.text("summary")),
            description=clean(record.text("description")),
            parameters=tuple(self._constraints.parameter(each) for each in _variables(record, "parameters")),
            traits=_traits(record),
            assembly_format=_format(record),
            has_custom_assembly_format=record.flag("hasCustomAssemblyFormat"),
        )
        _checked(record, lambda text: format_parser.check_parameters(definition, text))
        return definition

    def _enum(self, record: Record) -> EnumDef:
        cases = [each for each in record.items("enumerants") if isinstance(each, Record)]
        width = record["bitwidth"]
        return EnumDef(
            str(record["className"]),
            record.name,
            line(record.text("summary")),
            clean(record.text("description")),
            tuple(EnumCase(str(case["symbol"]), _integer(case["value"]), str(case["str"])) for case in cases),
            _integer(width),
        )


def _unique(records: list[Record], field: str, read_one: Callable[[Record], _Definition]) -> tuple[_Definition, ...]:
    seen: dict[Value, Record] = {}
    definitions = []
    for record in records:
        name = record[field]
        if not isinstance(name, str):
            continue
        if name in seen:
            error = OdsError(f"'{name}' is defined twice", record.location)
            error.note("here", seen[name].location)
            raise error
        seen[name] = record
        definitions.append(read_one(record))
    return tuple(definitions)


def _variables(record: Record, field: str) -> list[Variable]:
    dag = record[field]
    if not isinstance(dag, Dag):
        return []
    places = dag.locations or (record.location,) * len(dag.arguments)
    variables = [Variable(name, value, place) for (value, name), place in zip(dag.arguments, places, strict=True)]
    seen: set[str] = set()
    for variable in variables:
        if not variable.name and field == "parameters":
            raise OdsError(f"every parameter of '{record!r}' needs a name", variable.location)
        if variable.name and variable.name in seen:
            raise OdsError(f"'{record!r}' has two {field} named '{variable.name}'", variable.location)
        seen.add(variable.name)
    return variables


def _traits(record: Record) -> tuple[TraitRef, ...]:
    found: list[TraitRef] = []
    for trait in record.items("traits"):
        assert isinstance(trait, Record)
        reference = _trait(trait)
        if reference not in found:
            found.append(reference)
    return tuple(found)


def _trait(record: Record) -> TraitRef:
    arguments = tuple(_trait_argument(argument) for argument in record.instance_arguments)
    if record.is_a("DeclareInterfaceMethods") and record.is_anonymous:
        interface, *methods = arguments
        declared = methods[0] if methods and isinstance(methods[0], tuple) else ()
        return TraitRef(str(interface), declared)
    same = tuple(str(name) for name in record.items("values")) if record.is_a("AllTypesMatch") else ()
    return TraitRef(repr(record), arguments, same)


def _derived_types(record: Record) -> list[tuple[str, str]]:
    """Returns pairs of operands or results of which the type of the first determines that of the second."""
    traits = [trait for trait in record.items("traits") if isinstance(trait, Record)]
    return [(str(trait["lhs"]), str(trait["rhs"])) for trait in traits if trait.is_a("TypesMatchWith")]


def _trait_argument(value: Value) -> TraitArgument:
    if isinstance(value, tuple):
        return tuple(_trait_argument(item) for item in value)
    return value if isinstance(value, int) else str(value) if isinstance(value, str) else repr(value)


def _format(record: Record) -> AssemblyFormat | None:
    return _checked(record, format_parser.parse)


def _checked(record: Record, work: Callable[[LocatedText], _Definition]) -> _Definition | None:
    """Returns the result of `work` for the assembly format of a record, None without one; the location of an error is
    in the format, or that of the record."""
    text = record.text("assemblyFormat")
    if text is None:
        return None
    try:
        return work(text if isinstance(text, LocatedText) else LocatedText(text, None))
    except OdsError as error:
        error.location = error.location or record.location
        error.note(f"in the assembly format of '{record!r}'", record.location)
        raise


def _integer(value: Value) -> int:
    assert isinstance(value, int)
    return value
