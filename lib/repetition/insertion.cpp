// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "repetition/insertion.h"

#include "ir/below.h"

#include <unordered_map>

namespace mlir_shard {
namespace {

MlirOperation create(const Capi &capi, MlirContext context, const Insertion::Made &made, MlirValue value) {
  MlirOperationState state = capi.mlirOperationStateGet(toStringRef(made.name), capi.mlirValueGetLocation(value));
  const MlirType type = capi.mlirValueGetType(value);
  capi.mlirOperationStateAddOperands(&state, 1, &value);
  capi.mlirOperationStateAddResults(&state, 1, &type);
  std::vector<MlirNamedAttribute> attributes;
  for (const auto &[name, attribute] : made.attributes)
    attributes.push_back({capi.mlirIdentifierGet(context, toStringRef(name)), attribute});
  capi.mlirOperationStateAddAttributes(&state, static_cast<std::intptr_t>(attributes.size()), attributes.data());
  return capi.mlirOperationCreate(&state);
}

} // namespace

void Insertion::insertAround(const Capi &capi, MlirOperation op, MadeOps &made) const {
  const MlirBlock block = capi.mlirOperationGetBlock(op);
  const MlirContext context = capi.mlirOperationGetContext(op);
  for (const Made &one : before) {
    const MlirOperation inserted = create(capi, context, one, capi.mlirOperationGetOperand(op, one.value));
    capi.mlirBlockInsertOwnedOperationBefore(block, op, inserted);
    capi.mlirOperationSetOperand(op, one.value, capi.mlirOperationGetResult(inserted, 0));
    made.add(inserted);
  }
  for (const auto &[name, attribute] : attributes)
    capi.mlirOperationSetAttributeByName(op, toStringRef(name), attribute);
  // The first and the last inserted operation of each result.
  std::unordered_map<std::int32_t, std::pair<MlirOperation, MlirOperation>> chains;
  MlirOperation last = op;
  for (const Made &one : behind) {
    const auto chain = chains.find(one.value);
    const MlirValue value = chain == chains.end() ? capi.mlirOperationGetResult(op, one.value)
                                                  : capi.mlirOperationGetResult(chain->second.second, 0);
    const MlirOperation inserted = create(capi, context, one, value);
    capi.mlirBlockInsertOwnedOperationAfter(block, last, inserted);
    made.add(inserted);
    last = inserted;
    if (chain == chains.end())
      chains.emplace(one.value, std::pair{last, last});
    else
      chain->second.second = last;
  }
  for (const auto &[result, chain] : chains) {
    const MlirValue value = capi.mlirOperationGetResult(op, result);
    capi.mlirValueReplaceAllUsesOfWith(value, capi.mlirOperationGetResult(chain.second, 0));
    capi.mlirOperationSetOperand(chain.first, 0, value);
  }
}

} // namespace mlir_shard
