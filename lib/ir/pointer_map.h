// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Numbers by pointer: most of the time that reading a module takes goes into looking values up.
//
// Entries are in the order in which they were inserted, mostly that of the module, and a table has where each of them
// is. Pointers that lie close to each other have slots that do: what is looked up in the order of the module then goes
// over both, and over few pages, more or less in order, which matters where a module is larger than the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mlir_shard {

class PointerMap {
public:
  static constexpr std::int32_t absent = -1;

  PointerMap() : slots(std::size_t{1} << bits, absent) {}

  // The number of `pointer`; `absent` where it has none.
  std::int32_t find(const void *pointer) const {
    const std::int32_t place = slots[slotOf(pointer)];
    return place == absent ? absent : entries[place].second;
  }

  // The number of `pointer`, which becomes `number` where it had none; and whether it had none.
  std::pair<std::int32_t, bool> insert(const void *pointer, std::int32_t number) {
    std::int32_t &place = slots[slotOf(pointer)];
    if (place != absent)
      return {entries[place].second, false};
    place = static_cast<std::int32_t>(entries.size());
    entries.emplace_back(pointer, number);
    if (2 * entries.size() > slots.size())
      grow();
    return {number, true};
  }

  // Gives `pointer` another number, or one where it had none.
  void set(const void *pointer, std::int32_t number) {
    if (!insert(pointer, number).second)
      entries[slots[slotOf(pointer)]].second = number;
  }

private:
  // The slot that has the pointer, or the free one that it would have. Results of one operation are at least 16 bytes
  // apart. Each stretch of memory that has as many places as there are slots begins at another slot, as operations of one
  // size would share few slots otherwise.
  std::size_t slotOf(const void *pointer) const {
    const std::size_t mask = slots.size() - 1;
    const std::size_t place = reinterpret_cast<std::uintptr_t>(pointer) >> 4;
    std::size_t slot = (place + (place >> bits) * 0x9E3779B1u) & mask;
    while (slots[slot] != absent && entries[slots[slot]].first != pointer)
      slot = (slot + 1) & mask;
    return slot;
  }

  void grow() {
    slots.assign(std::size_t{1} << ++bits, absent);
    for (std::size_t place = 0; place < entries.size(); ++place)
      slots[slotOf(entries[place].first)] = static_cast<std::int32_t>(place);
  }

  unsigned bits = 6;
  std::vector<std::int32_t> slots; // Where among the entries; 2^bits, half of which are free at least.
  std::vector<std::pair<const void *, std::int32_t>> entries;
};

} // namespace mlir_shard
