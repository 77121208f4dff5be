// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

class EnumCase<string name, int number, string text, int bitCount> {
  string symbol = name;
  int value = number;
  string str = text;
  int width = bitCount;
}
class IntEnumAttrCaseBase<I type, string name, string text, int number>
    : EnumCase<name, number, text, type.bitwidth>, SignlessIntegerAttrBase<type, "case " # text>;
class I32EnumCase<string name, int number, string text = name> : EnumCase<name, number, text, 32>;
class I64EnumCase<string name, int number, string text = name> : EnumCase<name, number, text, 64>;
class I32EnumAttrCase<string name, int number, string text = name> : IntEnumAttrCaseBase<I32, name, text, number>;
class I64EnumAttrCase<string name, int number, string text = name> : IntEnumAttrCaseBase<I64, name, text, number>;

class EnumInfo<string name, string text, list<EnumCase> cases, int bitCount> {
  string summary = text;
  string description = "Enum cases:\n" # !interleave(
      !foreach(each, cases, "* " # each.str # " (`" # each.symbol # "`)"), "\n");
  string cppNamespace = "";
  string className = name;
  string cppType = cppNamespace # "::" # className;
  list<EnumCase> enumerants = cases;
  int bitwidth = bitCount;
  string underlyingType = "uint" # bitCount # "_t";
}
class IntEnum<string name, string text, list<EnumCase> cases, int bitCount>
    : EnumInfo<name, !if(!empty(text), "allowed i" # bitCount # " cases: " #
                         !interleave(!foreach(each, cases, each.value), ", "), text), cases, bitCount>;
class I32Enum<string name, string text, list<EnumCase> cases> : IntEnum<name, text, cases, 32>;
class I64Enum<string name, string text, list<EnumCase> cases> : IntEnum<name, text, cases, 64>;

class EnumAttrInfo<string name, list<EnumCase> cases, SignlessIntegerAttrBase base>
    : EnumInfo<name, base.summary, cases, !cast<I>(base.valueType).bitwidth>, Attr<TruePred, base.summary> {
  bit genSpecializedAttr = 1;
  Attr baseAttrClass = base;
  string specializedAttrClassName = name # "Attr";
  let storageType = !if(genSpecializedAttr, cppNamespace # "::" # specializedAttrClassName, base.storageType);
  let returnType = !if(genSpecializedAttr, cppNamespace # "::" # className, base.returnType);
  let valueType = base.valueType;
}
class IntEnumAttr<I type, string name, string text, list<IntEnumAttrCaseBase> cases>
    : EnumAttrInfo<name, cases, SignlessIntegerAttrBase<type,
          !if(!empty(text), "allowed " # type.summary # " cases: " #
              !interleave(!foreach(each, cases, each.value), ", "), text)>>;
class I32EnumAttr<string name, string text, list<I32EnumAttrCase> cases> : IntEnumAttr<I32, name, text, cases>;
class I64EnumAttr<string name, string text, list<I64EnumAttrCase> cases> : IntEnumAttr<I64, name, text, cases>;

class DefaultValuedEnumAttr<EnumAttrInfo attr, EnumCase case>
    : DefaultValuedAttr<attr, attr.cppType # "::" # case.symbol>;
class EnumParameter<EnumInfo enum>
    : AttrParameter<enum.cppNamespace # "::" # enum.className, "an enum of type " # enum.className>;
class EnumAttr<Dialect dialect, EnumInfo info, string keyword = "", list<Trait> defTraits = []>
    : AttrDef<dialect, info.className, defTraits> {
  let summary = info.summary;
  let description = info.description;
  let cppNamespace = info.cppNamespace;
  let returnType = info.cppNamespace # "::" # info.className;
  let parameters = (ins EnumParameter<info>:$value);
  let mnemonic = keyword;
  let assemblyFormat = "$value";
  EnumInfo enum = info;
}
