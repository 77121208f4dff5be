// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Pairs of numbers, of the first of which the most is wanted, and of the second the least.
#pragma once

#include "resharding/grid_placement.h"

#include <utility>
#include <vector>

namespace mlir_shard {

// Those of the pairs that were added of which no other has more of the first and less of the second. The most difference
// of products of pairs, one of each of several fronts, is among the products of these.
class ParetoFront {
public:
  ParetoFront() = default;
  ParetoFront(Elements most, Elements least) : pairs{{most, least}} {}

  void add(Elements most, Elements least);
  // The pairs that are products of one of each.
  ParetoFront operator*(const ParetoFront &other) const;
  Elements mostDifference() const;

private:
  std::vector<std::pair<Elements, Elements>> pairs;
};

} // namespace mlir_shard
