// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The contents of operations when they were last valid, from which the next walk finds the changed ones.
#pragma once

#include "ir/capi.h"
#include "ir/pointer_map.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

// Hashes of all properties that determine whether an operation is valid.
struct Content {
  std::uint64_t own = 0;     // 0 if unknown.
  std::uint64_t ignored = 0; // The hash of the attributes that the host does not verify.
};

// The contents of operations, kept between walks.
//
// The operations in each isolated operation form a sequence in the order of the walk. The next walk traverses the
// sequence in parallel, and looks up only operations that are not near. Valid operations that the walk visits in the
// same order as before, each in the same block, are in place: of two such operations the first one is still first, even
// if others between them were inserted or removed. If many operations have moved, the traversal continues from two that
// still follow each other.
class OpContents {
  struct Sequence;

public:
  void beginWalk();

  // Drops the sequences of isolated operations that the walk has not visited.
  void forgetOthers();

  // Makes the sequence of an isolated operation the current one for the lifetime of this object.
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

  // Records the visit of an operation, before the operations in its regions. Returns whether it is in place, and
  // whether its content is unchanged without and with the ignored attributes.
  Entered enter(MlirOperation op, MlirBlock block, const Content &content);

  // Stores the content of a valid operation.
  void keep(std::size_t number, const Content &content);

private:
  struct Entry {
    const void *op, *block;
    Content content; // Empty if the operation is not known to be valid.
  };
  struct Sequence {
    static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

    // Returns the index of an operation in `before` and advances `next`; `nowhere` if it is not in `before`.
    std::size_t find(const void *op);

    std::vector<Entry> before, now;
    std::size_t next = 0; // Index into `before`; all earlier entries have been passed.
    std::int32_t walk = 0;
    std::size_t follower = nowhere;       // The index after the last operation that was found far from `next`.
    std::optional<PointerNumbers> places; // The indices of all operations in `before`; created when first needed.
  };

  std::unordered_map<const void *, Sequence> sequences;
  Sequence *current = nullptr;
  std::int32_t walk = 0;
};

} // namespace mlir_shard
