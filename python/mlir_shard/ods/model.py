# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of a dialect: the result of reading its ODS definitions, and the basis of everything else.

Variadic operands and results of an operation are runs of one type each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from mlir_shard.ods.assembly_format import AssemblyFormat


class Variadicity(Enum):
    """The number of values in an operand or result of an op, or of regions in a region."""

    SINGLE = "single"
    OPTIONAL = "optional"
    VARIADIC = "variadic"


@dataclass(frozen=True, slots=True)
class TraitRef:
    """A trait or interface of an op, under its name in ODS.

    `DeclareOpInterfaceMethods<X, ["f"]>` is the trait `X` with the argument `("f",)`; `HasParent<"ModuleOp">` is
    `HasParent` with the argument `"ModuleOp"`. An argument that is a record is represented by its name.

    `same_types` are the names of the operands, results and attributes that must have the same type, for a trait such as
    `AllTypesMatch`.
    """

    name: str
    arguments: tuple[TraitArgument, ...] = ()
    same_types: tuple[str, ...] = ()


TraitArgument = str | int | tuple["TraitArgument", ...]


@dataclass(frozen=True, slots=True)
class TypeConstraint:
    """A constraint on a type; `summary` completes "must be ...".

    `buildable` is the MLIR text of the only possible type, if there is only one.
    """

    name: str
    summary: str
    buildable: str | None = None


@dataclass(frozen=True, slots=True)
class AttributeConstraint:
    """A constraint on an attribute.

    `name` is that of the ODS record (`Sdy_TensorSharding`, `I64Attr`), `storage` the C++ attribute class. The
    attribute is either one of the dialect (`attribute`, its mnemonic), an integer that represents a case of an enum of
    the dialect (`enum`, its name), or a builtin one. `value_type` is the MLIR text of the attribute's type, such as
    `i64`, if the type is known and therefore not printed; `none` for attributes without a type.
    """

    name: str
    summary: str
    storage: str
    value_type: str | None = None
    attribute: str | None = None
    enum: str | None = None


BUILTIN_ATTRIBUTES = {
    "::mlir::AffineMapAttr": ("", "affine_map"),
    "::mlir::ArrayAttr": ("Sequence[Any]", "array"),
    "::mlir::BoolAttr": ("bool", "integer"),
    "::mlir::DenseBoolArrayAttr": ("Sequence[bool]", "dense_array"),
    "::mlir::DenseF32ArrayAttr": ("Sequence[float]", "dense_array"),
    "::mlir::DenseF64ArrayAttr": ("Sequence[float]", "dense_array"),
    "::mlir::DenseI16ArrayAttr": ("Sequence[int]", "dense_array"),
    "::mlir::DenseI32ArrayAttr": ("Sequence[int]", "dense_array"),
    "::mlir::DenseI64ArrayAttr": ("Sequence[int]", "dense_array"),
    "::mlir::DenseI8ArrayAttr": ("Sequence[int]", "dense_array"),
    "::mlir::DictionaryAttr": ("Mapping[str, ir.Attribute]", "dictionary"),
    "::mlir::FlatSymbolRefAttr": ("str", "symbol_ref"),
    "::mlir::FloatAttr": ("float", "float"),
    "::mlir::IntegerAttr": ("int", "integer"),
    "::mlir::StringAttr": ("str", "string"),
    "::mlir::SymbolRefAttr": ("", "symbol_ref"),
    "::mlir::TypeAttr": ("ir.Type", "type"),
}
"""The Python type from which a builtin attribute can be made, if any, and its name in IRDL, by its C++ class."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an op, or a group of them."""

    name: str
    constraint: TypeConstraint
    summary: str = ""
    variadicity: Variadicity = Variadicity.SINGLE


@dataclass(frozen=True, slots=True)
class AttributeArgument:
    """An attribute of an op.

    `default` is the value of an omitted attribute as a C++ expression, `default_value` the same as a Python value; for
    an enum, that is the symbol of the case.
    """

    name: str
    constraint: AttributeConstraint
    summary: str = ""
    optional: bool = False
    default: str | None = None
    default_value: DefaultValue = None

    @property
    def required(self) -> bool:
        """Whether every op must have the attribute."""
        return not self.optional and self.default is None


DefaultValue = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class ResultDef:
    """A result of an op, or a group of them; `name` may be empty."""

    name: str
    constraint: TypeConstraint
    summary: str = ""
    variadicity: Variadicity = Variadicity.SINGLE


@dataclass(frozen=True, slots=True)
class RegionDef:
    """A region of an op; `blocks` is its number of blocks, if that is fixed."""

    name: str
    summary: str = ""
    blocks: int | None = None
    variadicity: Variadicity = Variadicity.SINGLE


