// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "op_contents.h"

#include <algorithm>
#include <iterator>

namespace mlir_shard {

// As many operations may be gone from between two others.
static constexpr std::size_t mostErased = 63;

std::uint64_t OpContents::of(MlirOperation op) const {
  if (!capi.mlirOperationStructuralHashValue)
    return 0;
  // The host's hash covers the operands, but not their types.
  std::uint64_t hash = capi.mlirOperationStructuralHashValue(op);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    hash = mixed(hash, capi.mlirValueGetType(capi.mlirOperationGetOperand(op, i)).pointer);
  return hash;
}

std::uint64_t OpContents::ofWhole(MlirOperation op) const {
  std::uint64_t hash = of(op);
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
       region = capi.mlirRegionGetNextInOperation(region)) {
    hash = mixed(hash, std::uint64_t(1));
    for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block)) {
      hash = mixed(hash, block.pointer);
      for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i)
        hash = mixed(hash, capi.mlirValueGetType(capi.mlirBlockGetArgument(block, i)).pointer);
      for (MlirOperation child = capi.mlirBlockGetFirstOperation(block); child;
           child = capi.mlirOperationGetNextInBlock(child))
        hash = mixed(hash, ofWhole(child));
    }
  }
  return hash;
}

void OpContents::beginWalk() {
  ++walk;
  current = nullptr;
}

void OpContents::forgetOthers() {
  for (auto sequence = sequences.begin(); sequence != sequences.end();)
    sequence = sequence->second.walk == walk ? std::next(sequence) : sequences.erase(sequence);
}

OpContents::Inside::Inside(OpContents &contents, MlirOperation op) : contents(contents), outer(contents.current) {
  Sequence &sequence = contents.sequences[op.pointer];
  if (sequence.walk != contents.walk) {
    sequence.before.swap(sequence.now);
    sequence.now.clear();
    sequence.next = 0;
    sequence.walk = contents.walk;
    sequence.inOrder = true;
  }
  contents.current = &sequence;
}

OpContents::Entered OpContents::enter(MlirOperation op, MlirBlock block, std::uint64_t content) {
  if (!current)
    return {false, 0};
  std::vector<Entry> &before = current->before;
  const std::size_t number = current->now.size();
  current->now.push_back({op.pointer, block.pointer, 0});
  const auto next = before.begin() + static_cast<std::ptrdiff_t>(current->next);
  const std::size_t near = std::min(before.size() - current->next, mostErased + 1);
  const auto end = next + static_cast<std::ptrdiff_t>(near);
  const auto found = std::find_if(next, end, [&](const Entry &entry) { return entry.op == op.pointer; });
  if (found == end) // Further on none is looked for: it is taken for one that is new.
    return {false, number};
  current->inOrder = current->inOrder && found == next && found->block == block.pointer;
  current->next = static_cast<std::size_t>(found - before.begin()) + 1;
  return {content && found->content == content, number};
}

bool OpContents::areInOrder() const { return current && current->inOrder; }

void OpContents::keep(std::size_t number, std::uint64_t content) {
  if (current)
    current->now[number].content = content;
}

} // namespace mlir_shard
