// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Numbers by pointer: most of the time that reading a module takes goes into looking values up.
//
// Pointers are in the order in which they were inserted, mostly that of the module, and a table has where each of them
// is. Pointers that lie close to each other have slots that do: what is looked up in the order of the module then goes
// over both, and over few pages, more or less in order, which matters where a module is larger than the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mlir_shard {

// Pointers that are numbered in the order in which they are inserted.
class PointerNumbers {
public:
  static constexpr std::int32_t absent = -1;

  PointerNumbers() { makeTable(); }

  std::size_t size() const { return pointers.size(); }
  const void *at(std::size_t number) const { return pointers.at(number); }

  // The number of `pointer`; `absent` where it has none.
  std::int32_t find(const void *pointer) const {
    needTable();
    return slots[slotOf(pointer)];
  }

  // The number of `pointer`, which becomes the next one where it had none; and whether it had none.
  std::pair<std::int32_t, bool> insert(const void *pointer) {
    needTable();
    std::int32_t &slot = slots[slotOf(pointer)];
    if (slot != absent)
      return {slot, false};
    const auto number = slot = static_cast<std::int32_t>(pointers.size());
    pointers.push_back(pointer);
    occupyOne();
    return {number, true};
  }

  // Gives the number of another pointer to `pointer`, which has none; the other one has none any more.
  void replace(std::int32_t number, const void *pointer) {
    needTable();
    // The slot of the other pointer stays occupied: what comes after it is looked up by way of it.
    pointers[number] = pointer;
    slots[slotOf(pointer)] = number;
    occupyOne();
  }

  void shrinkToFit() { pointers.shrink_to_fit(); }

  // Frees the table, which the next lookup makes again.
  void freeTable() { std::vector<std::int32_t>().swap(slots); }

private:
  // The slot that has the pointer, or the free one that it would have. Results of one operation are at least 16 bytes
  // apart. Each stretch of memory that has as many places as there are slots begins at another slot, as operations of one
  // size would share few slots otherwise.
  std::size_t slotOf(const void *pointer) const {
    const std::size_t mask = slots.size() - 1;
    const std::size_t place = reinterpret_cast<std::uintptr_t>(pointer) >> 4;
    std::size_t slot = (place + (place >> bits) * 0x9E3779B1u) & mask;
    while (slots[slot] != absent && pointers[slots[slot]] != pointer)
      slot = (slot + 1) & mask;
    return slot;
  }

  void occupyOne() {
    if (2 * ++occupied <= slots.size())
      return;
    ++bits;
    makeTable();
  }

  void needTable() const {
    if (slots.empty())
      makeTable();
  }

  void makeTable() const {
    slots.assign(std::size_t{1} << bits, absent);
    occupied = pointers.size();
    for (std::size_t number = 0; number < pointers.size(); ++number)
      slots[slotOf(pointers[number])] = static_cast<std::int32_t>(number);
  }

  unsigned bits = 6;
  // The number of a pointer; 2^bits, half of which are free at least.
  mutable std::vector<std::int32_t> slots;
  mutable std::size_t occupied = 0;
  std::vector<const void *> pointers;
};

class PointerMap {
public:
  static constexpr std::int32_t absent = PointerNumbers::absent;

  // The number of `pointer`; `absent` where it has none.
  std::int32_t find(const void *pointer) const {
    const std::int32_t place = places.find(pointer);
    return place == absent ? absent : numbers[place];
  }

  // The number of `pointer`, which becomes `number` where it had none; and whether it had none.
  std::pair<std::int32_t, bool> insert(const void *pointer, std::int32_t number) {
    const auto [place, isNew] = places.insert(pointer);
    if (isNew)
      numbers.push_back(number);
    return {numbers[place], isNew};
  }

  // Gives `pointer` another number, or one where it had none.
  void set(const void *pointer, std::int32_t number) {
    const auto [place, isNew] = places.insert(pointer);
    if (isNew)
      numbers.push_back(number);
    else
      numbers[place] = number;
  }

private:
  PointerNumbers places;
  std::vector<std::int32_t> numbers; // By place.
};

} // namespace mlir_shard
