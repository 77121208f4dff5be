// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/pareto_front.h"

#include <algorithm>

namespace mlir_shard {

void ParetoFront::add(Elements most, Elements least) {
  for (const auto &[otherMost, otherLeast] : pairs)
    if (otherMost >= most && otherLeast <= least)
      return;
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                             [&](const auto &one) { return one.first <= most && one.second >= least; }),
              pairs.end());
  pairs.emplace_back(most, least);
}

ParetoFront ParetoFront::operator*(const ParetoFront &other) const {
  ParetoFront found;
  for (const auto &[most, least] : pairs)
    for (const auto &[otherMost, otherLeast] : other.pairs)
      found.add(most * otherMost, least * otherLeast);
  return found;
}

Elements ParetoFront::mostDifference() const {
  Elements most = pairs.front().first - pairs.front().second;
  for (const auto &[first, second] : pairs)
    most = std::max(most, first - second);
  return most;
}

} // namespace mlir_shard
