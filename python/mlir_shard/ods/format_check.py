# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that an assembly format says all there is to say about an op, an attribute or a type, and nothing else.

The rules are those of MLIR's own generator: a format has to be enough to build what it was printed from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mlir_shard.ods import format_parser
from mlir_shard.ods.assembly_format import Argument, Custom, Directive, Element, Group, TypeOf, Variable
from mlir_shard.ods.model import AttrDef, AttributeArgument, OpDef, Operand, RegionDef, ResultDef, TypeDef, Variadicity
from mlir_shard.ods.source import Location, OdsError, did_you_mean

# Traits with which C++ finds the types of the results.
_INFERRING = ("InferTypeOpInterface", "InferTypeOpAdaptor", "FirstAttrDerivedResultType")


def check_op(op: OpDef, text: str, derived_types: Iterable[tuple[str, str]] = ()) -> None:
    """Raises OdsError, at its place in the format `text`, for the first mistake in the format of `op`.

    `derived_types` are pairs of names: from the type of the first the type of the second can be derived.
    """
    if op.assembly_format is None:
        return
    elements = op.assembly_format
    mentioned = list(_mentions(elements))
    known = [each.name for each in (*op.arguments, *op.results, *op.regions) if each.name]
    _check_names(mentioned, known, f"'{op.name}'", text)
    directives = [element.name for element in mentioned if isinstance(element, Directive)]
    if not {"attr-dict", "attr-dict-with-keyword"} & set(directives):
        raise OdsError(f"the format of '{op.name}' has no 'attr-dict'", format_parser.locate(text, 0))
    printed = {element.name for element in _flatten(elements) if isinstance(element, Variable)}
    whole = {element.name for element in _flatten(elements) if isinstance(element, Directive)}
    parts: tuple[Operand | RegionDef, ...] = (*op.operands, *op.regions)
    for part in parts:
        kind = "operand" if isinstance(part, Operand) else "region"
        if part.name not in printed and f"{kind}s" not in whole:
            message = f"the format of '{op.name}' lacks the {kind} '{part.name}'"
            raise OdsError(message, format_parser.locate(text, 0))
    anchors: tuple[Operand | AttributeArgument | RegionDef, ...] = (*op.arguments, *op.regions)
    _check_anchors(elements, {each.name for each in anchors if _may_be_absent(each)}, op.name, text)
    _check_types(op, text, list(derived_types))


def check_parameters(definition: AttrDef | TypeDef, text: str) -> None:
    """Raises OdsError, at its place in the format `text`, for the first mistake in the format of an attribute."""
    if definition.assembly_format is None:
        return
    mentioned = list(_mentions(definition.assembly_format))
    known = [parameter.name for parameter in definition.parameters]
    _check_names(mentioned, known, f"'{definition.name}'", text)
    names = {element.name for element in mentioned if isinstance(element, Variable)}
    if "params" not in {element.name for element in mentioned if isinstance(element, Directive)}:
        for parameter in definition.parameters:
            if parameter.name not in names and not parameter.self_type:
                message = f"the format of '{definition.name}' lacks the parameter '{parameter.name}'"
                raise OdsError(message, format_parser.locate(text, 0))
    absent = {each.name for each in definition.parameters if each.optional or each.default is not None}
    _check_anchors(definition.assembly_format, absent, definition.name, text)


def _may_be_absent(part: Operand | AttributeArgument | RegionDef) -> bool:
    if isinstance(part, AttributeArgument):
        return not part.required
    # A region counts as absent where it is empty.
    return isinstance(part, RegionDef) or part.variadicity is not Variadicity.SINGLE


def _check_names(mentioned: Iterable[Element], known: list[str], owner: str, text: str) -> None:
    for element in mentioned:
        if isinstance(element, Variable) and element.name not in known:
            message = f"{owner} has nothing called '{element.name}'{did_you_mean(element.name, known)}"
            raise OdsError(message, _place(text, element.name))


def _check_anchors(elements: Iterable[Element], absent: set[str], owner: str, text: str) -> None:
    for element in elements:
        if isinstance(element, Group):
            anchor = element.anchor_element
            named = [anchor] if not isinstance(anchor, Custom) else list(anchor.arguments)
            variables = [each for each in named if isinstance(each, Variable)]
            if variables and not any(each.name in absent for each in variables):
                name = variables[0].name
                message = f"'{name}' of '{owner}' is always there, so no group can depend on it"
                raise OdsError(message, _place(text, name))
            _check_anchors(element.then + element.otherwise, absent, owner, text)


def _check_types(op: OpDef, text: str, derived_types: list[tuple[str, str]]) -> None:
    known = set(_typed(op))
    parts: tuple[Operand | ResultDef, ...] = (*op.operands, *op.results)
    known |= {part.name for part in parts if part.constraint.buildable is not None}
    values = {part.name for part in parts}
    together = [values] if op.has_trait("SameOperandsAndResultType") else []
    if op.has_trait("SameTypeOperands"):
        together.append({operand.name for operand in op.operands})
    known |= {attribute.name for attribute in op.attributes}
    together += [set(trait.same_types) for trait in op.traits if trait.same_types]
    # Each round can make known what only the one before led to.
    for _ in values:
        for group in together:
            if group & known:
                known |= group
        known |= {second for first, second in derived_types if first in known}
    if any(op.has_trait(name) for name in _INFERRING):
        known |= {result.name for result in op.results}
    for part in parts:
        if part.name not in known:
            kind = "operand" if isinstance(part, Operand) else "result"
            message = f"the format of '{op.name}' does not tell the type of the {kind} '{part.name}'"
            raise OdsError(message, format_parser.locate(text, 0))


def _typed(op: OpDef) -> Iterator[str]:
    """The operands and results whose types the format prints."""
    names = {
        "operands": [operand.name for operand in op.operands],
        "results": [result.name for result in op.results],
    }
    for element in _flatten(op.assembly_format or ()):
        arguments: tuple[object, ...] = ()
        if isinstance(element, TypeOf):
            arguments = (element.argument,)
        elif isinstance(element, Directive) and element.name == "functional-type":
            arguments = element.arguments
        for argument in arguments:
            if isinstance(argument, Variable):
                yield argument.name
            elif isinstance(argument, Directive):
                yield from names.get(argument.name, ())


def _flatten(elements: Iterable[Element]) -> Iterator[Element | Argument]:
    """The elements, also those in groups and in `custom`, `qualified` and `struct`, not those in other directives."""
    for element in elements:
        if isinstance(element, Group):
            yield from _flatten(element.then + element.otherwise)
        elif isinstance(element, Custom):
            yield from _flatten(argument for argument in element.arguments if not isinstance(argument, str))
        elif isinstance(element, Directive) and element.name in ("qualified", "struct"):
            yield from _flatten(element.arguments)
        else:
            yield element


def _mentions(elements: Iterable[Element]) -> Iterator[Element]:
    """Every variable and directive, wherever it stands."""
    for element in _flatten(elements):
        yield element
        if isinstance(element, TypeOf):
            yield from _mentions((element.argument,))
        elif isinstance(element, Directive):
            yield from _mentions(element.arguments)


def _place(text: str, name: str) -> Location | None:
    match = re.search(rf"\${re.escape(name)}\b", text)
    return format_parser.locate(text, match.start() if match is not None else 0)
