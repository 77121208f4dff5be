// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The elements that devices receive between placements with uneven shards, counted by the places of devices.
//
// Dimensions that share no axes, directly or through other dimensions, are independent: the mean of a product over all
// devices is the product of the means, and the largest difference of products is attained by factors that no other
// factors dominate.
#pragma once

#include "resharding/grid_placement.h"
#include "resharding/pareto_front.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

class UnevenGrid {
public:
  // Adds the number of visited device places to `counted`.
  UnevenGrid(GridTensor tensor, std::shared_ptr<std::int64_t> counted);

  // Returns the numbers of elements that all devices together must receive, and the largest number that one must
  // receive.
  std::pair<Elements, Elements> lacking(const GridDims &before, const GridDims &after);
  // Returns the largest number of messages that a device sends or receives in a direct exchange; an upper bound on a
  // grid of many devices.
  std::int64_t exchangeRounds(const GridDims &before, const GridDims &after);
  // Returns the largest number of shards that a target shard overlaps.
  std::int64_t mostSenders(const GridDims &before, const GridDims &after) const;

private:
  struct DimChange {
    std::size_t dim;
    GridAxes before, after;
  };
  using Part = std::vector<DimChange>;
  struct Overlap {
    Elements common;
    std::int64_t devices;
    ParetoFront boxes;
  };
  struct Messages {
    ParetoFront sent, received;
  };

  // The messages of a direct exchange along a dimension: the number of devices that receive elements of a shard before,
  // by its number and the number of the place along the axes that only the placement after uses; and the number of
  // shards before that a shard after overlaps.
  struct AskersOfShards {
    GridAxes own;
    std::vector<ShardSpan> olds, nows;
    std::vector<std::int64_t> askers, senders;
    std::int64_t numOwn = 1, most = 0;
  };

  std::vector<Part> independent(const GridDims &before, const GridDims &after) const;
  const Overlap &overlapIn(const Part &part);
  template <typename Number>
  Overlap overlapOf(const Part &part, const GridAxes &along, const std::vector<std::vector<std::int64_t>> &weights) const;
  const Messages &messagesIn(const Part &part);
  AskersOfShards askersOf(const DimChange &change, const GridAxes &used) const;
  std::int64_t roundsAtMost(const GridDims &before, const GridDims &after) const;
  std::int64_t replicas(const GridDims &before, const GridDims &after) const;
  // Returns the largest number of shards of `oldCount` of a dimension that one shard of `newCount` overlaps.
  std::int64_t sourcesIn(std::size_t dim, std::int64_t oldCount, std::int64_t newCount) const;
  static std::string keyOf(const Part &part);

  GridTensor tensor;
  std::shared_ptr<std::int64_t> counted;
  mutable std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, std::int64_t> sources;
  std::unordered_map<std::string, Overlap> overlaps;
  std::unordered_map<std::string, Messages> messages;
};

} // namespace mlir_shard
