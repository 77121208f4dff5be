# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dialects whose own syntax is translated, and the dialects' attribute values as text."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlir_shard.asm.attributes import Aliases, AttributeSyntax
from mlir_shard.asm.cursor import Cursor
from mlir_shard.ods.model import DialectDef, OpDef


@dataclass(frozen=True)
class DialectSyntax:
    """All of a dialect's syntax: operations by their full names, and attributes."""

    definition: DialectDef
    attributes: AttributeSyntax
    operations: Mapping[str, OpDef]

    @staticmethod
    def of(attributes: AttributeSyntax) -> DialectSyntax:
        """The syntax of the dialect that `attributes` belongs to."""
        definition = attributes.definition
        return DialectSyntax(definition, attributes, {f"{definition.name}.{op.mnemonic}": op for op in definition.ops})

    def read_named_attribute(self, cursor: Cursor, aliases: Aliases | None) -> tuple[str, Any]:
        """The mnemonic and value of the attribute `#ns.mnemonic...` or `#ns<mnemonic...>` at the cursor."""
        cursor.expect("#")
        cursor.expect(self.definition.name)
        pretty = cursor.accept(".")
        if not pretty:
            cursor.expect("<")
        cursor.skip_space()
        start = cursor.position
        mnemonic = cursor.identifier() or ""
        if self.definition.attribute(mnemonic) is None:
            near = difflib.get_close_matches(mnemonic, [a.mnemonic for a in self.definition.attributes])
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise cursor.error(f"the {self.definition.name} dialect has no attribute '{mnemonic}'{hint}", start)
        value = self.attributes.parse(mnemonic, cursor, aliases)
        if not pretty:
            cursor.expect(">")
        return mnemonic, value

    def named_attribute(self, mnemonic: str, text: str) -> str:
        """The attribute with its name in front of `text`, in the form that MLIR prints."""
        namespace = self.definition.name
        return f"#{namespace}.{mnemonic}{text}" if text.startswith("<") else f"#{namespace}<{mnemonic}{text}>"


SYNTAXES: dict[str, DialectSyntax] = {}
"""The syntaxes in use, by dialect name."""


def register(attributes: AttributeSyntax) -> None:
    """Has text translated for a dialect from now on; a dialect registered before is replaced."""
    syntax = DialectSyntax.of(attributes)
    SYNTAXES[syntax.definition.name] = syntax
