// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The elements that devices receive when a tensor is resharded from one placement on a grid to another.
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
  // Returns whether the overlaps of shards follow from digits for all placements.
  bool isAlwaysInDigits() const { return even.areAllAlike() && placed.isAlwaysEven(); }
  // Returns the number of device places visited while counting uneven shards.
  std::int64_t placesCounted() const { return *counted; }

  // Returns the numbers of elements that all devices together must receive, and the largest number that one must
  // receive.
  std::pair<Elements, Elements> lacking(const GridDims &before, const GridDims &after);
  // Returns the numbers of elements received in a permutation of devices by all devices together and by each
  // participant.
  std::pair<Elements, Elements> permuted(const GridDims &before, const GridDims &after);
  // Returns the rounds of a direct exchange: the largest number of messages that a device sends or receives. If shards
  // are uneven, it is an upper bound on a grid of many devices.
  std::int64_t exchangeRounds(const GridDims &before, const GridDims &after);
  // Returns the largest number of shards that a target shard overlaps.
  std::int64_t mostSenders(const GridDims &before, const GridDims &after) const { return uneven.mostSenders(before, after); }

private:
  // Shares the counter with the traffic of shards below.
  GridTraffic(GridTensor tensor, std::shared_ptr<std::int64_t> counted);

  bool inDigits(const GridDims &before, const GridDims &after, std::vector<const EvenGrid::Change *> &found);

  GridTensor placed;
  std::shared_ptr<std::int64_t> counted;
  EvenGrid even;
  UnevenGrid uneven;
  // The traffic of tensors with one element for each shard, by the numbers of shards: which devices take part in a
  // permutation.
  std::unordered_map<std::string, std::unique_ptr<GridTraffic>> ofShards;
};

} // namespace mlir_shard
