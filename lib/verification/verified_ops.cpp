// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "verification/verified_ops.h"

#include "ir/below.h"

#include <algorithm>
#include <array>
#include <utility>

namespace mlir_shard {

namespace {
constexpr std::array<std::string_view, 9> plainDialects = {"arith",  "chlo",   "complex", "linalg", "math",
                                                           "stablehlo", "tensor", "tosa",    "ub"};
constexpr std::array<std::string_view, 10> containerNames = {
    "builtin.module", "func.func", "scf.for", "scf.forall", "scf.if", "scf.while",
    "sdy.manual_computation", "sdy.named_computation", "stablehlo.case", "stablehlo.while"};

template <std::size_t Count> bool has(const std::array<std::string_view, Count> &names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> withSignatures(std::vector<std::string> ignored) {
  // These attributes contain the attributes of arguments and results, including the ignored ones.
  for (const Side side : bothSides)
    ignored.emplace_back(nameOf(side));
  return ignored;
}

} // namespace

VerifiedOps::VerifiedOps(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored,
                         ShardingOfResults shardingOfResults)
    : capi(capi), shardingOfResults(std::move(shardingOfResults)), functionKeys(capi, context, ignored),
      signatures(capi, context, withSignatures(ignored)),
      symbolSignatures(capi, context, {"stablehlo.mesh"}) {}

VerifiedOps::Verdict VerifiedOps::verify(MlirOperation root) { return run(root, false); }

std::vector<MlirOperation> VerifiedOps::accept(MlirOperation root) {
  unverified.clear();
  if (run(root, true) == Verdict::Unknown)
    addUnverified(root);
  return std::exchange(unverified, {});
}

// Adds the operation and all operations below it that are of sdy to `unverified`.
void VerifiedOps::addUnverified(MlirOperation op) {
  const auto add = [&](MlirOperation one) {
    if (nameOf(one).isOfSdy)
      unverified.push_back(one);
  };
  add(op);
  eachBelow(capi, op, false, add);
}

bool VerifiedOps::setKeepsSymbols(bool keeps) {
  areSymbolsRead = false;
  return std::exchange(keepsSymbols, keeps);
}

// Reads the symbols of the enclosing module. Returns false if modules are nested.
bool VerifiedOps::beginIn(MlirOperation root) {
  MlirOperation around{}, symbol{};
  std::size_t modules = 0;
  for (MlirOperation op = root, below{}; op; below = op, op = capi.mlirOperationGetParentOperation(op))
    if (nameOf(op).isModule && ++modules == 1) {
      around = op;
      symbol = below;
    }
  const bool isRead = areSymbolsRead && around == symbols.module && symbol && hasSameSymbol(symbol);
  if (!isRead)
    readSymbols(around);
  areSymbolsRead = keepsSymbols;
  return modules <= 1;
}

// Returns whether a function has the same symbol and type as when the symbols of the module were read.
bool VerifiedOps::hasSameSymbol(MlirOperation function) const {
  const std::int32_t found = symbols.byOperation.find(function.pointer);
  const auto attribute = [&](const char *name) {
    return capi.mlirOperationGetAttributeByName(function, toStringRef(name));
  };
  return found != PointerMap::absent && symbols.functions[found].symbol == attribute("sym_name") &&
         symbols.functions[found].type == attribute("function_type");
}

VerifiedOps::Verdict VerifiedOps::run(MlirOperation root, bool isAccepted) {
  accepting = isAccepted;
  verifiedByHost.clear();
  remembers = !isAccepted;
  contents.beginWalk();
  changed.clear();
  hasEdges = false;
  // The symbols are those of a single module.
  if (!beginIn(root)) {
    changed.push_back({root, true});
    return Verdict::Unknown;
  }
  // The validity of some operations depends on the enclosing operation, also if one is verified alone.
  MlirOperation parent = capi.mlirOperationGetParentOperation(root);
  const Around around{parent ? signatures.of(parent) : -1, parent ? nameOf(parent).number : -1, nullptr, {}};
  const Verdict verdict = visit(root, around, false);
  if (verdict == Verdict::Valid && !parent)
    contents.forgetOthers();
  return finish(root, verdict);
}

// Returns the key of the manual computations around the operations inside `op`.
const void *VerifiedOps::manualInside(MlirOperation op, const void *outer, std::int32_t signature) {
  if (!nameOf(op).isManual)
    return outer;
  const auto number = static_cast<std::int32_t>(manualNumbers.size() + 1);
  return asPointer(manualNumbers.emplace(Key{outer, asPointer(signature)}, number).first->second);
}

const VerifiedOps::Name &VerifiedOps::nameOf(MlirOperation op) {
  const MlirIdentifier identifier = capi.mlirOperationGetName(op);
  const auto number = static_cast<std::int32_t>(names.size());
  if (const auto [known, isNew] = numbersOfNames.insert(identifier.pointer, number); !isNew)
    return names[known];
  const std::string_view name = toView(capi.mlirIdentifierStr(identifier));
  const std::string_view dialect = name.substr(0, name.find('.'));
  Kind kind = Kind::Unknown;
  if (has(containerNames, name))
    kind = Kind::Container;
  else if (name == "func.call")
    kind = Kind::Call;
  else if (name == "sdy.data_flow_edge" || name == "sdy.func_data_flow_edge")
    kind = Kind::Edge;
  else if (dialect == "sdy")
    kind = Kind::OfMeshes;
  else if (dialect == "shard")
    kind = Kind::OfGrids;
  else if (name == "stablehlo.composite" || name == "func.constant" || name == "func.call_indirect")
    kind = Kind::Unknown; // Their verifiers look up symbols.
  else if (dialect == "tosa" || name.find("dynamic") != std::string_view::npos)
    kind = Kind::OfConstants;
  else if (dialect == "linalg" || dialect == "func" || dialect == "scf")
    kind = Kind::OfParent;
  else if (has(plainDialects, dialect))
    kind = Kind::Plain;
  const bool isManual = name == "sdy.manual_computation" || name == "sdy.named_computation";
  const bool isFunction = name == "func.func", isModule = name == "builtin.module";
  names.push_back({kind, number, isModule, isFunction, isModule || isFunction || isManual, isManual, dialect == "sdy",
                   shardingOfResults(std::string(name))});
  return names.back();
}

// Reads the functions of a module with their types, and its meshes and grids.
void VerifiedOps::readSymbols(MlirOperation module) {
  symbols = {};
  symbols.module = module;
  if (!module)
    return;
  const MlirContext context = capi.mlirOperationGetContext(module);
  PointerNumbers found;
  Key others;
  eachChild(capi, module, [&](MlirOperation child) {
    const MlirAttribute symbol = capi.mlirOperationGetAttributeByName(child, toStringRef("sym_name"));
    if (!symbol)
      return;
    symbols.areDistinct = found.insert(symbol.pointer).second && symbols.areDistinct;
    if (nameOf(child).isFunction) {
      const MlirAttribute type = capi.mlirOperationGetAttributeByName(child, toStringRef("function_type"));
      const MlirIdentifier name = capi.mlirIdentifierGet(context, capi.mlirStringAttrGetValue(symbol));
      const auto number = static_cast<std::int32_t>(symbols.functions.size());
      symbols.functions.push_back({name, symbol, type});
      symbols.byOperation.insert(child.pointer, number);
      if (type)
        symbols.byName.set(name.pointer, number);
      symbols.functionsContent = mixed(mixed(symbols.functionsContent, symbol.pointer), type.pointer);
    } else
      others.push_back(asPointer(symbolSignatures.of(child)));
  });
  const auto number = static_cast<std::int32_t>(symbolNumbers.size() + 1);
  symbols.others = asPointer(symbolNumbers.emplace(std::move(others), number).first->second);
}

// Returns whether the symbols that unchanged operations refer to are still valid for them. Callers of a removed
// function are not searched.
bool VerifiedOps::hasVerifiedSymbols() const {
  const Symbols &before = verifiedSymbols;
  const auto isAsBefore = [&](const Function &function) {
    const MlirAttribute now = symbols.typeOf(function.name);
    return !now || now == before.typeOf(function.name);
  };
  return symbols.module == before.module && symbols.others == before.others &&
         (symbols.functionsContent == before.functionsContent ||
          std::all_of(before.functions.begin(), before.functions.end(), isAsBefore));
}

// Stores the symbols of a valid module.
VerifiedOps::Verdict VerifiedOps::finish(MlirOperation root, Verdict verdict) {
  const bool isKnown = symbols.module == verifiedSymbols.module && symbols.others == verifiedSymbols.others &&
                       symbols.functionsContent == verifiedSymbols.functionsContent;
  if (verdict == Verdict::Valid && root == symbols.module && !isKnown)
    verifiedSymbols = symbols;
  return verdict;
}

// Returns whether the operands of an operation are defined before it, in its block or in an enclosing block.
bool VerifiedOps::areVisible(MlirOperation op) {
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    if (!dominates(capi.mlirOperationGetOperand(op, i), op))
      return false;
  return true;
}

// Returns whether an operation dominates all users of its results.
bool VerifiedOps::isBeforeUsers(MlirOperation op) {
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i) {
    const MlirValue result = capi.mlirOperationGetResult(op, i);
    for (MlirOpOperand use = capi.mlirValueGetFirstUse(result); use; use = capi.mlirOpOperandGetNextUse(use))
      if (!dominates(result, capi.mlirOpOperandGetOwner(use)))
        return false;
  }
  return true;
}

VerifiedOps::Verdict VerifiedOps::hostVerdict(MlirOperation op) {
  if (!capi.mlirOperationVerify(op))
    return Verdict::Invalid;
  if (nameOf(op).kind == Kind::Container)
    verifiedByHost.insert(op.pointer);
  return Verdict::Valid;
}

// Adds an operation to a content: its signature, its operands, and the operations in its regions. Returns its
// signature.
std::int32_t VerifiedOps::addContent(MlirOperation op, Content &content) {
  const std::int32_t signature = signatures.of(op);
  content.own = mixed(content.own, asPointer(signature));
  content.ignored = mixed(content.ignored, signatures.lastIgnored());
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    content.own = mixed(content.own, capi.mlirOperationGetOperand(op, i).pointer);
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
       region = capi.mlirRegionGetNextInOperation(region)) {
    content.own = mixed(content.own, std::uint64_t(1));
    for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block)) {
      content.own = mixed(content.own, block.pointer);
      for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i)
        content.own = mixed(content.own, capi.mlirValueGetType(capi.mlirBlockGetArgument(block, i)).pointer);
      for (MlirOperation child = capi.mlirBlockGetFirstOperation(block); child;
           child = capi.mlirOperationGetNextInBlock(child))
        addContent(child, content);
    }
  }
  return signature;
}

