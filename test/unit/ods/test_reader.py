# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the model that is read from a dialect's definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlir_shard.ods.assembly_format import Directive, Group, Literal, TypeOf, Variable
from mlir_shard.ods.model import (
    AttributeArgument,
    AttributeConstraint,
    DialectDef,
    EnumCase,
    Operand,
    ParameterDef,
    RegionDef,
    ResultDef,
    TraitRef,
    TypeConstraint,
    Variadicity,
)
from mlir_shard.ods.reader import clean, read

DIALECT = """\
include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Toy_Dialect : Dialect {
  let name = "toy";
  let cppNamespace = "::toy";
  let summary = "Toys";
  let description = [{
    For children,
      and others.
  }];
}

def Toy_Color : I32EnumAttr<"Color", "a color", [I32EnumAttrCase<"Red", 0, "red">, I32EnumAttrCase<"Blue", 4>]> {
  let cppNamespace = "::toy";
}
def Toy_Size : I32Enum<"Size", "a size", [I32EnumCase<"Big", 1, "big">]> {
  let cppNamespace = "::toy";
}
def Toy_SizeAttr : EnumAttr<Toy_Dialect, Toy_Size, "size">;

def Toy_Block : TypeDef<Toy_Dialect, "Block"> {
  let mnemonic = "block";
}

def Toy_Wheel : AttrDef<Toy_Dialect, "Wheel"> {
  let mnemonic = "wheel";
  let summary = [{ A
      wheel }];
  let parameters = (ins
    "unsigned":$spokes,
    OptionalParameter<"std::optional<int64_t>", "in cm">:$radius,
    DefaultValuedParameter<"bool", "true", "whether it turns">:$turns,
    OptionalArrayRefParameter<"int64_t">:$holes,
    EnumParameter<Toy_Color>:$color,
    StringRefParameter<"who made it">:$maker
  );
  let assemblyFormat = "`<` params `>`";
}
def Toy_Axle : ArrayOfAttr<Toy_Dialect, "Axle", "axle", "WheelAttr">;

def Toy_Rollable : OpInterface<"Rollable"> {
  let description = "Can be rolled.";
  let cppNamespace = "::toy";
  let methods = [InterfaceMethod<"Rolls.", "bool", "roll", (ins "int":$far), "", "return true;">];
}

class Toy_Op<string mnemonic, list<Trait> traits = []> : Op<Toy_Dialect, mnemonic, traits>;

def Toy_CarOp : Toy_Op<"car", [
    Pure, HasParent<"GarageOp">, AttrSizedOperandSegments, DeclareOpInterfaceMethods<Toy_Rollable, ["roll"]>
  ]> {
  let summary = "A car";
  let arguments = (ins
    Arg<Toy_Block, "the body">:$body,
    Variadic<AnyTensor>:$seats,
    Optional<I32>:$driver,
    Arg<Toy_Axle, "front">:$front,
    OptionalAttr<Toy_Wheel>:$spare,
    DefaultValuedAttr<Toy_Color, "::toy::Color::Blue">:$color,
    DefaultValuedOptionalAttr<F32Attr, "1.5f">:$speed,
    DefaultValuedStrAttr<StrAttr, "car">:$label,
    UnitAttr:$fast,
    ConfinedAttr<I64Attr, [IntPositive]>:$doors,
    Toy_SizeAttr:$size
  );
  let results = (outs AnyType:$result, Variadic<AnyType>);
  let regions = (region SizedRegion<1>:$inside, VariadicRegion<AnyRegion>:$outside);
  let hasCustomAssemblyFormat = 1;
}

def Toy_RollOp : Toy_Op<"roll"> {
  let arguments = (ins Toy_Block:$block, OptionalAttr<I64Attr>:$far);
  let assemblyFormat = "$block (`by` $far^)? attr-dict";
}
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> DialectDef:
    path = tmp_path_factory.mktemp("toy") / "toy.td"
    path.write_text(DIALECT)
    return read(path)


def test_dialect(toy: DialectDef) -> None:
    assert (toy.name, toy.cpp_namespace, toy.summary) == ("toy", "::toy", "Toys")
    assert toy.description == "For children,\n  and others."
    assert [op.mnemonic for op in toy.ops] == ["car", "roll"]
    assert [attribute.mnemonic for attribute in toy.attributes] == ["size", "wheel", "axle"]
    assert toy.op("roll") is toy.ops[1] and toy.op("fly") is None
    assert toy.attribute("wheel") is toy.attributes[1] and toy.attribute("wing") is None


def test_traits(toy: DialectDef) -> None:
    car = toy.ops[0]
    assert car.traits == (
        TraitRef("Pure"),
        TraitRef("HasParent", ("GarageOp",)),
        TraitRef("AttrSizedOperandSegments"),
        TraitRef("Toy_Rollable", ("roll",)),
    )
    assert car.has_trait("Pure") and not car.has_trait("Terminator")


def test_operands(toy: DialectDef) -> None:
    car = toy.ops[0]
    assert (car.name, car.def_name, car.summary) == ("CarOp", "Toy_CarOp", "A car")
    assert car.operands == (
        Operand("body", TypeConstraint("Toy_Block", "", "!toy.block"), "the body"),
        Operand("seats", TypeConstraint("AnyTensor", "tensor of any type values"), "", Variadicity.VARIADIC),
        Operand("driver", TypeConstraint("I32", "32-bit signless integer", "i32"), "", Variadicity.OPTIONAL),
    )


def test_attribute_arguments(toy: DialectDef) -> None:
    attributes = {attribute.name: attribute for attribute in toy.ops[0].attributes}
    axle = AttributeConstraint("Toy_Axle", "", "::toy::AxleAttr", attribute="axle")
    assert attributes["front"] == AttributeArgument("front", axle, "front")
    assert attributes["spare"].optional and attributes["spare"].constraint.attribute == "wheel"
    color = attributes["color"]
    assert (color.default, color.default_value, color.optional) == ("::toy::Color::Blue", "Blue", False)
    assert (color.constraint.enum, color.constraint.value_type) == ("Color", "i32")
    assert (attributes["speed"].default_value, attributes["speed"].optional) == (1.5, True)
    assert attributes["label"].default_value == "car"
    assert attributes["fast"].optional and attributes["fast"].default is None
    doors = attributes["doors"].constraint
    assert (doors.name, doors.value_type, doors.storage) == ("I64Attr", "i64", "::mlir::IntegerAttr")
    assert doors.summary == "64-bit signless integer attribute whose value is positive"
    assert attributes["size"].constraint.attribute == "size"
    assert [name for name, each in attributes.items() if each.required] == ["front", "doors", "size"]


def test_results_and_regions(toy: DialectDef) -> None:
    car = toy.ops[0]
    any_type = TypeConstraint("AnyType", "any type")
    assert car.results == (ResultDef("result", any_type), ResultDef("", any_type, "", Variadicity.VARIADIC))
    assert car.regions == (
        RegionDef("inside", "region with 1 blocks", 1),
        RegionDef("outside", "any region", None, Variadicity.VARIADIC),
    )


def test_formats(toy: DialectDef) -> None:
    car, roll = toy.ops
    assert car.assembly_format is None and car.has_custom_assembly_format
    assert roll.assembly_format == (
        Variable("block"),
        Group((Literal("by"), Variable("far")), (), 1),
        Directive("attr-dict"),
    )


def test_parameters(toy: DialectDef) -> None:
    wheel = toy.attributes[1]
    assert (wheel.name, wheel.summary) == ("WheelAttr", "A wheel")
    assert wheel.parameters == (
        ParameterDef("spokes", "unsigned"),
        ParameterDef("radius", "int64_t", "in cm", optional=True),
        ParameterDef("turns", "bool", "whether it turns", default="true"),
        ParameterDef("holes", "int64_t", array=True, optional=True),
        ParameterDef("color", "::toy::Color", "an enum of type Color", enum="Color"),
        ParameterDef("maker", "::llvm::StringRef", "who made it"),
    )
    (value,) = toy.attributes[2].parameters
    assert (value.cpp_type, value.array, value.attribute) == ("WheelAttr", True, "wheel")
    assert toy.attributes[0].parameters[0].enum == "Size"


def test_types(toy: DialectDef) -> None:
    assert [(each.mnemonic, each.name, each.parameters) for each in toy.types] == [("block", "BlockType", ())]


def test_enums(toy: DialectDef) -> None:
    color = toy.enum("Color")
    assert color is not None
    assert color.cases == (EnumCase("Red", 0, "red"), EnumCase("Blue", 4, "Blue"))
    assert color.case("red") is color.case("Red") is color.case(0) is color.cases[0]
    assert color.case("green") is None and toy.enum("Shape") is None


def test_a_description_can_hold_the_end_of_a_code_block() -> None:
    assert clean("\n    a [{x}\\] b\n      c\n  ") == "a [{x}] b\n  c"


def test_own_constraints(tmp_path: Path) -> None:
    path = tmp_path / "t.td"
    path.write_text(
        """\
include "mlir/IR/OpBase.td"
def D : Dialect { let name = "d"; }
def Small : Type<CPred<"small($_self)">, "small thing">;
class Pair<Type t> : Type<And<[t.predicate, CPred<"pair($_self)">]>, "pair of " # t.summary>;
class Alike<list<string> names> : AllTypesMatch<names>;
def A : Op<D, "a", [Alike<["x", "r"]>]> {
  let arguments = (ins Pair<Small>:$x);
  let results = (outs AnyType:$r);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
"""
    )
    (op,) = read(path).ops
    assert op.operands[0].constraint == TypeConstraint("Pair", "pair of small thing")
    assert op.traits == (TraitRef("Alike", (("x", "r"),), ("x", "r")),)
    assert op.assembly_format == (
        Variable("x"),
        Directive("attr-dict"),
        Literal(":"),
        TypeOf(Variable("x")),
    )
