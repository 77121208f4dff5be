# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The custom syntax of sdy attributes that the assembly formats of the ODS definitions cannot express."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mlir_shard import sharding
from mlir_shard.asm import plain_shardings
from mlir_shard.asm.attributes import AttributeReader, CustomSyntax, DialectSyntax, PlainSyntax
from mlir_shard.asm.cursor import AsmSyntaxError, quoted
from mlir_shard.ods.model import DialectDef
from mlir_shard.sharding import AxisRef, Mesh, ReductionOp, factor_index, factor_symbol, verify

_PRIORITY = re.compile(r"p(0|[1-9]\d*)")
_FACTORS = re.compile(r"z_\d+|[a-z]")

_DIGITS_OF_64_BITS = 19


class _AxesAndOpenness:
    """The syntax of `"x", "y", ?`: axes from major to minor, and `?` if the dimension is open."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        cursor = reader.cursor
        axes: list[AxisRef] = []
        is_closed = True
        while not cursor.at("}"):
            if axes:
                cursor.expect(",")
            if cursor.accept("?"):
                is_closed = False
                break
            axes.append(reader.attribute("axis_ref"))
        return {"axes": tuple(axes), "is_closed": is_closed}

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        axes = [syntax.print("axis_ref", axis) for axis in value.axes]
        return ", ".join(axes if value.is_closed else [*axes, "?"])


class _Priority:
    """The syntax of a priority, `p1`, or empty text without priority."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        cursor = reader.cursor
        cursor.skip_space()
        start = cursor.position
        word = cursor.identifier()
        if word is None:
            return {"priority": None}
        match = _PRIORITY.fullmatch(word)
        if not match:
            raise AsmSyntaxError(start, f"expected a priority 'p<number>' without leading zeros, found '{word}'")
        digits = match[1]
        if len(digits) > _DIGITS_OF_64_BITS:
            raise AsmSyntaxError(start, f"the priority of {len(digits)} digits does not fit in 64 bits")
        if int(digits) >= 2**63:
            raise AsmSyntaxError(start, f"the priority {digits} does not fit in 64 bits")
        return {"priority": int(digits)}

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        return "" if value.priority is None else f"p{value.priority}"


class _MeshOrRef:
    """The syntax of a mesh name, `@mesh`, or an inlined mesh, `mesh<["x"=2]>`."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        cursor = reader.cursor
        if cursor.accept("mesh") or cursor.at("#"):
            return {"mesh_or_ref": reader.attribute("mesh")}
        return {"mesh_or_ref": cursor.required(cursor.symbol(), "a mesh, '@name' or 'mesh<...>'")}

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        mesh = value.mesh_or_ref
        if isinstance(mesh, Mesh):
            return "mesh" + syntax.print("mesh", mesh)
        return symbol(mesh)


def symbol(name: str) -> str:
    """Returns a symbol reference as MLIR prints it, quoted if the name is not an identifier."""
    return f"@{name}" if re.fullmatch(r"[A-Za-z_][\w$.]*", name) else f"@{quoted(name)}"


def _axes(syntax: DialectSyntax, axes: tuple[AxisRef, ...]) -> str:
    return "{" + ", ".join(syntax.print("axis_ref", axis) for axis in axes) + "}"


class _ReplicatedAndUnreducedAxes:
    """The syntax of `, replicated={"x"}, unreduced=max{"y"}`, both optional, in any order."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        cursor = reader.cursor
        found: dict[str, Any] = {}
        while cursor.accept(","):
            if "replicated_axes" not in found and cursor.accept("replicated"):
                cursor.expect("=")
                found["replicated_axes"] = self._axis_list(reader)
            elif "unreduced_axes" not in found and cursor.accept("unreduced"):
                cursor.expect("=")
                found["reduction_op"] = reader.enum("ReductionOp") if not cursor.at("{") else ReductionOp.SUM
                found["unreduced_axes"] = self._axis_list(reader)
            else:
                raise cursor.error(f"expected 'replicated=' or 'unreduced=' once each, found {cursor.found()}")
        return {"replicated_axes": (), "unreduced_axes": (), "reduction_op": ReductionOp.SUM, **found}

    def _axis_list(self, reader: AttributeReader) -> tuple[AxisRef, ...]:
        cursor = reader.cursor
        cursor.expect("{")
        axes: list[AxisRef] = cursor.separated(partial(reader.attribute, "axis_ref"))
        cursor.expect("}")
        return tuple(axes)

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        text = ""
        if value.replicated_axes:
            text += f", replicated={_axes(syntax, value.replicated_axes)}"
        if value.unreduced_axes:
            reduction = "" if value.reduction_op is ReductionOp.SUM else value.reduction_op.value
            text += f", unreduced={reduction}{_axes(syntax, value.unreduced_axes)}"
        return text


