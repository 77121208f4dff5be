// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Verification of operations without regions.

#include "ir/below.h"
#include "verification/verified_ops.h"

#include <utility>

namespace mlir_shard {

VerifiedOps::Verdict VerifiedOps::knownAmongGrids(Key key, MlirOperation op) {
  if (!accepting && !specialLeaves.count(key))
    if (const Verdict verdict = verdictAmongGrids(op); verdict != Verdict::Valid)
      return verdict;
  specialLeaves.insert(std::move(key));
  return Verdict::Valid;
}

// Verifies an operation that uses symbols. The host verifies such uses with the module that has the symbols: a
// temporary one with the grids and a copy of the operation.
VerifiedOps::Verdict VerifiedOps::verdictAmongGrids(MlirOperation op) {
  if (capi.mlirOperationGetAttributeByName(op, toStringRef("sym_name")))
    return hostVerdict(op); // A grid.
  if (capi.mlirOperationGetFirstRegion(op))
    return Verdict::Unknown;
  const MlirModule alone = capi.mlirModuleCreateEmpty(capi.mlirOperationGetLocation(op));
  const MlirBlock body = capi.mlirModuleGetBody(alone);
  eachChild(capi, symbols.module, [&](MlirOperation child) {
    if (nameOf(child).kind == Kind::OfGrids)
      capi.mlirBlockAppendOwnedOperation(body, capi.mlirOperationClone(child));
  });
  const MlirOperation copy = capi.mlirOperationClone(op);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i) {
    const MlirType type = capi.mlirValueGetType(capi.mlirOperationGetOperand(op, i));
    MlirOperationState state = capi.mlirOperationStateGet(toStringRef("builtin.unrealized_conversion_cast"),
                                                          capi.mlirOperationGetLocation(op));
    capi.mlirOperationStateAddResults(&state, 1, &type);
    const MlirOperation made = capi.mlirOperationCreate(&state);
    capi.mlirBlockAppendOwnedOperation(body, made);
    capi.mlirOperationSetOperand(copy, i, capi.mlirOperationGetResult(made, 0));
  }
  capi.mlirBlockAppendOwnedOperation(body, copy);
  const bool isValid = capi.mlirOperationVerify(capi.mlirModuleGetOperation(alone));
  capi.mlirModuleDestroy(alone);
  return isValid ? Verdict::Valid : Verdict::Invalid;
}

VerifiedOps::Verdict VerifiedOps::visitLeaf(MlirOperation op, const Name &name, const Around &around, bool isLast,
                                            std::int32_t signature) {
  const bool isOfParent = isLast || name.kind == Kind::OfParent;
  const std::int32_t place = isOfParent ? around.signature : around.name;
  if (name.kind != Kind::Plain && name.kind != Kind::OfParent)
    return visitSpecialLeaf(op, name, around,
                            {asPointer(signature), asPointer(place), asPointer(2 * isLast + isOfParent)});
  const std::uint64_t packed = static_cast<std::uint64_t>(static_cast<std::uint32_t>(signature)) << 32 |
                               static_cast<std::uint64_t>(static_cast<std::uint32_t>(place)) << 2 |
                               static_cast<std::uint64_t>(2 * isLast + isOfParent);
  if (accepting) {
    leaves.insert(packed);
    return Verdict::Valid;
  }
  if (leaves.count(packed))
    return Verdict::Valid;
  const Verdict verdict = verdictAlone(op);
  if (verdict == Verdict::Valid)
    leaves.insert(packed);
  return verdict;
}

// Visits an operation whose verifier checks more than the operation and its position, which `key` contains.
VerifiedOps::Verdict VerifiedOps::visitSpecialLeaf(MlirOperation op, const Name &name, const Around &around, Key key) {
  if (name.kind == Kind::Call)
    return isCallOfFunction(op) ? known(specialLeaves, std::move(key), op) : Verdict::Unknown;
  if (name.kind == Kind::OfConstants) {
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
      key.push_back(asPointer(constantSignature(capi.mlirOperationGetOperand(op, i))));
    return known(specialLeaves, std::move(key), op);
  }
  key.push_back(symbols.others);
  if (name.kind == Kind::OfGrids)
    return knownAmongGrids(std::move(key), op);
  key.push_back(around.manual);
  if (name.kind == Kind::Edge)
    key.push_back(reinterpret_cast<const void *>(sourceOf(op)));
  else if (!addSharding(op, key))
    return verdictAlone(op);
  return known(specialLeaves, std::move(key), op);
}

// Adds the sharding of the first operand to `key`. Returns false if neither the operation nor the function that defines
// the operand stores it.
bool VerifiedOps::addSharding(MlirOperation user, Key &key) {
  if (!capi.mlirOperationGetNumOperands(user))
    return true;
  const MlirValue operand = capi.mlirOperationGetOperand(user, 0);
  const auto add = [&](MlirAttribute attribute, std::intptr_t number) {
    key.insert(key.end(), {attribute.pointer, asPointer(number)});
  };
  if (!capi.mlirValueIsABlockArgument(operand)) {
    const MlirOperation definer = capi.mlirOpResultGetOwner(operand);
    const auto &sharding = nameOf(definer).sharding;
    if (sharding)
      add(capi.mlirOperationGetAttributeByName(definer, toStringRef(*sharding)),
          capi.mlirOpResultGetResultNumber(operand));
    return sharding.has_value();
  }
  const MlirOperation owner = capi.mlirBlockGetParentOperation(capi.mlirBlockArgumentGetOwner(operand));
  if (!owner || !nameOf(owner).isFunction)
    return false;
  const char *side = mlir_shard::nameOf(Side::Arguments);
  const MlirAttribute attributes = capi.mlirOperationGetAttributeByName(owner, toStringRef(side));
  const std::intptr_t number = capi.mlirBlockArgumentGetArgNumber(operand);
  add(attributes ? capi.mlirArrayAttrGetElement(attributes, number) : MlirAttribute{}, 0);
  return true;
}

// Returns a hash of the properties of the operand that the verifier of an edge checks.
std::uint64_t VerifiedOps::sourceOf(MlirOperation edge) const {
  const MlirValue operand = capi.mlirOperationGetOperand(edge, 0);
  const bool isArgument = capi.mlirValueIsABlockArgument(operand);
  const MlirOperation source = isArgument ? capi.mlirBlockGetParentOperation(capi.mlirBlockArgumentGetOwner(operand))
                                          : capi.mlirOpResultGetOwner(operand);
  const bool isOnlyUse = !capi.mlirOpOperandGetNextUse(capi.mlirValueGetFirstUse(operand));
  return mixed(std::uint64_t(2 * isArgument + isOnlyUse), capi.mlirOperationGetName(source).pointer);
}

bool VerifiedOps::isCallOfFunction(MlirOperation call) const {
  const MlirAttribute callee = capi.mlirOperationGetAttributeByName(call, toStringRef("callee"));
  const MlirIdentifier name =
      capi.mlirIdentifierGet(capi.mlirOperationGetContext(call), capi.mlirFlatSymbolRefAttrGetValue(callee));
  const MlirAttribute type = symbols.typeOf(name);
  return type && isCallOf(capi, capi.mlirTypeAttrGetValue(type), call);
}

} // namespace mlir_shard
