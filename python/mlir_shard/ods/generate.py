# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a Python module from a `.td` file: `python -m mlir_shard.ods.generate dialect.td -I directory -o module.py`.

The module contains typed views of the operations and classes for the attributes, the dialect's model (`DIALECT`) and
its IRDL (`IRDL`, see `irdl_source`). It needs neither the `.td` file nor the parser, so it loads quickly.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mlir_shard.ods import python_source
from mlir_shard.ods.irdl_source import irdl
from mlir_shard.ods.model import DialectDef
from mlir_shard.ods.op_source import op_class
from mlir_shard.ods.python_source import attribute_class, enum_table, value_classes
from mlir_shard.ods.reader import read
from mlir_shard.ods.source import OdsError

VALUES = "mlir_shard.sharding"

_HEADER = '''\
# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Made by mlir_shard.ods.generate from {source}; changes belong there.
"""The operations and attributes of the dialect `{name}`: {summary}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlir_shard.dialects.attribute import SdyAttribute, to_attribute
from mlir_shard.dialects.op_building import (
    builtin_attribute,
    context_of,
    enum_attribute,
    enum_member,
    only,
    segment,
    set_attribute,
    type_of,
    values_of,
)
from mlir_shard.dialects.type_runs import type_run_attributes
from mlir_shard.host import ir
'''
_FORMAT_CLASSES = ("Custom", "Directive", "Group", "Literal", "TypeOf", "Variable", "Whitespace")


def module_source(dialect: DialectDef, source: str, values: str = VALUES) -> str:
    """Returns the Python module for `dialect`; `source` is the name of the source file in its header.

    `values` is the module of the dataclasses and enums that represent the dialect's attributes and enums. Raises
    OdsError if MLIR cannot register the dialect, because the module could not be used.
    """
    irdl(dialect)
    attributes = [attribute.name for attribute in dialect.attributes]
    ops = [op.name for op in dialect.ops]
    classes = [attribute_class(dialect, attribute) for attribute in dialect.attributes]
    classes += [op_class(dialect, op) for op in dialect.ops]
    parts = [
        _header(dialect, source, values),
        _tables(dialect),
        *(f"\n\n{each}\n" for each in classes),
        f"\n\n{_tuple('OPS', ops)}",
        _tuple("ATTRIBUTES", attributes),
        f"\nDIALECT = {python_source.expression(dialect)}\n",
        "\nIRDL = irdl(DIALECT)\n",
        f"\n__all__ = {_exported([*attributes, *ops])}\n",
    ]
    return "".join(parts)


def _header(dialect: DialectDef, source: str, values: str) -> str:
    summary = (dialect.summary or dialect.name).rstrip(".")
    header = _HEADER.format(source=source, name=dialect.name, summary=summary[:1].lower() + summary[1:])
    used = python_source.class_names(dialect)
    formats = [name for name in _FORMAT_CLASSES if name in used]
    if formats:
        header += f"from mlir_shard.ods.assembly_format import {_imported(formats)}\n"
    header += "from mlir_shard.ods.irdl_source import irdl\n"
    header += f"from mlir_shard.ods.model import {_imported(sorted(used - set(formats)))}\n"
    enums = sorted(enum.name for enum in dialect.enums)
    if enums:
        header += f"from {values} import {_imported(enums)}\n"
    # The dataclasses are only in annotations, which are never evaluated.
    others = [name for name in value_classes(dialect) if name not in enums]
    if others:
        header += f"\nif TYPE_CHECKING:\n    from {values} import {_imported(others, 4)}\n"
    return header


def _imported(names: Sequence[str], indent: int = 0) -> str:
    text = ", ".join(names)
    if len(text) + indent + 60 <= python_source.WIDTH:
        return text
    pad = " " * indent
    return "(\n" + "".join(f"{pad}    {name},\n" for name in names) + f"{pad})"


def _tables(dialect: DialectDef) -> str:
    lines = []
    for enum in dialect.enums:
        entries = "".join(f"    {case.value}: {enum.name}.{case.symbol},\n" for case in enum.cases)
        lines.append(f"{enum_table(enum.name)} = {{\n{entries}}}\n")
    return "\n" + "".join(lines) if lines else ""


def _tuple(name: str, items: Sequence[str]) -> str:
    return f"{name}: tuple[type, ...] = (\n" + "".join(f"    {item},\n" for item in items) + ")\n"


def _exported(names: Sequence[str]) -> str:
    every = sorted([*names, "ATTRIBUTES", "DIALECT", "IRDL", "OPS"])
    return "[\n" + "".join(f'    "{name}",\n' for name in every) + "]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="mlir_shard.ods.generate", description="Make a Python module of a dialect.")
    parser.add_argument("file", type=Path, help="the .td file that defines the dialect")
    parser.add_argument("-I", dest="include", action="append", type=Path, default=[], metavar="DIR",
                        help="look for included files there; may be repeated")  # fmt: skip
    parser.add_argument("-o", dest="output", type=Path, help="the module to write; standard output if not given")
    parser.add_argument("--dialect", help="the dialect to select, if the file defines several")
    parser.add_argument("--values", default=VALUES, metavar="MODULE",
                        help="the module of the classes for attribute values and enums (%(default)s)")  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        dialect = read(options.file, options.include, dialect=options.dialect)
        text = module_source(dialect, options.file.name, options.values)
    except OdsError as error:
        print(error, file=sys.stderr)
        return 1
    if options.output is None:
        sys.stdout.write(text)
    else:
        try:
            options.output.write_text(text, encoding="utf-8")
        except OSError as error:
            print(f"error: cannot write '{options.output}': {error.strerror}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
