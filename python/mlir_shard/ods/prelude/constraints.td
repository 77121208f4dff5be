// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Predicates are C++, so they are kept but have no effect here.
class Pred;
class CPred<code expression> : Pred {
  code predExpr = expression;
}
class CombinedPred<list<Pred> parts> : Pred {
  list<Pred> children = parts;
}
class And<list<Pred> parts> : CombinedPred<parts>;
class Or<list<Pred> parts> : CombinedPred<parts>;
class Neg<Pred part> : CombinedPred<[part]>;
class SubstLeaves<string pattern, string replacement, Pred part> : CombinedPred<[part]>;
class Concat<string prefix, Pred part, string suffix> : CombinedPred<[part]>;
defvar TruePred = And<[]>;

class Constraint<Pred condition, string description = ""> {
  Pred predicate = condition;
  string summary = description;
}
class AttrTypeConstraint<Pred condition, string summary = "", string cppFunction = "">
    : Constraint<condition, summary> {
  string cppFunctionName = cppFunction;
}
class TypeConstraint<Pred condition, string summary = "", string cppClass = "::mlir::Type", string cppFunction = "">
    : AttrTypeConstraint<condition, summary, cppFunction> {
  string cppType = cppClass;
}
class AttrConstraint<Pred condition, string summary = "", string cppFunction = "">
    : AttrTypeConstraint<condition, summary, cppFunction>;
class RegionConstraint<Pred condition, string summary = ""> : Constraint<condition, summary>;
class SuccessorConstraint<Pred condition, string summary = ""> : Constraint<condition, summary>;

def ins;
def outs;
def region;
def successor;

class Dialect {
  string name = ?;
  string summary = ?;
  string description = ?;
  string cppNamespace = name;
  list<string> dependentDialects = [];
  dag discardableAttrs = (ins);
  code extraClassDeclaration = "";
  bit hasConstantMaterializer = 0;
  bit hasNonDefaultDestructor = 0;
  bit hasOperationAttrVerify = 0;
  bit hasRegionArgAttrVerify = 0;
  bit hasRegionResultAttrVerify = 0;
  bit hasOperationInterfaceFallback = 0;
  bit useDefaultAttributePrinterParser = 0;
  bit useDefaultTypePrinterParser = 0;
  bit hasCanonicalizer = 0;
  bit isExtensible = 0;
  bit usePropertiesForAttributes = 1;
}
