// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What operations held when they were last found valid, to tell on the next walk which have changed.
#pragma once

#include "ir/capi.h"
#include "ir/pointer_map.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

// All that decides whether an operation is valid, as hashes.
struct Content {
  std::uint64_t own = 0;     // 0 where that is not known.
  std::uint64_t ignored = 0; // Of the attributes that are not for the host to verify.
};

// The contents of operations, over several walks.
//
// The operations in each isolated one are a sequence, in the order of the walk, which the next walk goes along: it looks
// up only what is not near. Those that were valid and come in the order of the walk before, each in the same block, are
// in place: of two of them the one that was first is so still, whatever has come or gone between them. Where many have
// moved, the walk goes on with two that still follow each other.
class OpContents {
  struct Sequence;

public:
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
    bool isInPlace, isKnown, isKnownWithIgnored;
    std::size_t number;
  };

  // Comes to an operation, before those in its regions: whether it is in place, whether its content is that of before,
  // and the ignored attributes too.
  Entered enter(MlirOperation op, MlirBlock block, const Content &content);

  // Remembers a content that is valid.
  void keep(std::size_t number, const Content &content);

private:
  struct Entry {
    const void *op, *block;
    Content content; // Nothing for one that is not known to be valid.
  };
  struct Sequence {
    static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

    // The place in `before` of an operation that comes next; `nowhere` for one that was not there.
    std::size_t find(const void *op);

    std::vector<Entry> before, now;
    std::size_t next = 0; // In `before`: those in front of it have been passed.
    std::int32_t walk = 0;
    std::size_t follower = nowhere;       // The place after one that was found far from `next`.
    std::optional<PointerNumbers> places; // Of all in `before`; only where it was needed.
  };

  std::unordered_map<const void *, Sequence> sequences;
  Sequence *current = nullptr;
  std::int32_t walk = 0;
};

} // namespace mlir_shard