// Returns the content of an operation, and its signature if it was computed.
std::pair<Content, std::int32_t> VerifiedOps::contentOf(MlirOperation op, const Name &name, const Around &around,
                                                        bool isLast) {
  if (name.kind == Kind::Container || name.kind == Kind::Unknown)
    return {{}, noSignature};
  Content content;
  content.own = mixed(mixed(content.own, symbols.others), around.manual);
  content.own = mixed(content.own, asPointer(around.signature));
  content.own = mixed(content.own, asPointer(2 * around.name + isLast));
  if (name.kind == Kind::Call)
    content.own = mixed(content.own, symbols.functionsContent);
  if (name.kind == Kind::Edge)
    content.own = mixed(content.own, sourceOf(op));
  if (name.kind == Kind::OfConstants)
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
      content.own = mixed(content.own, asPointer(constantSignature(capi.mlirOperationGetOperand(op, i))));
  Key key;
  if (name.kind == Kind::OfMeshes && addSharding(op, key))
    for (const void *part : key)
      content.own = mixed(content.own, part);
  const std::int32_t signature = addContent(op, content);
  return {content, signature};
}

// Returns the signature of the operation that defines a value if it has no operands; -1 otherwise.
std::int32_t VerifiedOps::constantSignature(MlirValue value) {
  const MlirOperation definer =
      capi.mlirValueIsABlockArgument(value) ? MlirOperation{} : capi.mlirOpResultGetOwner(value);
  return definer && !capi.mlirOperationGetNumOperands(definer) ? signatures.of(definer) : -1;
}

