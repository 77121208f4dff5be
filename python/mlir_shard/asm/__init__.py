# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parsing and printing of dialects' custom syntax, which the host does not support for dialects defined at run time.

Text is translated before the host parses it (`to_host`) and after the host prints it (`to_sdy`), according to the
assembly formats in ODS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlir_shard.asm.attributes import SYNTAXES, DialectSyntax, register
from mlir_shard.asm.cursor import AsmSyntaxError, Cursor, as_bytes
from mlir_shard.asm.to_sdy import to_sdy_syntax

if TYPE_CHECKING:
    from mlir_shard.asm.module import ParseError, bytecode_of, parse_module, print_operation

__all__ = [
    "AsmSyntaxError",
    "DialectSyntax",
    "ParseError",
    "bytecode_of",
    "mnemonic_of",
    "mnemonic_of_type",
    "parse_module",
    "parse_value",
    "print_operation",
    "print_value",
    "register",
    "to_sdy_syntax",
]


def __getattr__(name: str) -> Any:
    # Only these need the host.
    if name in ("ParseError", "bytecode_of", "parse_module", "print_operation"):
        from mlir_shard.asm import module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def parse_value(mnemonic: str, text: str, dialect: str = "sdy") -> Any:
    """Parses the value of an attribute from its text without name: `parse_value("sharding", '<@mesh, [{"x"}]>')`.

    Raises AsmSyntaxError if the text is not valid.
    """
    cursor = Cursor(as_bytes(text))
    value = SYNTAXES[dialect].parse(mnemonic, cursor)
    if not cursor.at_end():
        raise cursor.error(f"expected the end of the attribute, found {cursor.found()}")
    return value


def mnemonic_of_type(type_: type, dialect: str = "sdy") -> str:
    """Returns the mnemonic of the attribute whose values are of a class. Raises TypeError if none exists."""
    for mnemonic, known in SYNTAXES[dialect].value_types.items():
        if known is type_:
            return mnemonic
    raise TypeError(f"a value of type {type_.__name__} is not an attribute of the {dialect} dialect")


def mnemonic_of(value: Any, dialect: str = "sdy") -> str:
    """Returns the mnemonic of the attribute that has `value` as a value. Raises TypeError if none exists."""
    return mnemonic_of_type(type(value), dialect)


def print_value(value: Any, dialect: str = "sdy") -> str:
    """Returns the text of a value without its attribute's name; the inverse of `parse_value`."""
    return SYNTAXES[dialect].print(mnemonic_of(value, dialect), value)
