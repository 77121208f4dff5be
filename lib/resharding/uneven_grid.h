// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What devices receive between placements whose shards are uneven, counted by the places of devices.
//
// Dimensions that share no axes, not even by way of others, are independent: the mean of a product over all devices is the
// product of the means, and the most of a difference of products is found among the factors that no other factors are
// better than in both.
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
  // Adds to `counted` the places of devices that it looks at.
  UnevenGrid(GridTensor tensor, std::shared_ptr<std::int64_t> counted);

  // What all devices together, and the one that lacks most, have to receive.
  std::pair<Elements, Elements> lacking(const GridDims &before, const GridDims &after);
  // The most messages that a device sends or receives in a direct exchange; an upper bound on a grid of many devices.
  std::int64_t exchangeRounds(const GridDims &before, const GridDims &after);
  // The most shards that a target shard has elements of.
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

  // The messages of a direct exchange along a dimension: how many devices ask for elements of a shard before, by its number
  // and that of the place along the axes that only the placement after has; and how many a shard after comes from.
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
  // The most shards of `oldCount` of a dimension that one of `newCount` has elements of.
  std::int64_t sourcesIn(std::size_t dim, std::int64_t oldCount, std::int64_t newCount) const;
  static std::string keyOf(const Part &part);

  GridTensor tensor;
  std::shared_ptr<std::int64_t> counted;
  mutable std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, std::int64_t> sources;
  std::unordered_map<std::string, Overlap> overlaps;
  std::unordered_map<std::string, Messages> messages;
};

} // namespace mlir_shard
