// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Maps from pointers to numbers: most of the time of reading a module is spent on looking values up.
//
// Pointers are stored in the order of insertion, mostly that of the module, and a table stores the index of each.
// Pointers close to each other have slots close to each other: lookups in the order of the module then access both
// arrays nearly in order and touch few pages, which matters if a module is larger than the caches.
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

  // Returns the number of `pointer`; `absent` if it has none.
  std::int32_t find(const void *pointer) const {
    needTable();
    return slots[slotOf(pointer)];
  }

  // Returns the number of `pointer`, which is the next free one if the pointer is new, and whether the pointer is new.
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

  // Transfers the number of another pointer to `pointer`, which must have none; the other pointer has no number
  // afterwards.
  void replace(std::int32_t number, const void *pointer) {
    needTable();
    // The slot of the other pointer stays occupied, because the probe sequences of later slots pass through it.
    pointers[number] = pointer;
    slots[slotOf(pointer)] = number;
    occupyOne();
  }

  void shrinkToFit() { pointers.shrink_to_fit(); }

  // Frees the table, which the next lookup rebuilds.
  void freeTable() { std::vector<std::int32_t>().swap(slots); }

private:
  // Returns the slot of the pointer, or the free slot for it. Results of one operation are at least 16 bytes apart.
  // Each stretch of memory with as many places as there are slots begins at another slot, because operations of equal
  // size would otherwise share few slots.
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
  // The numbers of pointers, in 2^bits slots of which at least half are free.
  mutable std::vector<std::int32_t> slots;
  mutable std::size_t occupied = 0;
  std::vector<const void *> pointers;
};

class PointerMap {
public:
  static constexpr std::int32_t absent = PointerNumbers::absent;

  // Returns the number of `pointer`; `absent` if it has none.
  std::int32_t find(const void *pointer) const {
    const std::int32_t place = places.find(pointer);
    return place == absent ? absent : numbers[place];
  }

  // Returns the number of `pointer`, which is `number` if the pointer is new, and whether the pointer is new.
  std::pair<std::int32_t, bool> insert(const void *pointer, std::int32_t number) {
    const auto [place, isNew] = places.insert(pointer);
    if (isNew)
      numbers.push_back(number);
    return {numbers[place], isNew};
  }

  // Sets the number of `pointer`, which may be new.
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
