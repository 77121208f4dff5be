// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

class Type<Pred condition, string summary = "", string cppClass = "::mlir::Type">
    : TypeConstraint<condition, summary, cppClass> {
  string description = "";
  // The C++ that makes the type, if only one is possible; the reader maps the C++ to the type.
  string builderCall = "";
}
class TypeAlias<Type aliased, string summary = aliased.summary>
    : Type<aliased.predicate, summary, aliased.cppType> {
  let description = aliased.description;
  let builderCall = aliased.builderCall;
}
class DialectType<Dialect owner, Pred condition, string summary = "", string cppClass = "::mlir::Type">
    : Type<condition, summary, cppClass> {
  Dialect dialect = owner;
}
class BuildableType<code builder> {
  code builderCall = builder;
}
class SameBuildabilityAs<Type type, code builder> {
  code builderCall = !if(!empty(type.builderCall), "", builder);
}

class Variadic<Type type> : TypeConstraint<type.predicate, "variadic of " # type.summary, type.cppType> {
  Type baseType = type;
  int minSize = 0;
}
class Optional<Type type> : TypeConstraint<type.predicate, type.summary, type.cppType> {
  Type baseType = type;
}

class AnyTypeOf<list<Type> types, string text = "", string cppClass = "::mlir::Type">
    : Type<Or<!foreach(type, types, type.predicate)>,
           !if(!empty(text), !interleave(!foreach(type, types, type.summary), " or "), text), cppClass> {
  list<Type> allowedTypes = types;
}
class AllOfType<list<Type> types, string text = "", string cppClass = "::mlir::Type">
    : Type<And<!foreach(type, types, type.predicate)>,
           !if(!empty(text), !interleave(!foreach(type, types, type.summary), " and "), text), cppClass> {
  list<Type> allowedTypes = types;
}
class ConfinedType<Type type, list<Pred> conditions, string text = "", string cppClass = type.cppType>
    : Type<And<[type.predicate] # conditions>, text, cppClass> {
  Type baseType = type;
  list<Pred> predicateList = conditions;
}

def AnyType : Type<TruePred, "any type">;
def NoneType : Type<TruePred, "none type", "::mlir::NoneType">,
    BuildableType<"$_builder.getType<::mlir::NoneType>()">;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

class Prelude_IntegerType<int width, string kind, code builder>
    : Type<TruePred, width # "-bit" # kind # "integer", "::mlir::IntegerType">, BuildableType<builder> {
  int bitwidth = width;
}
class I<int width> : Prelude_IntegerType<width, " signless ", "$_builder.getIntegerType(" # width # ")">;
class SI<int width>
    : Prelude_IntegerType<width, " signed ", "$_builder.getIntegerType(" # width # ", /*isSigned=*/true)">;
class UI<int width>
    : Prelude_IntegerType<width, " unsigned ", "$_builder.getIntegerType(" # width # ", /*isSigned=*/false)">;
class AnyI<int width> : Type<TruePred, width # "-bit integer"> {
  int bitwidth = width;
}
class F<int width> : Type<TruePred, width # "-bit float", "::mlir::FloatType">,
    BuildableType<"$_builder.getF" # width # "Type()"> {
  int bitwidth = width;
}

foreach width = [1, 8, 16, 32, 64] in {
  def I # width : I<width>;
  def SI # width : SI<width>;
  def UI # width : UI<width>;
  def AnyI # width : AnyI<width>;
}
def I128 : I<128>;
foreach width = [16, 32, 64, 80, 128] in def F # width : F<width>;

class AnyIntOfWidths<list<int> widths>
    : AnyTypeOf<!foreach(width, widths, AnyI<width>), !interleave(widths, "/") # "-bit integer",
                "::mlir::IntegerType">;
class SignlessIntOfWidths<list<int> widths>
    : AnyTypeOf<!foreach(width, widths, I<width>), !interleave(widths, "/") # "-bit signless integer">;
class SignedIntOfWidths<list<int> widths>
    : AnyTypeOf<!foreach(width, widths, SI<width>), !interleave(widths, "/") # "-bit signed integer">;
class UnsignedIntOfWidths<list<int> widths>
    : AnyTypeOf<!foreach(width, widths, UI<width>), !interleave(widths, "/") # "-bit unsigned integer">;
class FloatOfWidths<list<int> widths>
    : AnyTypeOf<!foreach(width, widths, F<width>), !interleave(widths, "/") # "-bit float">;

def Index : Type<TruePred, "index", "::mlir::IndexType">, BuildableType<"$_builder.getIndexType()">;
def BF16 : Type<TruePred, "bfloat16 type">, BuildableType<"$_builder.getType<BFloat16Type>()">;
def TF32 : Type<TruePred, "tf32 type">, BuildableType<"$_builder.getType<FloatTF32Type>()">;
foreach format = ["8E4M3FN", "8E5M2", "8E4M3", "8E4M3FNUZ", "8E4M3B11FNUZ", "8E5M2FNUZ", "8E3M4", "4E2M1FN",
                  "6E2M3FN", "6E3M2FN", "8E8M0FNU"] in
  def F # format : Type<TruePred, "f" # format # " type">,
      BuildableType<"$_builder.getType<Float" # format # "Type>()">;

