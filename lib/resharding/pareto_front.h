// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Pareto fronts of pairs of numbers, of which the first is maximized and the second minimized.
#pragma once

#include "resharding/grid_placement.h"

#include <utility>
#include <vector>

namespace mlir_shard {

// The added pairs that no other pair dominates, with a larger first and a smaller second number. The largest difference
// of products of pairs, one from each of several fronts, is attained by pairs in the product of the fronts.
class ParetoFront {
public:
  ParetoFront() = default;
  ParetoFront(Elements most, Elements least) : pairs{{most, least}} {}

  void add(Elements most, Elements least);
  // Returns the front of the products of one pair from each front.
  ParetoFront operator*(const ParetoFront &other) const;
  Elements mostDifference() const;

private:
  std::vector<std::pair<Elements, Elements>> pairs;
};

} // namespace mlir_shard
