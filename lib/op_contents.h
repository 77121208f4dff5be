// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What operations held when they were last found valid, to tell on the next walk which have changed.
#pragma once

#include "capi.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
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

// The contents of operations as numbers of 64 bits, over several walks.
//
// A content is a hash of name, attributes, location, operands and results with their types. The operations in each
// isolated one are a sequence, in the order of the walk, which the next walk goes along: it looks nothing up. As long as
// all operations of the walk before come in their order, each in the same block, what an unchanged one uses is still
// defined before it.
class OpContents {
  struct Sequence;

public:
  explicit OpContents(const Capi &capi) : capi(capi) {}

  // The content of an operation without what is in its regions; 0 where the host cannot tell.
  std::uint64_t of(MlirOperation op) const;

  // The same with what is in its regions.
  std::uint64_t ofWhole(MlirOperation op) const;

  void beginWalk();

  // Forgets the operations inside isolated ones that the walk has not come to.
  void forgetOthers();

  // Goes on with what is inside an isolated operation, as long as this lives.
  class Inside {
  public:
    Inside(OpContents &contents, MlirOperation op);
    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;
    ~Inside() { contents.current = outer; }

  private:
    OpContents &contents;
    Sequence *outer;
  };

  struct Entered {
    bool isKnown;
    std::size_t number;
  };

  // Comes to an operation, before those in its regions: whether its content is that of before.
  Entered enter(MlirOperation op, MlirBlock block, std::uint64_t content);

  // Whether the operations so far are those of the walk before in its order, with others among them.
  bool areInOrder() const;

  // Remembers a content that is valid.
  void keep(std::size_t number, std::uint64_t content);

private:
  struct Entry {
    const void *op, *block;
    std::uint64_t content; // 0 for one that is not known to be valid.
  };
  struct Sequence {
    std::vector<Entry> before, now;
    std::size_t next = 0; // In `before`.
    std::int32_t walk = 0;
    bool inOrder = true;
  };

  const Capi &capi;
  std::unordered_map<const void *, Sequence> sequences;
  Sequence *current = nullptr;
  std::int32_t walk = 0;
};

} // namespace mlir_shard
