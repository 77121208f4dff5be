// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/grid_placement.h"

#include <algorithm>
#include <utility>

namespace mlir_shard {

std::int64_t mostSources(std::int64_t size, std::int64_t oldCount, std::int64_t newCount) {
  if (!size)
    return 0;
  std::int64_t oldStep = shardSize(size, oldCount), newStep = shardSize(size, newCount), most = 0;
  for (std::int64_t left = size; left > 0; left -= std::min(left, newStep)) {
    std::int64_t begin = size - left, last = begin + std::min(left, newStep) - 1;
    most = std::max(most, last / oldStep - begin / oldStep + 1);
  }
  return most;
}

std::vector<ShardSpan> shardSpans(std::int64_t size, std::int64_t count) {
  std::vector<ShardSpan> found(static_cast<std::size_t>(count));
  std::int64_t step = shardSize(size, count), begin = 0;
  for (ShardSpan &span : found) {
    span = {begin, begin + std::min(step, size - begin)};
    begin = span.end;
  }
  return found;
}

GridTensor::GridTensor(std::vector<std::int64_t> sizes, std::vector<std::int64_t> shape)
    : axisSizes(std::move(sizes)), tensorShape(std::move(shape)) {
  for (std::int64_t size : axisSizes)
    devices *= size;
  for (std::int64_t size : tensorShape) {
    elements *= size;
    isEvenOnAll = isEvenOnAll && size % devices == 0;
  }
}

std::int64_t GridTensor::count(const GridAxes &axes) const {
  std::int64_t result = 1;
  for (char axis : axes)
    result *= sizeOf(axis);
  return result;
}

Elements GridTensor::heldByAll(const GridDims &dims) const {
  std::int64_t shards = 1;
  for (const GridAxes &axes : dims)
    shards *= count(axes);
  return elements * (devices / shards);
}

Elements GridTensor::largestBox(const GridDims &dims) const {
  Elements result = 1;
  for (std::size_t dim = 0; dim < dims.size(); ++dim)
    result *= shardSize(tensorShape[dim], count(dims[dim]));
  return result;
}

bool GridTensor::isEven(const GridDims &dims) const {
  for (std::size_t dim = 0; dim < dims.size(); ++dim)
    if (tensorShape[dim] % count(dims[dim]))
      return false;
  return true;
}

} // namespace mlir_shard
