// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//===----------------------------------------------------------------------===//
// Attributes and types of a dialect
//===----------------------------------------------------------------------===//

class AttrOrTypeBuilder<dag parameters, code builder = "", string cppClass = ""> {
  dag dagParams = parameters;
  code body = builder;
  string returnType = cppClass;
}
class AttrBuilder<dag parameters, code builder = "", string cppClass = "">
    : AttrOrTypeBuilder<parameters, builder, cppClass>;
class TypeBuilder<dag parameters, code builder = "", string cppClass = "">
    : AttrOrTypeBuilder<parameters, builder, cppClass>;
class AttrBuilderWithInferredContext<dag parameters, code builder = "", string cppClass = "">
    : AttrOrTypeBuilder<parameters, builder, cppClass>;
class TypeBuilderWithInferredContext<dag parameters, code builder = "", string cppClass = "">
    : AttrOrTypeBuilder<parameters, builder, cppClass>;

class AttrOrTypeDef<list<Trait> defTraits, string base> {
  string cppBaseClassName = base;
  string description = "";
  string storageClass = "";
  string storageNamespace = "detail";
  bit genStorageClass = 1;
  bit hasStorageCustomConstructor = 0;
  dag parameters = (ins);
  list<AttrOrTypeBuilder> builders = ?;
  list<Trait> traits = defTraits;
  string mnemonic = ?;
  string assemblyFormat = ?;
  bit hasCustomAssemblyFormat = 0;
  bit genAccessors = 1;
  bit skipDefaultBuilders = 0;
  bit genVerifyDecl = 0;
  code extraClassDeclaration = "";
  code extraClassDefinition = "";
  bit genMnemonicAlias = 0;
}
class AttrDef<Dialect dialect, string name, list<Trait> defTraits = [], string base = "::mlir::Attribute">
    : DialectAttr<dialect, TruePred>, AttrOrTypeDef<defTraits, base> {
  string cppClassName = name # "Attr";
  string cppType = dialect.cppNamespace # "::" # cppClassName;
  string attrName = dialect.name # "." # mnemonic;
  let storageType = cppType;
  let returnType = cppType;
}
class TypeDef<Dialect dialect, string name, list<Trait> defTraits = [], string base = "::mlir::Type">
    : DialectType<dialect, TruePred, "", name # "Type">, AttrOrTypeDef<defTraits, base> {
  string cppClassName = name # "Type";
  string cppType = dialect.cppNamespace # "::" # cppClassName;
  string typeName = dialect.name # "." # mnemonic;
}

class AttrOrTypeParameter<string type, string text, string accessor = ""> {
  string cppType = type;
  string cppAccessorType = !if(!empty(accessor), type, accessor);
  string cppStorageType = cppType;
  string summary = text;
  string defaultValue = "";
  string syntax = ?;
  string parser = ?;
  string printer = ?;
  string convertFromStorage = "$_self";
  code allocator = ?;
  code comparator = ?;
}
class AttrParameter<string type, string text, string accessor = "">
    : AttrOrTypeParameter<type, text, accessor>;
class TypeParameter<string type, string text, string accessor = "">
    : AttrOrTypeParameter<type, text, accessor>;
class OptionalParameter<string type, string text = ""> : AttrOrTypeParameter<type, text> {
  let defaultValue = cppStorageType # "()";
}
class DefaultValuedParameter<string type, string value, string text = ""> : AttrOrTypeParameter<type, text> {
  let defaultValue = value;
}
class StringRefParameter<string text = "", string value = ""> : AttrOrTypeParameter<"::llvm::StringRef", text> {
  let cppStorageType = "std::string";
  let defaultValue = value;
}
class APIntParameter<string text> : AttrOrTypeParameter<"::llvm::APInt", text>;
class APFloatParameter<string text> : AttrOrTypeParameter<"::llvm::APFloat", text>;
class ArrayRefParameter<string element, string text = "">
    : AttrOrTypeParameter<"::llvm::ArrayRef<" # element # ">", text> {
  let cppStorageType = "::llvm::SmallVector<" # element # ">";
}
class OptionalArrayRefParameter<string element, string text = "">
    : OptionalParameter<"::llvm::ArrayRef<" # element # ">", text> {
  let cppStorageType = "::llvm::SmallVector<" # element # ">";
}
class AttributeSelfTypeParameter<string text, string type = "::mlir::Type", string builder = "">
    : AttrOrTypeParameter<type, text> {
  let defaultValue = !if(!empty(builder), "::mlir::NoneType::get($_ctxt)", builder);
}
class ArrayOfAttr<Dialect dialect, string name, string keyword, string element, list<Trait> defTraits = []>
    : AttrDef<dialect, name, defTraits> {
  let parameters = (ins OptionalArrayRefParameter<element>:$value);
  let mnemonic = keyword;
  let assemblyFormat = "`[` (`]`) : ($value^ `]`)?";
  let returnType = "::llvm::ArrayRef<" # element # ">";
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class Successor<Pred condition, string summary = ""> : SuccessorConstraint<condition, summary>;
def AnySuccessor : Successor<?, "any successor">;
class VariadicSuccessor<Successor one> : Successor<one.predicate, one.summary>;

class Region<Pred condition, string summary = ""> : RegionConstraint<condition, summary>;
def AnyRegion : Region<TruePred, "any region">;
class SizedRegion<int count> : Region<TruePred, "region with " # count # " blocks"> {
  int blocks = count;
}
class MinSizedRegion<int count> : Region<TruePred, "region with at least " # count # " blocks">;
class MaxSizedRegion<int count> : Region<TruePred, "region with at most " # count # " blocks">;
class VariadicRegion<Region one> : Region<one.predicate, one.summary>;

class OpVariable<Constraint what, string text = "", list<OpVariableDecorator> decoration = []> {
  Constraint constraint = what;
  string summary = text;
  list<OpVariableDecorator> decorators = decoration;
}
class Arg<Constraint constraint, string text = "", list<OpVariableDecorator> decoration = []>
    : OpVariable<constraint, text, decoration>;
class Res<Constraint constraint, string text = "", list<OpVariableDecorator> decoration = []>
    : OpVariable<constraint, text, decoration>;

class OpBuilder<dag parameters, code builder = ""> {
  dag dagParams = parameters;
  code body = builder;
}
class OpDocGroup {
  string summary;
  string description;
}

class Op<Dialect dialect, string mnemonic, list<Trait> props = []> {
  Dialect opDialect = dialect;
  string opName = mnemonic;
  string cppNamespace = dialect.cppNamespace;
  string summary = "";
  string description = "";
  OpDocGroup opDocGroup = ?;
  dag arguments = (ins);
  dag results = (outs);
  dag regions = (region);
  dag successors = (successor);
  list<Trait> traits = props;
  list<OpBuilder> builders = ?;
  bit skipDefaultBuilders = 0;
  string assemblyFormat = ?;
  bit hasCustomAssemblyFormat = 0;
  bit hasVerifier = 0;
  bit hasRegionVerifier = 0;
  bit hasCanonicalizer = 0;
  bit hasCanonicalizeMethod = 0;
  bit hasFolder = 0;
  bit useCustomPropertiesEncoding = 0;
  code extraClassDeclaration = ?;
  code extraClassDefinition = ?;
}
class Arguments<dag values> {
  dag arguments = values;
}
class Results<dag values> {
  dag results = values;
}
