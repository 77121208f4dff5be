// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What devices receive between placements whose shards are all full, by arithmetic on digits.
#pragma once

#include "resharding/grid_placement.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// Grids on which all shards of a tensor are full. The index of a shard is a number of mixed radix, whose digits are
// those of the devices' places along the axes.
class EvenGrid {
public:
  explicit EvenGrid(const std::vector<std::int64_t> &sizes);

  // How a dimension changes: pairs of a digit and the one that it has to equal, the digits that both placements have, and
  // the shards by the digits that only one of them has. `isAlike` is false where digits that both have differ in radix.
  struct Change {
    std::vector<std::pair<std::uint8_t, std::uint8_t>> equal;
    std::vector<std::uint8_t> shared;
    std::int64_t moreBefore = 1, moreAfter = 1, after = 1;
    bool isAlike = true;
  };

  bool areAllAlike() const { return isUniform; }
  const Change &change(const GridAxes &before, const GridAxes &after);
  std::pair<Elements, Elements> lacking(const std::vector<const Change *> &changes, Elements elements);
  std::int64_t exchangeRounds(const GridDims &before, const std::vector<const Change *> &changes);

private:
  std::int64_t devices = 1;
  bool isUniform = true;
  std::vector<std::int64_t> radices;
  // The digits of each axis.
  std::vector<std::vector<std::uint8_t>> digits;
  std::unordered_map<std::string, Change> changes;
};

} // namespace mlir_shard
