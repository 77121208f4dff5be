// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What devices receive when a tensor goes from one placement on a grid to another, in elements.
#pragma once

#include "resharding/even_grid.h"
#include "resharding/grid_placement.h"
#include "resharding/uneven_grid.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

class GridTraffic {
public:
  explicit GridTraffic(GridTensor tensor);

  const GridTensor &tensor() const { return placed; }
  // Whether what shards have in common follows from digits for all placements.
  bool isAlwaysInDigits() const { return even.areAllAlike() && placed.isAlwaysEven(); }
  // How many places of devices have been looked at, where uneven shards are counted one by one.
  std::int64_t placesCounted() const { return *counted; }

  // What all devices together, and the one that lacks most, have to receive.
  std::pair<Elements, Elements> lacking(const GridDims &before, const GridDims &after);
  // What all devices together, and each that takes part, receive in a permutation of devices.
  std::pair<Elements, Elements> permuted(const GridDims &before, const GridDims &after);
  // The rounds of a direct exchange: the most messages that a device sends or receives. On a grid of many devices an
  // upper bound if shards are uneven.
  std::int64_t exchangeRounds(const GridDims &before, const GridDims &after);
  // The most shards that a target shard has elements of.
  std::int64_t mostSenders(const GridDims &before, const GridDims &after) const { return uneven.mostSenders(before, after); }

private:
  // Shares the counter with the traffic of shards below.
  GridTraffic(GridTensor tensor, std::shared_ptr<std::int64_t> counted);

  bool inDigits(const GridDims &before, const GridDims &after, std::vector<const EvenGrid::Change *> &found);

  GridTensor placed;
  std::shared_ptr<std::int64_t> counted;
  EvenGrid even;
  UnevenGrid uneven;
  // Whether devices differ between placements of as many shards, by the numbers of shards.
  std::unordered_map<std::string, std::unique_ptr<GridTraffic>> ofShards;
};

} // namespace mlir_shard
