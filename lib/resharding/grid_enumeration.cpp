// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/grid_enumeration.h"

#include <algorithm>

namespace mlir_shard {

GridAxes without(const GridAxes &axes, const GridAxes &removed) {
  GridAxes left;
  for (char axis : axes)
    if (removed.find(axis) == GridAxes::npos)
      left += axis;
  return left;
}

std::size_t commonLength(const GridAxes &one, const GridAxes &other) {
  std::size_t length = 0;
  while (length < one.size() && length < other.size() && one[length] == other[length])
    ++length;
  return length;
}

GridAxes sortedAxes(GridAxes axes) {
  std::sort(axes.begin(), axes.end(), [](char one, char other) { return axisNumber(one) < axisNumber(other); });
  return axes;
}

void forSelections(const GridAxes &axes, std::size_t count, bool areOrdered, const std::function<void(const GridAxes &)> &use) {
  GridAxes chosen;
  std::vector<bool> isChosen(axes.size());
  std::function<void(std::size_t)> choose = [&](std::size_t from) {
    if (chosen.size() == count)
      return use(chosen);
    for (std::size_t i = areOrdered ? 0 : from; i < axes.size(); ++i) {
      if (isChosen[i])
        continue;
      isChosen[i] = true;
      chosen += axes[i];
      choose(i + 1);
      chosen.pop_back();
      isChosen[i] = false;
    }
  };
  choose(0);
}

bool forOrders(std::vector<std::int64_t> &counts, const GridAxes &axes, const std::vector<std::int64_t> &sizes,
               const GridDims &preferred, std::size_t dim, GridDims &dims, const std::function<bool(const GridDims &)> &use) {
  if (dim == counts.size())
    return use(dims);
  if (counts[dim] == 1)
    return forOrders(counts, axes, sizes, preferred, dim + 1, dims, use);
  GridAxes likely;
  for (char axis : preferred[dim])
    if (axes.find(axis) != GridAxes::npos)
      likely += axis;
  for (char axis : likely + without(axes, likely)) {
    std::int64_t size = sizes[axisNumber(axis)];
    if (counts[dim] % size)
      continue;
    counts[dim] /= size;
    dims[dim] += axis;
    bool goesOn = forOrders(counts, without(axes, GridAxes(1, axis)), sizes, preferred, dim, dims, use);
    dims[dim].pop_back();
    counts[dim] *= size;
    if (!goesOn)
      return false;
  }
  return true;
}

void forMoved(const GridDims &dims, const std::vector<std::size_t> &left, const GridAxes &moved,
              const std::function<void(const GridDims &, const GridAxes &)> &use) {
  use(dims, moved);
  for (std::size_t number = 0; number < left.size(); ++number)
    for (std::size_t second = number + 1; second < left.size(); ++second) {
      std::vector<std::size_t> rest;
      for (std::size_t i = number + 1; i < left.size(); ++i)
        if (i != second)
          rest.push_back(left[i]);
      for (bool isForward : {true, false}) {
        std::size_t source = isForward ? left[number] : left[second], target = isForward ? left[second] : left[number];
        for (std::size_t count = 1; count <= dims[source].size(); ++count) {
          GridAxes axes = dims[source].substr(dims[source].size() - count);
          GridDims after = dims;
          after[source].resize(dims[source].size() - count);
          after[target] += axes;
          forMoved(after, rest, axes + moved, use);
        }
      }
    }
}

void forDistributed(GridDims &dims, std::size_t dim, const GridAxes &order, const std::function<void(const GridDims &)> &use) {
  if (dim == dims.size()) {
    if (order.empty())
      use(dims);
    return;
  }
  std::size_t length = dims[dim].size();
  for (std::size_t count = 0; count <= order.size(); ++count) {
    dims[dim] += order.substr(0, count);
    forDistributed(dims, dim + 1, order.substr(count), use);
    dims[dim].resize(length);
  }
}

double numPlacements(std::size_t numAxes, std::size_t rank) {
  if (!rank)
    return 1;
  double total = 0, orders = 1, splits = 1;
  for (std::size_t count = 0; count <= numAxes; ++count) {
    total += orders * splits;
    orders *= static_cast<double>(numAxes - count);
    splits = splits * static_cast<double>(count + rank) / static_cast<double>(count + 1);
  }
  return total;
}

} // namespace mlir_shard
