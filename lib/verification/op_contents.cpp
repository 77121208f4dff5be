// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "verification/op_contents.h"

#include <algorithm>
#include <iterator>

namespace mlir_shard {

// The largest number of consecutive erased operations to skip before an operation is looked up in the table.
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
    sequence.places.reset();
    sequence.follower = Sequence::nowhere;
    sequence.next = 0;
    sequence.walk = contents.walk;
  }
  contents.current = &sequence;
}

OpContents::Entered OpContents::enter(MlirOperation op, MlirBlock block, const Content &content) {
  if (!current)
    return {false, false, false, 0};
  const std::size_t number = current->now.size();
  current->now.push_back({op.pointer, block.pointer, {}});
  const std::size_t place = current->find(op.pointer);
  if (place == Sequence::nowhere)
    return {false, false, false, number};
  const bool isMoved = place + 1 != current->next;
  const Entry &found = current->before[place];
  const bool isKnown = content.own && found.content.own == content.own;
  // The users of an operation that was not found to be valid have not been checked.
  const bool isInPlace = !isMoved && found.content.own && found.block == block.pointer;
  return {isInPlace, isKnown, isKnown && found.content.ignored == content.ignored, number};
}

std::size_t OpContents::Sequence::find(const void *op) {
  const auto begin = before.begin() + static_cast<std::ptrdiff_t>(next);
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(before.size() - next, mostErased + 1));
  const auto near = std::find_if(begin, end, [&](const Entry &entry) { return entry.op == op; });
  if (near != end) {
    next = static_cast<std::size_t>(near - before.begin()) + 1;
    follower = nowhere;
    return next - 1;
  }
  if (!places) {
    places.emplace();
    for (const Entry &entry : before)
      places->insert(entry.op);
  }
  const std::int32_t number = places->find(op);
  if (number == PointerNumbers::absent)
    return nowhere;
  const auto place = static_cast<std::size_t>(number);
  if (place == follower && place >= next)
    next = place + 1;
  follower = place + 1;
  return place;
}

void OpContents::keep(std::size_t number, const Content &content) {
  if (current)
    current->now[number].content = content;
}

} // namespace mlir_shard
