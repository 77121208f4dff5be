// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

class Trait;
class TraitList<list<Trait> traitList> : Trait {
  list<Trait> traits = traitList;
}
class NativeTrait<string name, string entity, code declaration = "", code definition = ""> : Trait {
  string trait = name;
  string cppNamespace = "::mlir::" # entity # "Trait";
  code extraConcreteClassDeclaration = declaration;
  code extraConcreteClassDefinition = definition;
}
class ParamNativeTrait<string name, string parameters, string entity>
    : NativeTrait<name # "<" # parameters # ">::Impl", entity>;
class GenInternalTrait<string name, string entity> : Trait {
  string trait = "::mlir::" # entity # "Trait::" # name;
}
class PredTrait<string text, Pred condition> : Trait {
  string summary = text;
  Pred predicate = condition;
}
class StructuralOpTrait;

class NativeOpTrait<string name, list<Trait> dependent = [], code declaration = "", code definition = "">
    : NativeTrait<name, "Op", declaration, definition> {
  list<Trait> dependentTraits = dependent;
}
class ParamNativeOpTrait<string name, string parameters, list<Trait> dependent = []>
    : ParamNativeTrait<name, parameters, "Op"> {
  list<Trait> dependentTraits = dependent;
}
class GenInternalOpTrait<string name, list<Trait> dependent = []> : GenInternalTrait<name, "Op"> {
  list<Trait> dependentTraits = dependent;
}
class PredOpTrait<string text, Pred condition, list<Trait> dependent = []> : PredTrait<text, condition> {
  list<Trait> dependentTraits = dependent;
}
class NativeAttrTrait<string name, code declaration = "", code definition = "">
    : NativeTrait<name, "Attribute", declaration, definition>;
class NativeTypeTrait<string name, code declaration = "", code definition = "">
    : NativeTrait<name, "Type", declaration, definition>;

//===----------------------------------------------------------------------===//
// Traits of ops
//===----------------------------------------------------------------------===//

def AffineScope : NativeOpTrait<"AffineScope">;
def AutomaticAllocationScope : NativeOpTrait<"AutomaticAllocationScope">;
def ResultsBroadcastableShape : NativeOpTrait<"ResultsBroadcastableShape">;
def Commutative : NativeOpTrait<"IsCommutative">;
def Idempotent : NativeOpTrait<"IsIdempotent">;
def Involution : NativeOpTrait<"IsInvolution">;
def ConstantLike : NativeOpTrait<"ConstantLike">;
def IsolatedFromAbove : NativeOpTrait<"IsIsolatedFromAbove">;
def ResultsAreFloatLike : NativeOpTrait<"ResultsAreFloatLike">;
def SameTypeOperands : NativeOpTrait<"SameTypeOperands">;
def SameOperandsShape : NativeOpTrait<"SameOperandsShape">;
def SameOperandsAndResultShape : NativeOpTrait<"SameOperandsAndResultShape">;
def SameOperandsElementType : NativeOpTrait<"SameOperandsElementType">;
def SameOperandsAndResultElementType : NativeOpTrait<"SameOperandsAndResultElementType">;
def SameOperandsAndResultType : NativeOpTrait<"SameOperandsAndResultType">;
def SameOperandsAndResultRank : NativeOpTrait<"SameOperandsAndResultRank">;
def Terminator : NativeOpTrait<"IsTerminator">;
def MemRefsNormalizable : NativeOpTrait<"MemRefsNormalizable">;
def Elementwise : NativeOpTrait<"Elementwise">;
def Scalarizable : NativeOpTrait<"Scalarizable", [Elementwise]>;
def Vectorizable : NativeOpTrait<"Vectorizable", [Elementwise]>;
def Tensorizable : NativeOpTrait<"Tensorizable", [Elementwise]>;
def ElementwiseMappable : TraitList<[Elementwise, Scalarizable, Vectorizable, Tensorizable]>;
def SingleBlock : NativeOpTrait<"SingleBlock">, StructuralOpTrait;
class SingleBlockImplicitTerminatorImpl<string op>
    : ParamNativeOpTrait<"SingleBlockImplicitTerminator", op, [SingleBlock]>, StructuralOpTrait;
class SingleBlockImplicitTerminator<string op> : TraitList<[SingleBlock, SingleBlockImplicitTerminatorImpl<op>]>;
def NoTerminator : NativeOpTrait<"NoTerminator">, StructuralOpTrait;
def NoRegionArguments : NativeOpTrait<"NoRegionArguments">, StructuralOpTrait;
class HasParent<string op> : ParamNativeOpTrait<"HasParent", op>, StructuralOpTrait;
class ParentOneOf<list<string> ops> : ParamNativeOpTrait<"HasParent", !interleave(ops, ", ")>, StructuralOpTrait;
def SymbolTable : NativeOpTrait<"SymbolTable">;
def FirstAttrDerivedResultType : GenInternalOpTrait<"FirstAttrDerivedResultType">;
def SameVariadicOperandSize : GenInternalOpTrait<"SameVariadicOperandSize">;
def SameVariadicResultSize : GenInternalOpTrait<"SameVariadicResultSize">;
def AttrSizedOperandSegments : NativeOpTrait<"AttrSizedOperandSegments">, StructuralOpTrait;
def AttrSizedResultSegments : NativeOpTrait<"AttrSizedResultSegments">, StructuralOpTrait;

//===----------------------------------------------------------------------===//
// Relations between the types of operands, results and attributes
//===----------------------------------------------------------------------===//

class AllMatch<list<string> expressions, string text> : PredOpTrait<text, TruePred>;
class AllMatchSameOperatorTrait<list<string> names, string operator, string text>
    : PredOpTrait<"all of {" # !interleave(names, ", ") # "} have same " # text, TruePred> {
  list<string> values = names;
}
class AllTypesMatch<list<string> names> : AllMatchSameOperatorTrait<names, "$_self.getType()", "type">;
class AllElementTypesMatch<list<string> names> : AllMatchSameOperatorTrait<names, "", "element type">;
class AllElementCountsMatch<list<string> names> : AllMatchSameOperatorTrait<names, "", "element count">;
class AllRanksMatch<list<string> names> : AllMatchSameOperatorTrait<names, "", "rank">;
class AllShapesMatch<list<string> names> : AllMatchSameOperatorTrait<names, "", "shape">;
class TypesMatchWith<string text, string left, string right, string transform,
                     string comparator = "std::equal_to<>()"> : PredOpTrait<text, TruePred> {
  string lhs = left;
  string rhs = right;
  string transformer = transform;
}