VerifiedOps::Verdict VerifiedOps::visit(MlirOperation op, const Around &around, bool isLast) {
  const Name &name = nameOf(op);
  hasEdges = hasEdges || name.kind == Kind::Edge;
  // Operations in a container are listed individually, unless the walk does not enter it.
  const std::size_t place = changed.size();
  if (accepting) {
    changed.push_back({op, true});
    // An operation of unknown validity does not affect others.
    if (visitChanged(op, name, around, isLast, place) == Verdict::Unknown)
      addUnverified(op);
    return Verdict::Valid;
  }
  const auto [content, signature] = contentOf(op, name, around, isLast);
  const auto [isInPlace, isKnown, isKnownWithIgnored, number] =
      contents.enter(op, capi.mlirOperationGetBlock(op), content);
  if (!isKnownWithIgnored)
    changed.push_back({op, true});
  Verdict verdict = Verdict::Valid;
  if (!isKnown || !isInPlace) {
    // Users that are in place are not checked again.
    if (!areVisible(op) || (!isInPlace && !isBeforeUsers(op)))
      return Verdict::Unknown;
    if (!isKnown)
      verdict = visitChanged(op, name, around, isLast, place, signature);
  }
  if (verdict == Verdict::Valid)
    contents.keep(number, content);
  return verdict;
}

