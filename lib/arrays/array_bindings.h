// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Numbers of operations and values that Python and native code exchange, without a Python object for each.
#pragma once

#include "arrays/module_arrays.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace mlir_shard {

// Returns the 32-bit integers in a buffer, and their count.
inline std::pair<std::int32_t *, std::size_t> integers(const pybind11::buffer &buffer, bool writable) {
  const pybind11::buffer_info info = buffer.request(writable);
  if (!info.item_type_is_equivalent_to<std::int32_t>() || info.ndim != 1 || info.strides[0] != info.itemsize)
    throw std::invalid_argument("numbers are a buffer of integers of 32 bits");
  return {static_cast<std::int32_t *>(info.ptr), static_cast<std::size_t>(info.size)};
}

// Numbers that Python reads in place, through the buffer protocol.
class Integers {
public:
  explicit Integers(std::vector<std::int32_t> numbers)
      : numbers(std::make_shared<const std::vector<std::int32_t>>(std::move(numbers))) {}
  // References a column of `arrays` and keeps the arrays alive.
  Integers(const std::shared_ptr<ModuleArrays> &arrays, std::vector<std::int32_t> ModuleArrays::*column)
      : numbers(arrays, &((*arrays).*column)) {}

  pybind11::buffer_info buffer() const {
    return {numbers->data(), static_cast<pybind11::ssize_t>(numbers->size())};
  }

private:
  std::shared_ptr<const std::vector<std::int32_t>> numbers;
};

// Some of the operations of a module, by number, stored natively until Python needs them.
struct Operations {
  std::shared_ptr<const ModuleArrays> arrays;
  std::vector<std::int32_t> numbers;

  // Returns the operations whose signature is wanted, in their order.
  Operations where(const std::vector<bool> &wanted) const {
    const auto isWanted = [&](std::int32_t op) { return wanted.at(arrays->signatures[op]); };
    Operations found{arrays, {}};
    found.numbers.reserve(std::count_if(numbers.begin(), numbers.end(), isWanted));
    std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(found.numbers), isWanted);
    return found;
  }
};

} // namespace mlir_shard
