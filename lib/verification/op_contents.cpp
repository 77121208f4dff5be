// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "verification/op_contents.h"

#include <algorithm>
#include <iterator>

namespace mlir_shard {

// As many operations may be gone from between two others.
static constexpr std::size_t mostErased = 63;

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
  }
  contents.current = &sequence;
}

OpContents::Entered OpContents::enter(MlirOperation op, MlirBlock block, const Content &content) {
  if (!current)
    return {false, false, false, 0};
  std::vector<Entry> &before = current->before;
  const std::size_t number = current->now.size();
  current->now.push_back({op.pointer, block.pointer, {}});
  const auto next = before.begin() + static_cast<std::ptrdiff_t>(current->next);
  const std::size_t near = std::min(before.size() - current->next, mostErased + 1);
  const auto end = next + static_cast<std::ptrdiff_t>(near);
  const auto found = std::find_if(next, end, [&](const Entry &entry) { return entry.op == op.pointer; });
  if (found == end) // Further on none is looked for: it is taken for one that is new.
    return {false, false, false, number};
  current->next = static_cast<std::size_t>(found - before.begin()) + 1;
  const bool isKnown = content.own && found->content.own == content.own;
  // The users of an operation that was not found valid have not been checked.
  const bool isInPlace = found->content.own && found->block == block.pointer;
  return {isInPlace, isKnown, isKnown && found->content.ignored == content.ignored, number};
}

void OpContents::keep(std::size_t number, const Content &content) {
  if (current)
    current->now[number].content = content;
}

} // namespace mlir_shard