VerifiedOps::Verdict VerifiedOps::visitChanged(MlirOperation op, const Name &name, const Around &around, bool isLast,
                                               std::size_t place, std::int32_t signature) {
  if (name.kind == Kind::Container)
    return visitBodies(op, name, around, place);
  if (name.kind == Kind::Unknown)
    return Verdict::Unknown;
  if (capi.mlirOperationGetFirstRegion(op))
    return visitWhole(op, around);
  return visitLeaf(op, name, around, isLast, signature == noSignature ? signatures.of(op) : signature);
}

VerifiedOps::Verdict VerifiedOps::known(std::unordered_set<Key, PointersHash> &keys, Key key, MlirOperation op) {
  if (keys.count(key))
    return Verdict::Valid;
  const Verdict verdict = verdictAlone(op);
  if (verdict == Verdict::Valid)
    keys.insert(std::move(key));
  return verdict;
}

// Returns the verdict on an operation with an unknown key.
VerifiedOps::Verdict VerifiedOps::verdictAlone(MlirOperation op) {
  if (!accepting)
    return isVerifiedAround(op) ? Verdict::Valid : hostVerdict(op);
  if (nameOf(op).isOfSdy)
    unverified.push_back(op);
  return Verdict::Valid;
}

// Returns whether the host has verified an operation around `op` in this run, and so `op` with it.
bool VerifiedOps::isVerifiedAround(MlirOperation op) const {
  if (verifiedByHost.empty())
    return false;
  for (MlirOperation at = capi.mlirOperationGetParentOperation(op); at; at = capi.mlirOperationGetParentOperation(at))
    if (verifiedByHost.count(at.pointer))
      return true;
  return false;
}

} // namespace mlir_shard
