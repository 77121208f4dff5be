// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/grid_traffic.h"

#include <utility>

namespace mlir_shard {

GridTraffic::GridTraffic(GridTensor tensor) : GridTraffic(std::move(tensor), std::make_shared<std::int64_t>(0)) {}

GridTraffic::GridTraffic(GridTensor tensor, std::shared_ptr<std::int64_t> counted)
    : placed(std::move(tensor)), counted(std::move(counted)), even(placed.sizes()), uneven(placed, this->counted) {}

bool GridTraffic::inDigits(const GridDims &before, const GridDims &after, std::vector<const EvenGrid::Change *> &found) {
  if (!placed.isAlwaysEven() && !(placed.isEven(before) && placed.isEven(after)))
    return false;
  for (std::size_t dim = 0; dim < before.size(); ++dim) {
    const EvenGrid::Change &change = even.change(before[dim], after[dim]);
    if (!change.isAlike)
      return false;
    found.push_back(&change);
  }
  return true;
}

std::pair<Elements, Elements> GridTraffic::lacking(const GridDims &before, const GridDims &after) {
  if (before == after)
    return {0, 0};
  std::vector<const EvenGrid::Change *> changes;
  if (inDigits(before, after, changes))
    return even.lacking(changes, placed.numElements());
  return uneven.lacking(before, after);
}

std::pair<Elements, Elements> GridTraffic::permuted(const GridDims &before, const GridDims &after) {
  std::vector<std::int64_t> counts;
  std::string key;
  for (const GridAxes &axes : before) {
    counts.push_back(placed.count(axes));
    key += std::to_string(counts.back()) + ',';
  }
  std::unique_ptr<GridTraffic> &shards = ofShards[key];
  if (!shards)
    shards.reset(new GridTraffic(GridTensor(placed.sizes(), std::move(counts)), counted));
  auto [moved, most] = shards->lacking(before, after);
  Elements box = placed.largestBox(before);
  return {moved * box, most * box};
}

std::int64_t GridTraffic::exchangeRounds(const GridDims &before, const GridDims &after) {
  if (!placed.numElements())
    return 0;
  std::vector<const EvenGrid::Change *> changes;
  if (inDigits(before, after, changes))
    return even.exchangeRounds(before, changes);
  return uneven.exchangeRounds(before, after);
}

} // namespace mlir_shard
