// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Numbers by pointer, in one allocation: most of the time that reading a module takes goes into looking values up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mlir_shard {

class PointerMap {
public:
  static constexpr std::int32_t absent = -1;

  PointerMap() : slots(64, {nullptr, absent}) {}

  // The number of `pointer`, which is not null; `absent` where it has none.
  std::int32_t find(const void *pointer) const { return slots[slotOf(pointer)].second; }

  // The number of `pointer`, which becomes `number` where it had none; and whether it had none.
  std::pair<std::int32_t, bool> insert(const void *pointer, std::int32_t number) {
    std::pair<const void *, std::int32_t> &slot = slots[slotOf(pointer)];
    if (slot.first)
      return {slot.second, false};
    slot = {pointer, number};
    if (2 * ++count > slots.size())
      grow();
    return {number, true};
  }

  // Gives `pointer` another number, or one where it had none.
  void set(const void *pointer, std::int32_t number) {
    if (!insert(pointer, number).second)
      slots[slotOf(pointer)].second = number;
  }

private:
  // The slot that has the pointer, or the free one that it would have.
  std::size_t slotOf(const void *pointer) const {
    const std::size_t mask = slots.size() - 1;
    const std::uintptr_t scattered = reinterpret_cast<std::uintptr_t>(pointer) * 0x9E3779B97F4A7C15ull >> 20;
    std::size_t slot = static_cast<std::size_t>(scattered);
    for (slot &= mask; slots[slot].first && slots[slot].first != pointer; slot = (slot + 1) & mask)
      ;
    return slot;
  }

  void grow() {
    std::vector<std::pair<const void *, std::int32_t>> old(2 * slots.size(), {nullptr, absent});
    old.swap(slots);
    for (const auto &entry : old)
      if (entry.first)
        slots[slotOf(entry.first)] = entry;
  }

  std::vector<std::pair<const void *, std::int32_t>> slots;
  std::size_t count = 0;
};

} // namespace mlir_shard
