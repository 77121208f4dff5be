// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "arrays/region_contents.h"

#include <algorithm>
#include <unordered_map>

namespace mlir_shard {

RegionContents::RegionContents(const ModuleArrays &arrays) : arrays(arrays) {
  ends.resize(arrays.ops.size());
  for (std::size_t op = ends.size(); op-- > 0;) {
    ends[op] = std::max(ends[op], static_cast<std::int32_t>(op) + 1);
    if (const std::int32_t parent = arrays.parents[op]; parent >= 0)
      ends[parent] = std::max(ends[parent], ends[op]);
  }
}

void RegionContents::add(std::int32_t op, std::vector<std::int32_t> &key) const {
  const Capi &capi = arrays.capi;
  std::unordered_map<std::int32_t, std::int32_t> inside;
  auto define = [&](std::int32_t value) { inside.emplace(value, static_cast<std::int32_t>(inside.size())); };
  for (std::int32_t inner = op + 1; inner < ends[op]; ++inner)
    for (const std::int32_t *value = arrays.results.begin(inner); value != arrays.results.end(inner); ++value)
      define(*value);
  auto defineArguments = [&](std::int32_t around) {
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(arrays.ops[around]); region;
         region = capi.mlirRegionGetNextInOperation(region)) {
      key.push_back(-1);
      for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block)) {
        const std::intptr_t count = capi.mlirBlockGetNumArguments(block);
        key.push_back(static_cast<std::int32_t>(count));
        for (std::intptr_t i = 0; i < count; ++i)
          define(arrays.numberOf(capi.mlirBlockGetArgument(block, i)));
      }
    }
  };
  defineArguments(op);
  for (std::int32_t inner = op + 1; inner < ends[op]; ++inner)
    defineArguments(inner);
  for (std::int32_t inner = op + 1; inner < ends[op]; ++inner) {
    key.insert(key.end(), {arrays.parents[inner] - op, arrays.signatures[inner], !capi.mlirOperationGetNextInBlock(arrays.ops[inner])});
    for (const std::int32_t *value = arrays.operands.begin(inner); value != arrays.operands.end(inner); ++value) {
      const auto found = inside.find(*value);
      key.push_back(found == inside.end() ? -2 - *value : found->second);
    }
  }
}

} // namespace mlir_shard
