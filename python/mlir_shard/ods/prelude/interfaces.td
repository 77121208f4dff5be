// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

class InterfaceTrait<string name> : NativeTrait<"", ""> {
  let trait = name # "::Trait";
  let cppNamespace = "";
  code extraTraitClassDeclaration = "";
}
class OpInterfaceTrait<string name, code verifier = "", list<Trait> dependent = []> : InterfaceTrait<name> {
  code verify = verifier;
  bit verifyWithRegions = 0;
  list<Trait> dependentTraits = dependent;
}

class InterfaceMethod<string text, string cppClass, string method, dag parameters = (ins), code methodBody = "",
                      code defaultImplementation = ""> {
  string description = text;
  string name = method;
  string returnType = cppClass;
  dag arguments = parameters;
  code body = methodBody;
  code defaultBody = defaultImplementation;
}
class StaticInterfaceMethod<string text, string cppClass, string method, dag parameters = (ins),
                            code methodBody = "", code defaultImplementation = "">
    : InterfaceMethod<text, cppClass, method, parameters, methodBody, defaultImplementation>;

class Interface<string name, list<Interface> bases = []> {
  string description = "";
  string cppInterfaceName = name;
  string cppNamespace = "";
  list<InterfaceMethod> methods = [];
  code extraClassDeclaration = "";
  code extraSharedClassDeclaration = "";
  code extraClassOf = "";
  list<Interface> baseInterfaces = bases;
}
class OpInterface<string name, list<Interface> bases = []> : Interface<name, bases>, OpInterfaceTrait<name>;
class AttrInterface<string name, list<Interface> bases = []>
    : Interface<name, bases>, InterfaceTrait<name>, Attr<TruePred, name # " instance"> {
  let storageType = !if(!empty(cppNamespace), "", cppNamespace # "::") # name;
  let returnType = storageType;
  let convertFromStorage = "$_self";
}
class TypeInterface<string name, list<Interface> bases = []>
    : Interface<name, bases>, InterfaceTrait<name>, Type<TruePred, name # " instance">;

class DeclareInterfaceMethods<list<string> methods = []> {
  list<string> alwaysOverriddenMethods = methods;
}
class DeclareOpInterfaceMethods<OpInterface interface, list<string> methods = []>
    : DeclareInterfaceMethods<methods>, OpInterface<interface.cppInterfaceName, interface.baseInterfaces>;
class DeclareAttrInterfaceMethods<AttrInterface interface, list<string> methods = []>
    : DeclareInterfaceMethods<methods>, AttrInterface<interface.cppInterfaceName, interface.baseInterfaces>;
class DeclareTypeInterfaceMethods<TypeInterface interface, list<string> methods = []>
    : DeclareInterfaceMethods<methods>, TypeInterface<interface.cppInterfaceName, interface.baseInterfaces>;

//===----------------------------------------------------------------------===//
// Upstream's interfaces, by name only
//===----------------------------------------------------------------------===//

def Symbol : OpInterface<"SymbolOpInterface">;
foreach name = ["BranchOpInterface", "BufferizableOpInterface", "BytecodeOpInterface", "CallableOpInterface",
                "CallOpInterface", "CastOpInterface", "ConditionallySpeculatable", "CopyOpInterface",
                "DataLayoutOpInterface", "DestinationStyleOpInterface", "FunctionOpInterface",
                "InferIntRangeInterface", "InferShapedTypeOpInterface", "InferTypeOpInterface", "LoopLikeOpInterface",
                "MemoryEffectsOpInterface", "OffsetSizeAndStrideOpInterface", "OpAsmOpInterface",
                "RegionBranchOpInterface", "RegionBranchTerminatorOpInterface", "RegionKindInterface",
                "ReifyRankedShapedTypeOpInterface", "SelectLikeOpInterface", "SymbolUserOpInterface",
                "TilingInterface", "VectorUnrollOpInterface", "ViewLikeOpInterface"] in
  def name : OpInterface<name>;
foreach name = ["ElementsAttrInterface", "MemRefLayoutAttrInterface", "TypedAttrInterface", "OpAsmAttrInterface"] in
  def name : AttrInterface<name>;
foreach name = ["DataLayoutTypeInterface", "MemRefElementTypeInterface", "OpAsmTypeInterface", "ShapedTypeInterface"] in
  def name : TypeInterface<name>;
def InferTypeOpAdaptor : TraitList<[DeclareOpInterfaceMethods<InferTypeOpInterface>]>;
def ReturnLike : TraitList<[RegionBranchTerminatorOpInterface, NativeOpTrait<"ReturnLike">]>;

//===----------------------------------------------------------------------===//
// Side effects
//===----------------------------------------------------------------------===//

class Resource<string name> {
  string cppResource = name;
}
def DefaultResource : Resource<"::mlir::SideEffects::DefaultResource">;
class OpVariableDecorator;
class SideEffect<string name, Resource on = DefaultResource> : OpVariableDecorator {
  string effect = name;
  Resource resource = on;
}
class MemoryEffects<list<SideEffect> sideEffects = []> : OpInterfaceTrait<"::mlir::MemoryEffectOpInterface"> {
  list<SideEffect> effects = sideEffects;
}
class MemAlloc<Resource on = DefaultResource, int stage = 0> : SideEffect<"::mlir::MemoryEffects::Allocate", on>;
class MemFree<Resource on = DefaultResource, int stage = 0> : SideEffect<"::mlir::MemoryEffects::Free", on>;
class MemRead<Resource on = DefaultResource, int stage = 0> : SideEffect<"::mlir::MemoryEffects::Read", on>;
class MemWrite<Resource on = DefaultResource, int stage = 0> : SideEffect<"::mlir::MemoryEffects::Write", on>;
def MemAlloc : MemAlloc;
def MemFree : MemFree;
def MemRead : MemRead;
def MemWrite : MemWrite;

def NoMemoryEffect : MemoryEffects<[]>;
def RecursiveMemoryEffects : NativeOpTrait<"HasRecursiveMemoryEffects">;
def AlwaysSpeculatableImplTrait : NativeOpTrait<"AlwaysSpeculatableImplTrait">;
def RecursivelySpeculatableImplTrait : NativeOpTrait<"RecursivelySpeculatableImplTrait">;
def AlwaysSpeculatable : TraitList<[ConditionallySpeculatable, AlwaysSpeculatableImplTrait]>;
def RecursivelySpeculatable : TraitList<[ConditionallySpeculatable, RecursivelySpeculatableImplTrait]>;
def Pure : TraitList<[AlwaysSpeculatable, NoMemoryEffect]>;