def AnyInteger : Type<TruePred, "integer", "::mlir::IntegerType">;
def AnySignlessInteger : Type<TruePred, "signless integer", "::mlir::IntegerType">;
def AnySignedInteger : Type<TruePred, "signed integer">;
def AnyUnsignedInteger : Type<TruePred, "unsigned integer">;
def AnySignlessIntegerOrIndex : Type<TruePred, "signless integer or index">;
def AnyFloat : Type<TruePred, "floating-point", "::mlir::FloatType">;
def AnyComplex : Type<TruePred, "complex-type", "::mlir::ComplexType">;
class Complex<Type type>
    : ConfinedType<AnyComplex, [type.predicate], "complex type with " # type.summary # " elements"> {
  Type elementType = type;
}
def FunctionType : Type<TruePred, "function type", "::mlir::FunctionType">;
def AnyTuple : Type<TruePred, "tuple", "::mlir::TupleType">;

//===----------------------------------------------------------------------===//
// Shaped types
//===----------------------------------------------------------------------===//

class ShapedContainerType<list<Type> types, Pred container, string text, string cppClass = "::mlir::Type">
    : Type<container, text # " of " # AnyTypeOf<types>.summary # " values", cppClass>;
class Prelude_Shaped<list<Type> types, string text, string cppClass = "::mlir::Type">
    : ShapedContainerType<types, TruePred, text, cppClass>;

class TensorOf<list<Type> types, list<Pred> conditions = [], string text = "tensor">
    : Prelude_Shaped<types, text, "::mlir::TensorType">;
class RankedTensorOf<list<Type> types, list<Pred> conditions = [], string text = "ranked tensor">
    : Prelude_Shaped<types, text, "::mlir::RankedTensorType">;
class UnrankedTensorOf<list<Type> types, list<Pred> conditions = [], string text = "unranked tensor">
    : Prelude_Shaped<types, text, "::mlir::UnrankedTensorType">;
class Non0RankedTensorOf<list<Type> types> : TensorOf<types, [], "non-0-ranked.tensor">;
class TensorRankOf<list<Type> types, list<int> ranks>
    : Prelude_Shaped<types, !interleave(!foreach(rank, ranks, rank # "D"), "/") # " tensor", "::mlir::TensorType">;
class 0DTensorOf<list<Type> types> : TensorRankOf<types, [0]>;
class 1DTensorOf<list<Type> types> : TensorRankOf<types, [1]>;
class 2DTensorOf<list<Type> types> : TensorRankOf<types, [2]>;
class 3DTensorOf<list<Type> types> : TensorRankOf<types, [3]>;
class 4DTensorOf<list<Type> types> : TensorRankOf<types, [4]>;
class StaticShapeTensorOf<list<Type> types>
    : Prelude_Shaped<types, "statically shaped tensor", "::mlir::RankedTensorType">;
class MemRefOf<list<Type> types> : Prelude_Shaped<types, "memref", "::mlir::MemRefType">;
class UnrankedMemRefOf<list<Type> types>
    : Prelude_Shaped<types, "unranked.memref", "::mlir::UnrankedMemRefType">;
class StaticShapeMemRefOf<list<Type> types>
    : Prelude_Shaped<types, "statically shaped memref", "::mlir::MemRefType">;
class VectorOfAnyRankOf<list<Type> types> : Prelude_Shaped<types, "vector", "::mlir::VectorType">;
class VectorOfNonZeroRankOf<list<Type> types> : Prelude_Shaped<types, "vector", "::mlir::VectorType">;

def AnyShaped : Prelude_Shaped<[AnyType], "shaped", "::mlir::ShapedType">;
def AnyTensor : TensorOf<[AnyType]>;
def AnyRankedTensor : RankedTensorOf<[AnyType]>;
def AnyUnrankedTensor : UnrankedTensorOf<[AnyType]>;
def AnyNon0RankedTensor : Non0RankedTensorOf<[AnyType]>;
def AnyStaticShapeTensor : StaticShapeTensorOf<[AnyType]>;
def AnyMemRef : MemRefOf<[AnyType]>;
def AnyUnrankedMemRef : UnrankedMemRefOf<[AnyType]>;
def AnyRankedOrUnrankedMemRef : AnyTypeOf<[AnyUnrankedMemRef, AnyMemRef], "ranked or unranked memref of any type values">;
def AnyStaticShapeMemRef : StaticShapeMemRefOf<[AnyType]>;
def AnyVectorOfAnyRank : VectorOfAnyRankOf<[AnyType]>;
def AnyVectorOfNonZeroRank : VectorOfNonZeroRankOf<[AnyType]>;
foreach element = [I1, I8, I16, I32, I64, F16, F32, F64, BF16] in {
  def element # Tensor : TensorOf<[element]>;
  def element # MemRef : MemRefOf<[element]>;
}
def IndexTensor : TensorOf<[Index]>;

class TypeOrValueSemanticsContainer<Type type, string name>
    : TypeConstraint<TruePred, name>;
def BoolLike : TypeOrValueSemanticsContainer<I1, "bool-like">;
def SignlessIntegerLike : TypeOrValueSemanticsContainer<AnySignlessInteger, "signless-integer-like">;
def SignlessIntegerOrIndexLike
    : TypeOrValueSemanticsContainer<AnySignlessIntegerOrIndex, "signless-integer-or-index-like">;
def FloatLike : TypeOrValueSemanticsContainer<AnyFloat, "floating-point-like">;
