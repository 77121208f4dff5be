# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a dialect as IRDL, the form in which MLIR can register it at run time.

Attributes and operations are in two modules, because an attribute and an operation of the same name would clash in
one. IRDL has no optional attributes: these and constraints on types are left out; a verifier checks both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir_shard.ods.model import (
    BUILTIN_ATTRIBUTES,
    LIMIT,
    AttributeConstraint,
    DialectDef,
    OpDef,
    Operand,
    ResultDef,
    Variadicity,
    are_runs,
)
from mlir_shard.ods.source import OdsError


def irdl(dialect: DialectDef) -> tuple[str, str]:
    """Returns two modules that together define the dialect: first its attributes and types, then its operations.

    An attribute or type has a single string parameter, the text of its parameters in ODS. Raises OdsError for an
    operation with a group of regions of variable length, which IRDL cannot express.
    """
    for op in dialect.ops:
        for region in op.regions:
            if region.variadicity is not Variadicity.SINGLE:
                raise OdsError(f"'{op.name}' has a group of regions, '{region.name}', which IRDL cannot register")
    storage = [f"irdl.attribute @{attribute.mnemonic}" for attribute in dialect.attributes]
    storage += [f"irdl.type @{type_.mnemonic}" for type_ in dialect.types]
    body = ['%0 = irdl.base "#builtin.string"', "irdl.parameters(text: %0)"]
    return (
        _module(dialect, [(head, body) for head in storage]),
        _module(dialect, [(f"irdl.operation @{op.mnemonic}", _operation(dialect, op)) for op in dialect.ops]),
    )


def _module(dialect: DialectDef, definitions: Iterable[tuple[str, list[str]]]) -> str:
    lines = [f"irdl.dialect @{dialect.name} {{"]
    for head, body in definitions:
        lines += [f"  {head} {{", *(f"    {line}" for line in body), "  }"]
    return "\n".join([*lines, "}", ""])


def _operation(dialect: DialectDef, op: OpDef) -> list[str]:
    lines = []
    if op.operands:
        lines += _values("operand", op.operands)
    required = [attribute for attribute in op.attributes if attribute.required]
    for index, attribute in enumerate(required):
        lines.append(f"%attribute{index} = {_attribute(dialect, attribute.constraint)}")
    if required:
        entries = (f'"{attribute.name}" = %attribute{index}' for index, attribute in enumerate(required))
        lines.append(f"irdl.attributes {{{', '.join(entries)}}}")
    if op.results:
        lines += _values("result", op.results)
    if op.regions:
        for index, region in enumerate(op.regions):
            size = "" if region.blocks is None else f" with size {region.blocks}"
            lines.append(f"%region{index} = irdl.region{size}")
        regions = ", ".join(f"{region.name or f'region{i}'}: %region{i}" for i, region in enumerate(op.regions))
        lines.append(f"irdl.regions({regions})")
    return lines


def _values(kind: str, values: Sequence[Operand | ResultDef]) -> list[str]:
    """Returns lines for operands or results of any types: one constraint each, since a constraint is a single type."""
    forms = {Variadicity.SINGLE: "", Variadicity.OPTIONAL: "optional ", Variadicity.VARIADIC: "variadic "}
    if are_runs(values):
        slots = [(f"{kind}_run{i}", forms[Variadicity.VARIADIC]) for i in range(LIMIT)]
    else:
        slots = [(value.name or f"value{i}", forms[value.variadicity]) for i, value in enumerate(values)]
    lines = [f"%{kind}{i} = irdl.any" for i in range(len(slots))]
    named = ", ".join(f"{name}: {form}%{kind}{i}" for i, (name, form) in enumerate(slots))
    return [*lines, f"irdl.{kind}s({named})"]


def _attribute(dialect: DialectDef, constraint: AttributeConstraint) -> str:
    if constraint.attribute is not None:
        return f'irdl.base "#{dialect.name}.{constraint.attribute}"'
    builtin = "integer" if constraint.enum is not None else BUILTIN_ATTRIBUTES.get(constraint.storage, ("", None))[1]
    return "irdl.any" if builtin is None else f'irdl.base "#builtin.{builtin}"'
