// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What operations held when they were last found valid, to tell on the next walk which have changed.
#pragma once

#include "capi.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mlir_shard {

// Mixes a number into a hash.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t number) {
  hash = (hash ^ number) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 32;
}
inline std::uint64_t mixed(std::uint64_t hash, const void *pointer) {
  return mixed(hash, reinterpret_cast<std::uintptr_t>(pointer));
}

// The contents of operations as numbers of 64 bits, by the operation, over several walks.
//
// A content is a hash of name, attributes, location, operands and results with their types. As long as all operations of
// the walk before come in their order, each in the same block, what an unchanged one uses is still defined before it.
class OpContents {
public:
  explicit OpContents(const Capi &capi) : capi(capi), slots(1024) {}

  // The content of an operation without what is in its regions; 0 where the host cannot tell.
  std::uint64_t of(MlirOperation op) const;

  // The same with what is in its regions.
  std::uint64_t ofWhole(MlirOperation op) const;

  void beginWalk();

  // Comes to an operation, before those in its regions: whether its content is that of before.
  bool enter(MlirOperation op, MlirBlock block, std::uint64_t content);

  // Whether the operations so far are those of the walk before in its order, with others among them.
  bool areInOrder() const { return inOrder; }

  // Has come through an operation and what is in it.
  void leave(MlirOperation op) { slots[slotOf(op.pointer)].walk = walk; }

  // Remembers a content that is valid.
  void keep(MlirOperation op, std::uint64_t content) { slots[slotOf(op.pointer)].content = content; }

  // Whether this walk has come through an operation.
  bool isBehind(MlirOperation op) const {
    const Slot &slot = slots[slotOf(op.pointer)];
    return slot.op && slot.walk == walk;
  }

private:
  struct Slot {
    const void *op = nullptr, *block = nullptr;
    std::uint64_t content = 0; // 0 for one that is not known to be valid.
    std::int32_t position = 0, walk = 0;
  };

  // The slot that has the operation, or the free one that it would have.
  std::size_t slotOf(const void *op) const;
  void rebuild(std::size_t size, std::int32_t since);

  const Capi &capi;
  std::vector<Slot> slots;
  std::size_t count = 0;
  std::int32_t walk = 0, position = 0, last = -1;
  bool inOrder = true;
};

} // namespace mlir_shard
