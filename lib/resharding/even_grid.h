// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The elements that devices receive between placements in which all shards are full, computed by arithmetic on digits.
#pragma once

#include "resharding/grid_placement.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// A grid on which all shards of a tensor are full. The index of a shard is a mixed-radix number whose digits are those
// of the devices' places along the axes.
class EvenGrid {
public:
  explicit EvenGrid(const std::vector<std::int64_t> &sizes);

  // The change of a dimension: the pairs of digits that have to be equal, the digits at positions that both placements
  // have, and the numbers of shards along the digits that only one of them has. `isAlike` is false if digits at the
  // same position differ in radix.
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
