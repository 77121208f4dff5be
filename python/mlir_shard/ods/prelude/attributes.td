// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

class Attr<Pred condition, string summary = ""> : AttrConstraint<condition, summary> {
  code storageType = ?;
  code returnType = ?;
  code convertFromStorage = "$_self.getValue()";
  string constBuilderCall = ?;
  string defaultValue = ?;
  // The type of the attribute, if it is known and therefore not printed.
  Type valueType = ?;
  bit isOptional = 0;
  Attr baseAttr = ?;
  string cppNamespace = "";
  string description = "";
}
class DialectAttr<Dialect owner, Pred condition, string summary = ""> : Attr<condition, summary> {
  Dialect dialect = owner;
  let cppNamespace = owner.cppNamespace;
}

class Prelude_Decorated<Attr attr> : Attr<attr.predicate, attr.summary> {
  let storageType = attr.storageType;
  let returnType = attr.returnType;
  let convertFromStorage = attr.convertFromStorage;
  let valueType = attr.valueType;
  let baseAttr = attr;
}
class OptionalAttr<Attr attr> : Prelude_Decorated<attr> {
  let isOptional = 1;
}
class DefaultValuedAttr<Attr attr, string value> : Prelude_Decorated<attr> {
  let defaultValue = value;
}
class DefaultValuedOptionalAttr<Attr attr, string value> : Prelude_Decorated<attr> {
  let defaultValue = value;
  let isOptional = 1;
}
class DefaultValuedStrAttr<Attr attr, string value> : DefaultValuedAttr<attr, "\"" # value # "\"">;
class DefaultValuedOptionalStrAttr<Attr attr, string value> : DefaultValuedOptionalAttr<attr, "\"" # value # "\"">;
class ConfinedAttr<Attr attr, list<AttrConstraint> constraints>
    : Attr<And<[attr.predicate] # !foreach(each, constraints, each.predicate)>,
           !foldl(attr.summary, constraints, text, each, text # " " # each.summary)> {
  let storageType = attr.storageType;
  let returnType = attr.returnType;
  let convertFromStorage = attr.convertFromStorage;
  let constBuilderCall = attr.constBuilderCall;
  let defaultValue = attr.defaultValue;
  let valueType = attr.valueType;
  let isOptional = attr.isOptional;
  let baseAttr = attr;
  list<AttrConstraint> attrConstraints = constraints;
}
class AnyAttrOf<list<Attr> attrs, string text = "", string cppType = "::mlir::Attribute", string fromStorage = "$_self">
    : Attr<Or<!foreach(attr, attrs, attr.predicate)>,
           !if(!empty(text), !interleave(!foreach(attr, attrs, attr.summary), " or "), text)> {
  let storageType = cppType;
  let returnType = cppType;
  let convertFromStorage = fromStorage;
  list<Attr> allowedAttributes = attrs;
}

class Prelude_Attr<string kind, string summary> : Attr<TruePred, summary> {
  let storageType = "::mlir::" # kind;
  let returnType = "::mlir::" # kind;
  let convertFromStorage = "$_self";
}
class Prelude_UntypedAttr<string kind, string summary> : Prelude_Attr<kind, summary> {
  let valueType = NoneType;
}

def AnyAttr : Prelude_Attr<"Attribute", "any attribute">;
def LocationAttr : Prelude_Attr<"LocationAttr", "location attribute">;
def UnitAttr : Prelude_UntypedAttr<"UnitAttr", "unit attribute"> {
  let defaultValue = "false";
  let isOptional = 1;
}

//===----------------------------------------------------------------------===//
// Scalars and texts
//===----------------------------------------------------------------------===//

class TypedAttrBase<Type type, string kind, Pred condition, string summary> : Attr<condition, summary> {
  let storageType = "::mlir::" # kind;
  let valueType = type;
}
class SignlessIntegerAttrBase<I type, string summary> : TypedAttrBase<type, "IntegerAttr", TruePred, summary>;
class TypedSignlessIntegerAttrBase<I type, string cppClass, string summary> : SignlessIntegerAttrBase<type, summary> {
  let returnType = cppClass;
}

