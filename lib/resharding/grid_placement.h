// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Placements of a tensor on a grid.
//
// A placement consists of the grid axes that shard each dimension, from major to minor. A dimension of n elements in k
// shards has shards of ceil(n / k) elements; the last ones may be short or empty.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mlir_shard {

// Numbers of grid axes, one char each. Short strings are stored inline, and compare like tuples of numbers.
using GridAxes = std::string;
using GridDims = std::vector<GridAxes>;
// Numbers of elements of tensors of up to 2^90 bytes on up to 2^31 devices, which 64 bits cannot hold.
using Elements = __int128;

inline std::uint8_t axisNumber(char axis) { return static_cast<std::uint8_t>(axis); }
inline bool hasAxis(const GridAxes &axes, char axis) { return axes.find(axis) != GridAxes::npos; }

// Sizes may be up to 2^63 - 1, so adding to a size may overflow.
inline std::int64_t ceilDivided(std::int64_t number, std::int64_t by) { return number / by + (number % by != 0); }
inline std::int64_t shardSize(std::int64_t size, std::int64_t count) { return ceilDivided(size, count); }
// Returns the largest number of source shards that a target shard overlaps.
std::int64_t mostSources(std::int64_t size, std::int64_t oldCount, std::int64_t newCount);

// The elements of a shard of a dimension.
struct ShardSpan {
  std::int64_t begin = 0, end = 0;
};
std::vector<ShardSpan> shardSpans(std::int64_t size, std::int64_t count);

// A tensor and the sizes of the axes of a grid.
class GridTensor {
public:
  GridTensor(std::vector<std::int64_t> sizes, std::vector<std::int64_t> shape);

  const std::vector<std::int64_t> &sizes() const { return axisSizes; }
  const std::vector<std::int64_t> &shape() const { return tensorShape; }
  std::int64_t numDevices() const { return devices; }
  Elements numElements() const { return elements; }

  std::int64_t sizeOf(char axis) const { return axisSizes[axisNumber(axis)]; }
  // Returns the number of devices along axes.
  std::int64_t count(const GridAxes &axes) const;
  // Returns the number of elements that all devices hold together.
  Elements heldByAll(const GridDims &dims) const;
  // Returns the number of elements of a local tensor with its padding.
  Elements largestBox(const GridDims &dims) const;
  // Return whether all shards are full, in one placement and in all placements.
  bool isEven(const GridDims &dims) const;
  bool isAlwaysEven() const { return isEvenOnAll; }

private:
  std::vector<std::int64_t> axisSizes, tensorShape;
  std::int64_t devices = 1;
  Elements elements = 1;
  bool isEvenOnAll = true;
};

} // namespace mlir_shard
