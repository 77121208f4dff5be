// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Enumerates what can be made of the axes of a placement: selections, orders, and how they are given to dimensions.
#pragma once

#include "resharding/grid_placement.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace mlir_shard {

GridAxes without(const GridAxes &axes, const GridAxes &removed);
std::size_t commonLength(const GridAxes &one, const GridAxes &other);
GridAxes sortedAxes(GridAxes axes);

// Calls `use` with the selections of `count` axes in lexicographic order of their places; as ordered ones or as sets.
void forSelections(const GridAxes &axes, std::size_t count, bool areOrdered, const std::function<void(const GridAxes &)> &use);

// Calls `use` with the placements along some of `axes` with so many shards in each dimension, those first that begin as
// `preferred`, until it returns false. Returns whether it never did.
bool forOrders(std::vector<std::int64_t> &counts, const GridAxes &axes, const std::vector<std::int64_t> &sizes,
               const GridDims &preferred, std::size_t dim, GridDims &dims, const std::function<bool(const GridDims &)> &use);

// Calls `use` with what all-to-alls between pairs of the dimensions in `left` make, and the axes moved; first that of
// none. Each set of pairs is there once, as the smaller dimensions of the pairs ascend.
void forMoved(const GridDims &dims, const std::vector<std::size_t> &left, const GridAxes &moved,
              const std::function<void(const GridDims &, const GridAxes &)> &use);

// Calls `use` with the dimensions after the axes were added in this order, the first few at the end of the first one,
// the next of the second, and so on.
void forDistributed(GridDims &dims, std::size_t dim, const GridAxes &order, const std::function<void(const GridDims &)> &use);

// How many ways there are to give some axes, in some order, to the dimensions.
double numPlacements(std::size_t numAxes, std::size_t rank);

} // namespace mlir_shard
