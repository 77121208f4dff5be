// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations of a block delayed until others need them, so that independent ones of a kind are merged to one.
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

// An operation that may be merged with others of its kind; `size` is what it adds to that of the merged one.
struct Mergeable {
  MlirOperation op;
  std::int32_t kind;
  std::int64_t size;
};

// Makes one operation of several that are independent of each other: of those with a region one with the operands and
// results of all, and the region of the first; of others what is built by `pack`, once for those that are equal but for
// operands.
class GroupMerger {
public:
  // Replaces an operation, which is in the block already, that has the operands and results of all of `ops`.
  using Pack = std::function<void(const std::vector<MlirOperation> &ops, MlirOperation placeholder)>;

  GroupMerger(const Capi &capi, MlirContext context, Pack pack)
      : capi(capi), pack(std::move(pack)), signatures(capi, context, {}) {}

  // Replaces the operations by one in front of `before`, and erases them.
  void merge(const std::vector<MlirOperation> &ops, MlirOperation before);

private:
  using Key = std::vector<std::int32_t>;

  Key keyOf(const std::vector<MlirOperation> &ops);

  const Capi &capi;
  Pack pack;
  Signatures signatures;
  std::unordered_map<Key, std::unique_ptr<RewriteTemplate>, NumbersHash> templates;
};

// Visits the operations of a block in order. A mergeable one waits, and so do the operations that use its result, until
// an operation that cannot wait needs them; what waits is carried out in front of that one, the mergeable ones of a kind
// as one. They do not wait where their sizes would add up to more than `most` either.
class Deferral {
public:
  // Whether operations of a name may come later, as far as what they do is concerned.
  using MayWait = std::function<bool(std::string_view name)>;

  Deferral(const Capi &capi, std::int64_t most, MayWait mayWait, GroupMerger &merger)
      : capi(capi), most(most), mayWait(std::move(mayWait)), merger(merger) {}

  // Merges in the block that the operations are all in; whether there was anything to merge or move.
  bool run(const std::vector<Mergeable> &mergeables);

private:
  // A bit for each kind.
  using KindSet = std::vector<std::uint64_t>;
  struct Group {
    std::vector<MlirOperation> ops;
    std::int64_t size = 0;
    std::size_t number = 0; // In the order in which groups begin.
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

  // Of the block.
  std::size_t words = 0;
  std::vector<Group> groups; // By kind; without operations where none wait.
  std::size_t begun = 0;
  std::vector<Waiting> deferred;
  std::vector<std::vector<std::size_t>> deferredFor; // By kind, which of those need it.
  PointerMap needs;                                  // By value, what it waits for.
  std::vector<KindSet> needSets;
  bool isChanged = false;
};

} // namespace mlir_shard
