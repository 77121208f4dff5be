// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Delays operations of a block until other operations need them, so that independent operations of a kind are merged.
#pragma once

#include "ir/capi.h"
#include "ir/pointer_map.h"
#include "ir/signatures.h"
#include "repetition/rewrite_template.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

// An operation that may be merged with others of its kind; `size` is its contribution to the size of the merged
// operation.
struct Mergeable {
  MlirOperation op;
  std::int32_t kind;
  std::int64_t size;
};

// Merges several independent operations into one. Operations with a region become one operation with the operands and
// results of all, and the region of the first. Others are merged by `pack`, which is called once for groups of
// operations that are equal except for their operands.
class GroupMerger {
public:
  // Replaces `placeholder`, an operation in the block that has the operands and results of all of `ops`.
  using Pack = std::function<void(const std::vector<MlirOperation> &ops, MlirOperation placeholder)>;

  GroupMerger(const Capi &capi, MlirContext context, Pack pack)
      : capi(capi), pack(std::move(pack)), signatures(capi, context, {}) {}

  // Replaces the operations by one before `before`, and erases them.
  void merge(const std::vector<MlirOperation> &ops, MlirOperation before);

private:
  using Key = std::vector<std::int32_t>;

  Key keyOf(const std::vector<MlirOperation> &ops);

  const Capi &capi;
  Pack pack;
  Signatures signatures;
  std::unordered_map<Key, std::unique_ptr<RewriteTemplate>, NumbersHash> templates;
};

// Visits the operations of a block in order. Mergeable operations and the users of their results wait until an
// operation that cannot wait needs them; then the waiting operations are inserted before that operation, with the
// mergeable ones of each kind merged into one. The operations of a kind also stop waiting when their total size would
// exceed `most`.
class Deferral {
public:
  // Returns whether the effects of operations with a name allow them to execute later.
  using MayWait = std::function<bool(std::string_view name)>;

  Deferral(const Capi &capi, std::int64_t most, MayWait mayWait, GroupMerger &merger)
      : capi(capi), most(most), mayWait(std::move(mayWait)), merger(merger) {}

  // Merges operations in the block that contains all of `mergeables`. Returns whether any operation was merged or
  // moved.
  bool run(const std::vector<Mergeable> &mergeables);

private:
  // A bit for each kind.
  using KindSet = std::vector<std::uint64_t>;
  struct Group {
    std::vector<MlirOperation> ops;
    std::int64_t size = 0;
    std::size_t number = 0; // The rank in the order in which groups begin.
  };
  struct Waiting {
    MlirOperation op;
    KindSet needed;
  };

  bool addNeeded(MlirOperation op, KindSet &needed) const;
  bool canWait(MlirOperation op);
  bool hasWaitingName(MlirOperation op);
  void wait(const Mergeable &one, std::int32_t kind);
  void defer(MlirOperation op, const KindSet &needed);
  void flush(const KindSet &flushed, MlirOperation before);
  void setNeeds(MlirOperation op, const KindSet *needed);

  const Capi &capi;
  std::int64_t most;
  MayWait mayWait;
  GroupMerger &merger;
  std::unordered_map<const void *, bool> names;

  // The state of the current block.
  std::size_t words = 0;
  std::vector<Group> groups; // By kind; without operations if none wait.
  std::size_t begun = 0;
  std::vector<Waiting> deferred;
  std::vector<std::vector<std::size_t>> deferredFor; // The indices of the deferred operations that need each kind.
  PointerMap needs;                                  // By value, the index of its set of kinds in `needSets`.
  std::vector<KindSet> needSets;
  bool isChanged = false;
};

} // namespace mlir_shard
