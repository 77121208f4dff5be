// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What devices receive when a tensor goes from one placement on a grid to another, in elements.
//
// A placement has for each dimension the grid axes that shard it, from major to minor. A dimension of n elements in k
// shards has shards of ceil(n / k) elements; the last ones may be short or empty. Dimensions that share no axes, not even
// by way of others, are independent: the mean of a product over all devices is the product of the means, and the most of
// a difference of products is found among the factors that no other factors are better than in both.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// Numbers of grid axes, each a char. A short string holds them in place, and compares as a tuple of numbers does.
using GridAxes = std::string;
using GridDims = std::vector<GridAxes>;
// Of a tensor of up to 2^90 bytes, on up to 2^31 devices: 64 bits do not hold that.
using Elements = __int128;

// Appends dimensions to a key, so that different ones make different keys.
void appendKey(std::string &key, const GridDims &dims);

std::int64_t shardSize(std::int64_t size, std::int64_t count);
// The most source shards that a target shard has elements of.
std::int64_t mostSources(std::int64_t size, std::int64_t oldCount, std::int64_t newCount);
// The prime factors of a number in ascending order, each as often as it divides it.
std::vector<std::int64_t> primeFactors(std::int64_t number);

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

class GridTraffic {
public:
  // A range of indices of elements.
  struct Span {
    std::int64_t begin = 0, end = 0;
  };

  GridTraffic(std::vector<std::int64_t> sizes, std::vector<std::int64_t> shape);

  const std::vector<std::int64_t> &shape() const { return tensorShape; }
  const std::vector<std::int64_t> &sizes() const { return axisSizes; }
  std::int64_t numDevices() const { return devices; }
  Elements numElements() const { return elements; }
  // Whether what shards have in common follows from digits for all placements.
  bool isAlwaysInDigits() const { return even.areAllAlike() && isAlwaysEven; }

  std::int64_t count(const GridAxes &axes) const;
  // The elements that all devices hold together.
  Elements heldByAll(const GridDims &dims) const;
  // The elements of a local tensor with its padding.
  Elements largestBox(const GridDims &dims) const;

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
  std::int64_t mostSenders(const GridDims &before, const GridDims &after) const;

private:
  // Two numbers of a device, of the first of which the most is wanted, and of the second the least.
  using Front = std::vector<std::pair<Elements, Elements>>;
  struct DimChange {
    std::size_t dim;
    GridAxes before, after;
  };
  using Part = std::vector<DimChange>;
  struct Overlap {
    Elements common;
    std::int64_t devices;
    Front boxes;
  };
  struct Messages {
    Front sent, received;
  };

  // The messages of a direct exchange along a dimension: how many devices ask for elements of a shard before, by its number
  // and that of the place along the axes that only the placement after has; and how many a shard after comes from.
  struct AskersOfShards {
    GridAxes own;
    std::vector<Span> olds, nows;
    std::vector<std::int64_t> askers, senders;
    std::int64_t numOwn = 1, most = 0;
  };

  bool isEven(const GridDims &dims) const;
  bool inDigits(const GridDims &before, const GridDims &after, std::vector<const EvenGrid::Change *> &found);
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
  // Adds a pair to those of which no other has more of the first and less of the second.
  static void addToFront(Front &front, Elements wanted, Elements spared);
  static Front products(const Front &one, const Front &other);
  static Elements mostDifference(const Front &front);

  std::vector<std::int64_t> axisSizes, tensorShape;
  std::int64_t devices = 1;
  Elements elements = 1;
  bool isAlwaysEven = true;
  EvenGrid even;
  // Shared with the traffic of shards below.
  std::shared_ptr<std::int64_t> counted = std::make_shared<std::int64_t>(0);
  mutable std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, std::int64_t> sources;
  std::unordered_map<std::string, Overlap> overlaps;
  std::unordered_map<std::string, Messages> messages;
  // Whether devices differ between placements of as many shards, by the numbers of shards.
  std::unordered_map<std::string, std::unique_ptr<GridTraffic>> ofShards;
};

} // namespace mlir_shard