def BoolAttr : Prelude_Attr<"BoolAttr", "bool attribute"> {
  let returnType = "bool";
  let valueType = I1;
}
def IndexAttr : TypedAttrBase<Index, "IntegerAttr", TruePred, "index attribute">;
def APIntAttr : Prelude_Attr<"IntegerAttr", "arbitrary integer attribute">;
foreach width = [1, 8, 16, 32, 64] in {
  defvar cppWidth = !if(!eq(width, 1), "bool", "int" # width # "_t");
  def I # width # Attr
      : TypedSignlessIntegerAttrBase<I<width>, "u" # cppWidth, width # "-bit signless integer attribute">;
  def SI # width # Attr
      : TypedAttrBase<SI<width>, "IntegerAttr", TruePred, width # "-bit signed integer attribute">;
  def UI # width # Attr
      : TypedAttrBase<UI<width>, "IntegerAttr", TruePred, width # "-bit unsigned integer attribute">;
  def AnyI # width # Attr : Prelude_Attr<"IntegerAttr", width # "-bit integer attribute">;
}
foreach width = [32, 64] in
  def F # width # Attr : TypedAttrBase<F<width>, "FloatAttr", TruePred, width # "-bit float attribute">;

class StringBasedAttr<Pred condition, string summary> : Attr<condition, summary> {
  let storageType = "::mlir::StringAttr";
  let returnType = "::llvm::StringRef";
  let valueType = NoneType;
}
def StrAttr : StringBasedAttr<TruePred, "string attribute">;
def SymbolNameAttr : StringBasedAttr<TruePred, "string attribute">;
def SymbolRefAttr : Prelude_UntypedAttr<"SymbolRefAttr", "symbol reference attribute">;
def FlatSymbolRefAttr : Prelude_UntypedAttr<"FlatSymbolRefAttr", "flat symbol reference attribute">;

class TypeAttrBase<string cppClass, string summary, Pred condition = TruePred> : Attr<condition, summary> {
  let storageType = "::mlir::TypeAttr";
  let returnType = cppClass;
  let valueType = NoneType;
}
def TypeAttr : TypeAttrBase<"::mlir::Type", "any type attribute">;
class TypeAttrOf<Type type> : TypeAttrBase<type.cppType, "type attribute of " # type.summary>;

def AffineMapAttr : Prelude_Attr<"AffineMapAttr", "AffineMap attribute"> {
  let valueType = Index;
}
def IntegerSetAttr : Prelude_UntypedAttr<"IntegerSetAttr", "IntegerSet attribute">;
def DictionaryAttr : Prelude_UntypedAttr<"DictionaryAttr", "dictionary of named attribute values">;

//===----------------------------------------------------------------------===//
// Collections
//===----------------------------------------------------------------------===//

class ElementsAttrBase<Pred condition, string summary> : Attr<condition, summary> {
  let storageType = "::mlir::ElementsAttr";
  let returnType = "::mlir::ElementsAttr";
  let convertFromStorage = "$_self";
}
def ElementsAttr : ElementsAttrBase<TruePred, "constant vector/tensor attribute">;
class DenseArrayAttrBase<string kind, string cppClass, string text>
    : ElementsAttrBase<TruePred, text # " dense array attribute"> {
  let storageType = "::mlir::" # kind;
  let returnType = "::llvm::ArrayRef<" # cppClass # ">";
}
def DenseBoolArrayAttr : DenseArrayAttrBase<"DenseBoolArrayAttr", "bool", "i1">;
foreach width = [8, 16, 32, 64] in
  def "DenseI" # width # "ArrayAttr"
      : DenseArrayAttrBase<"DenseI" # width # "ArrayAttr", "int" # width # "_t", "i" # width>;
def DenseF32ArrayAttr : DenseArrayAttrBase<"DenseF32ArrayAttr", "float", "f32">;
def DenseF64ArrayAttr : DenseArrayAttrBase<"DenseF64ArrayAttr", "double", "f64">;

class ArrayAttrBase<Pred condition, string summary> : Attr<condition, summary> {
  let storageType = "::mlir::ArrayAttr";
  let returnType = "::mlir::ArrayAttr";
  let valueType = NoneType;
  let convertFromStorage = "$_self";
}
class TypedArrayAttrBase<Attr element, string summary> : ArrayAttrBase<TruePred, summary> {
  Attr elementAttr = element;
}
def ArrayAttr : ArrayAttrBase<TruePred, "array attribute">;
def BoolArrayAttr : TypedArrayAttrBase<BoolAttr, "1-bit boolean array attribute">;
def I32ArrayAttr : TypedArrayAttrBase<I32Attr, "32-bit integer array attribute">;
def I64ArrayAttr : TypedArrayAttrBase<I64Attr, "64-bit integer array attribute">;
def F32ArrayAttr : TypedArrayAttrBase<F32Attr, "32-bit float array attribute">;
def F64ArrayAttr : TypedArrayAttrBase<F64Attr, "64-bit float array attribute">;
def StrArrayAttr : TypedArrayAttrBase<StrAttr, "string array attribute">;
def TypeArrayAttr : TypedArrayAttrBase<TypeAttr, "type array attribute">;
def DictArrayAttr : TypedArrayAttrBase<DictionaryAttr, "Array of dictionary attributes">;
def AffineMapArrayAttr : TypedArrayAttrBase<AffineMapAttr, "AffineMap array attribute">;
def SymbolRefArrayAttr : TypedArrayAttrBase<SymbolRefAttr, "symbol ref array attribute">;
def FlatSymbolRefArrayAttr : TypedArrayAttrBase<FlatSymbolRefAttr, "flat symbol ref array attribute">;

//===----------------------------------------------------------------------===//
// Constraints for ConfinedAttr
//===----------------------------------------------------------------------===//

class Prelude_Value<string text> : AttrConstraint<TruePred, text>;
class IntNEQValue<int n> : Prelude_Value<"whose minimum value is not " # n>;
class IntMinValue<int n> : Prelude_Value<"whose minimum value is " # n>;
class IntMaxValue<int n> : Prelude_Value<"whose maximum value is " # n>;
def IntNonNegative : Prelude_Value<"whose value is non-negative">;
def IntPositive : Prelude_Value<"whose value is positive">;
def IntPowerOf2 : Prelude_Value<"whose value is a power of two > 0">;
class IntIsOneOf<list<int> values> : Prelude_Value<"whose value is one of {" # !interleave(values, ", ") # "}">;
class ArrayMinCount<int n> : Prelude_Value<"with at least " # n # " elements">;
class ArrayMaxCount<int n> : Prelude_Value<"with at most " # n # " elements">;
class ArrayCount<int n> : Prelude_Value<"with exactly " # n # " elements">;
class DenseArrayCount<int n> : Prelude_Value<"with exactly " # n # " elements">;
class DenseArrayMinCt<int n> : Prelude_Value<"with at least " # n # " elements">;
class DenseArrayMaxCt<int n> : Prelude_Value<"with at most " # n # " elements">;
class DenseArrayNonNegative<DenseArrayAttrBase array> : Prelude_Value<"whose value is non-negative">;
class DenseArrayStrictlyPositive<DenseArrayAttrBase array> : Prelude_Value<"whose value is positive">;
