// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "op_contents.h"

#include <algorithm>

namespace mlir_shard {

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

std::size_t OpContents::slotOf(const void *op) const {
  const std::size_t mask = slots.size() - 1;
  std::size_t slot = (reinterpret_cast<std::uintptr_t>(op) * 0x9E3779B97F4A7C15ull >> 20) & mask;
  while (slots[slot].op && slots[slot].op != op)
    slot = (slot + 1) & mask;
  return slot;
}

void OpContents::beginWalk() {
  // Of operations that the last walk has not come through many are gone.
  const auto come = static_cast<std::size_t>(position);
  if (count > 2 * come + slots.size() / 8) {
    std::size_t size = 1024;
    while (size < 4 * come)
      size *= 2;
    rebuild(size, walk);
  }
  ++walk;
  position = 0;
  last = -1;
  inOrder = true;
}

bool OpContents::enter(MlirOperation op, MlirBlock block, std::uint64_t content) {
  std::size_t number = slotOf(op.pointer);
  if (!slots[number].op) {
    if (3 * ++count > 2 * slots.size()) {
      rebuild(2 * slots.size(), 0);
      number = slotOf(op.pointer);
    }
    slots[number] = {op.pointer, block.pointer, 0, position++, 0};
    return false;
  }
  Slot &slot = slots[number];
  inOrder = inOrder && slot.walk == walk - 1 && slot.block == block.pointer && slot.position == last + 1;
  last = slot.position;
  slot.block = block.pointer;
  slot.position = position++;
  return content && slot.content == content;
}

// Makes a table of another size, with the operations that a walk since the given one has come through.
void OpContents::rebuild(std::size_t size, std::int32_t since) {
  std::vector<Slot> old(size);
  old.swap(slots);
  for (const Slot &slot : old)
    if (slot.op && slot.walk >= since)
      slots[slotOf(slot.op)] = slot;
  // One that is being entered has no slot yet.
  const bool isEntering = since == 0;
  count = static_cast<std::size_t>(
              std::count_if(slots.begin(), slots.end(), [](const Slot &slot) { return slot.op != nullptr; })) +
          isEntering;
}

} // namespace mlir_shard