@dataclass(frozen=True, slots=True)
class OpDef:
    """An operation; `name` is that of its C++ class and of its Python view, `MeshOp`."""

    mnemonic: str
    name: str
    def_name: str
    summary: str = ""
    description: str = ""
    arguments: tuple[Operand | AttributeArgument, ...] = ()
    results: tuple[ResultDef, ...] = ()
    regions: tuple[RegionDef, ...] = ()
    traits: tuple[TraitRef, ...] = ()
    assembly_format: AssemblyFormat | None = None
    has_custom_assembly_format: bool = False
    has_verifier: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The arguments that are operands, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Operand))

    @property
    def attributes(self) -> tuple[AttributeArgument, ...]:
        """The arguments that are attributes, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, AttributeArgument))

    def trait(self, name: str) -> TraitRef | None:
        """Returns the trait called `name` in ODS, if the op has it; else None."""
        return next((trait for trait in self.traits if trait.name == name), None)

    def has_trait(self, name: str) -> bool:
        """Returns whether the op has the trait called `name` in ODS."""
        return self.trait(name) is not None


@dataclass(frozen=True, slots=True)
class ParameterDef:
    """A parameter of an attribute or type.

    `cpp_type` is the C++ type of the parameter, of one element if it is an `array`. If the type is an attribute or an
    enum of the dialect, `attribute` is its mnemonic or `enum` its name. If an attribute of several kinds is allowed,
    `alternatives` are the mnemonics and ODS names of the kinds. `default` is a C++ expression. `self_type` is whether
    the parameter is the type of the attribute, which is printed after it.
    """

    name: str
    cpp_type: str
    summary: str = ""
    array: bool = False
    optional: bool = False
    default: str | None = None
    attribute: str | None = None
    enum: str | None = None
    alternatives: tuple[str, ...] = ()
    self_type: bool = False


@dataclass(frozen=True, slots=True)
class ParametricDef:
    """An attribute or a type of the dialect; `name` is that of its C++ class."""

    mnemonic: str
    name: str
    def_name: str
    summary: str = ""
    description: str = ""
    parameters: tuple[ParameterDef, ...] = ()
    traits: tuple[TraitRef, ...] = ()
    assembly_format: AssemblyFormat | None = None
    has_custom_assembly_format: bool = False

    def parameter(self, name: str) -> ParameterDef:
        """Returns the parameter called `name`."""
        return next(parameter for parameter in self.parameters if parameter.name == name)


class AttrDef(ParametricDef):
    """An attribute; `name` is also that of its Python class, `MeshAttr`."""

    __slots__ = ()


class TypeDef(ParametricDef):
    """A type."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class EnumCase:
    """A case of an enum: its name in code, the integer it is stored as, and the keyword it is printed as."""

    symbol: str
    value: int
    text: str


@dataclass(frozen=True, slots=True)
class EnumDef:
    """An enum; `width` is the number of bits of the integer that it is stored as."""

    name: str
    def_name: str
    summary: str = ""
    description: str = ""
    cases: tuple[EnumCase, ...] = ()
    width: int = 32

    def case(self, key: str | int) -> EnumCase | None:
        """Returns the case with this symbol, keyword or integer value; None if none exists."""
        for case in self.cases:
            if key in (case.symbol, case.text) or (isinstance(key, int) and key == case.value):
                return case
        return None


@dataclass(frozen=True, slots=True)
class DialectDef:
    """A dialect with its ops, attributes, types and enums, in the order of their definitions."""

    name: str
    cpp_namespace: str = ""
    summary: str = ""
    description: str = ""
    ops: tuple[OpDef, ...] = ()
    attributes: tuple[AttrDef, ...] = ()
    types: tuple[TypeDef, ...] = ()
    enums: tuple[EnumDef, ...] = ()

    def op(self, mnemonic: str) -> OpDef | None:
        """Returns the op of a mnemonic; None if none exists."""
        return next((op for op in self.ops if op.mnemonic == mnemonic), None)

    def attribute(self, mnemonic: str) -> AttrDef | None:
        """Returns the attribute of a mnemonic; None if none exists."""
        return next((attribute for attribute in self.attributes if attribute.mnemonic == mnemonic), None)

    def enum(self, name: str) -> EnumDef | None:
        """Returns the enum of a name; None if none exists."""
        return next((enum for enum in self.enums if enum.name == name), None)


LIMIT = 1024
OPERAND_LENGTHS = "operandSegmentSizes"
RESULT_LENGTHS = "resultSegmentSizes"


class TooManyRuns(ValueError):
    """The error for values whose types form more runs than an operation is registered with."""


def are_runs(values: Sequence[Operand | ResultDef]) -> bool:
    """Returns whether operands or results are one variadic group, and so are registered as runs."""
    return len(values) == 1 and values[0].variadicity is Variadicity.VARIADIC


def runs(types: Sequence[object]) -> list[int]:
    """Returns the length of each run of equal types. Raises TooManyRuns for more than `LIMIT` runs."""
    found = [sum(1 for _ in run) for _, run in groupby(types)]
    if len(found) > LIMIT:
        raise TooManyRuns(
            f"the types of {len(types)} values change {len(found) - 1} times, but at most {LIMIT - 1} changes are "
            "supported"
        )
    return found


def padded(found: Sequence[int]) -> list[int]:
    """Returns the lengths of runs, and zeros up to `LIMIT`."""
    return [*found, *[0] * (LIMIT - len(found))]


def lengths(types: Sequence[object]) -> list[int]:
    """Returns the length of each run of equal types, and zeros up to `LIMIT`. Raises TooManyRuns as `runs` does."""
    return padded(runs(types))


def attribute_names(op: OpDef) -> list[str]:
    """Returns the names of the attributes with the lengths of runs that the operation has."""
    return [name for name, values in ((OPERAND_LENGTHS, op.operands), (RESULT_LENGTHS, op.results)) if are_runs(values)]