def _factors(reader: AttributeReader) -> tuple[int, ...]:
    """Reads the factors in one word, such as `ijz_1`."""
    start, word = reader.cursor.located(reader.cursor.identifier, "factors 'i' to 'z', 'z_1', ...")
    symbols = _FACTORS.findall(word)
    try:
        if "".join(symbols) != word:
            raise ValueError(f"'{word}' is not a sequence of the factors 'i' to 'z', 'z_1', 'z_2', ...")
        return tuple(factor_index(one) for one in symbols)
    except ValueError as error:
        raise AsmSyntaxError(start, str(error)) from None


class _FactorIndices:
    """The syntax of the factors of a dimension, such as `ij`."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        cursor = reader.cursor
        if cursor.at("]") or cursor.at(","):
            return {"factor_indices": ()}
        return {"factor_indices": _factors(reader)}

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        return str(value)


class _FactorSizes:
    """The syntax of the sizes of all factors, in order, such as ` {i=2, j=4}`."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        cursor = reader.cursor
        sizes: list[int] = []

        def read_size() -> None:
            cursor.skip_space()
            start, symbol = cursor.position, factor_symbol(len(sizes))
            if _factors(reader) != (len(sizes),):
                raise AsmSyntaxError(start, f"expected the factors in order, here '{symbol}' and its size")
            cursor.expect("=")
            sizes.append(reader.integer("factor_sizes"))

        if cursor.accept("{") and not cursor.accept("}"):
            cursor.separated(read_size)
            cursor.expect("}")
        return {"factor_sizes": tuple(sizes)}

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        if not value.factor_sizes:
            return ""
        return " {" + ", ".join(f"{factor_symbol(i)}={size}" for i, size in enumerate(value.factor_sizes)) + "}"


class _FactorsWithType:
    """The syntax of the factors of one special type, such as ` reduction={k}`."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        parameter, keyword = arguments
        cursor = reader.cursor

        def read_factor() -> int:
            cursor.skip_space()
            start, found = cursor.position, _factors(reader)
            if len(found) != 1:
                raise AsmSyntaxError(start, "expected one factor at a time, separated by commas")
            return found[0]

        factors: list[int] = []
        if cursor.accept(keyword):
            cursor.expect("=")
            cursor.expect("{")
            factors = cursor.separated(read_factor)
            cursor.expect("}")
        return {parameter: tuple(factors)}

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        parameter, keyword = arguments
        factors = getattr(value, parameter)
        return f" {keyword}={{{', '.join(map(factor_symbol, factors))}}}" if factors else ""


class _IsCustomRule:
    """The syntax of `, custom` at the end of a user's sharding rule."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        if not reader.cursor.accept(","):
            return {"is_custom_rule": False}
        reader.cursor.expect("custom")
        return {"is_custom_rule": True}

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        return ", custom" if value.is_custom_rule else ""


class _Minus:
    """The syntax of the `-` in `result-0` and `step-3`."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        reader.cursor.expect("-")
        return {}

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        return "-"


CUSTOM_SYNTAX: Mapping[str, CustomSyntax] = {
    "AxesAndOpenness": _AxesAndOpenness(),
    "Priority": _Priority(),
    "FactorIndices": _FactorIndices(),
    "MeshOrRef": _MeshOrRef(),
    "ReplicatedAndUnreducedAxes": _ReplicatedAndUnreducedAxes(),
    "FactorSizes": _FactorSizes(),
    "FactorsWithType": _FactorsWithType(),
    "IsCustomRule": _IsCustomRule(),
    "Minus": _Minus(),
}


CHECKS: Mapping[str, Callable[[Any], str | None]] = {
    "mesh_axis": verify.check_mesh_axis,
    "mesh": verify.check_mesh,
    "propagation_edges": verify.check_propagation_edges,
}


def sdy_attributes(definition: DialectDef) -> DialectSyntax:
    """Returns the syntax of the sdy dialect that `definition` defines, for the values in `mlir_shard.sharding`."""
    value_types = {attribute.mnemonic: _value_type(attribute.name) for attribute in definition.attributes}
    value_types |= {enum.name: getattr(sharding, enum.name) for enum in definition.enums}
    plain = {"sharding": PlainSyntax(plain_shardings.read, plain_shardings.printed)}
    return DialectSyntax(definition, value_types, CUSTOM_SYNTAX, CHECKS, plain)


def _value_type(attribute_class: str) -> type:
    found = getattr(sharding, attribute_class.removesuffix("Attr"))
    if not isinstance(found, type):
        raise TypeError(f"{attribute_class} has no class of values in mlir_shard.sharding")
    return found
