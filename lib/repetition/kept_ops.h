// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations around which nothing is resharded: this is proved once for operations that differ only in sizes, and
// checked for each size.
#pragma once

#include "arrays/module_arrays.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// The shards of an operation around which nothing is resharded, and the rates by which its cost is computed; see
// `ComputeCosts` in resharding/operator/op_problem.py.
struct KeptForm {
  // The dimension that has the size of each factor: the number of an operand or, after these, of a result, and the
  // dimension.
  std::vector<std::pair<std::int32_t, std::int32_t>> factors;
  std::vector<std::int64_t> factorShards;             // The number of shards of each factor.
  std::vector<std::int64_t> elementSizes;             // Of the operands and results, in bytes.
  std::vector<std::vector<std::int64_t>> tensorShards; // The number of shards of each dimension of each of them.
  std::int64_t operationsPerElement;                  // The operations for each element of the factors' product.
  double operationRate, memoryRate;                   // Per second.
  double moveLatency;                                 // The least latency of a reshard, in seconds.
};

class KeptOps {
public:
  // `forms` has the number of the form of the operations of each signature, -1 for those without a form. Operations of
  // a form differ only in sizes.
  KeptOps(const ModuleArrays &arrays, std::vector<std::int32_t> forms) : arrays(arrays), forms(std::move(forms)) {}

  // Adds the form of an operation for the present numbers of its operands and results, which represent shardings.
  void add(std::int32_t op, const std::int32_t *numbers, KeptForm form);

  // Returns whether it is proved that nothing is resharded around an operation with the present numbers.
  bool isKept(std::int32_t op, const std::int32_t *numbers);

private:
  using Key = std::vector<std::int32_t>;

  bool readKey(std::int32_t op, const std::int32_t *numbers);
  bool isKept(std::int32_t op, const KeptForm &form) const;

  const ModuleArrays &arrays;
  std::vector<std::int32_t> forms;
  std::unordered_map<Key, KeptForm, NumbersHash> known;
  Key key; // The key that was read last.
};

} // namespace mlir_shard
