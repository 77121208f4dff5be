// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Enumeration of the selections and orders of a placement's axes, and of their distributions over dimensions.
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

// Calls `use` with the selections of `count` axes in lexicographic order of their positions, as sequences if
// `areOrdered` is set and as sets otherwise.
void forSelections(const GridAxes &axes, std::size_t count, bool areOrdered, const std::function<void(const GridAxes &)> &use);

// Calls `use` with the placements along some of `axes` that have `counts` shards in the dimensions, those that begin
// like `preferred` first, until it returns false. Returns whether it never did.
bool forOrders(std::vector<std::int64_t> &counts, const GridAxes &axes, const std::vector<std::int64_t> &sizes,
               const GridDims &preferred, std::size_t dim, GridDims &dims, const std::function<bool(const GridDims &)> &use);

// Calls `use` with the results of all-to-alls between pairs of the dimensions in `left`, and the moved axes; first
// without any all-to-all. Each set of pairs is visited once, with ascending smaller dimensions of the pairs.
void forMoved(const GridDims &dims, const std::vector<std::size_t> &left, const GridAxes &moved,
              const std::function<void(const GridDims &, const GridAxes &)> &use);

// Calls `use` with the dimensions after the axes in `order` were appended: the first few to the first dimension, the
// next ones to the second dimension, and so on.
void forDistributed(GridDims &dims, std::size_t dim, const GridAxes &order, const std::function<void(const GridDims &)> &use);

// Returns the number of ways to distribute some axes, in some order, over the dimensions.
double numPlacements(std::size_t numAxes, std::size_t rank);

} // namespace mlir_shard
