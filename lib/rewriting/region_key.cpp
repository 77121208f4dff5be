// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/region_key.h"

#include "ir/below.h"
#include "ir/pointer_map.h"

#include <algorithm>
#include <cstddef>

namespace mlir_shard {
namespace {

class RegionKey {
public:
  RegionKey(const Capi &capi, Signatures &signatures, const std::function<bool(MlirOperation)> &isCommutative,
            std::vector<const void *> &key)
      : capi(capi), signatures(signatures), isCommutative(isCommutative), key(key) {}

  void appendRegions(MlirOperation op) {
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region)) {
      key.push_back(asPointer(regionMark));
      for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block)) {
        key.push_back(asPointer(blockMark));
        for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i) {
          const MlirValue argument = capi.mlirBlockGetArgument(block, i);
          key.push_back(capi.mlirValueGetType(argument).pointer);
          inner.insert(argument.pointer);
        }
        eachInBlock(capi, block, [&](MlirOperation child) { append(child); });
      }
    }
  }

private:
  static constexpr std::intptr_t regionMark = -1, blockMark = -2;

  void append(MlirOperation op) {
    key.push_back(asPointer(signatures.of(op)));
    const auto first = static_cast<std::ptrdiff_t>(key.size());
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i) {
      const void *operand = capi.mlirOperationGetOperand(op, i).pointer;
      const std::int32_t number = inner.find(operand);
      key.push_back(number == PointerNumbers::absent ? operand : asPointer(number));
    }
    if (isCommutative(op))
      std::sort(key.begin() + first, key.end());
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
      inner.insert(capi.mlirOperationGetResult(op, i).pointer);
    appendRegions(op);
  }

  const Capi &capi;
  Signatures &signatures;
  const std::function<bool(MlirOperation)> &isCommutative;
  std::vector<const void *> &key;
  PointerNumbers inner; // The values defined in the regions.
};

} // namespace

void appendRegions(const Capi &capi, MlirOperation op, Signatures &signatures,
                   const std::function<bool(MlirOperation)> &isCommutative, std::vector<const void *> &key) {
  if (capi.mlirOperationGetFirstRegion(op))
    RegionKey(capi, signatures, isCommutative, key).appendRegions(op);
}

} // namespace mlir_shard
