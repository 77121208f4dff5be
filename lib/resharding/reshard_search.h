// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The cheapest path through the graph of placements: A* (Hart, Nilsson, Raphael 1968) with an admissible bound and a
// limited number of states.
#pragma once

#include "resharding/reshard_moves.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// The result of a search: the states on the path with the kind of the move to each, if a path is cheap enough, and a
// lower bound of the cost of all paths.
struct ReshardPath {
  std::optional<std::vector<std::pair<MoveKind, ReshardState>>> steps;
  double least;
};

class ReshardSearch {
public:
  // The arguments are those of ReshardMoves.
  ReshardSearch(GridTensor tensor, GridLinks links, std::int64_t elementSize, bool countsBytes, const GridAxes &kept,
                ReshardLimits limits);

  // Returns the cheapest path that costs less than `atMost` among those found before `mostStates` states are visited.
  ReshardPath find(const ReshardState &source, const ReshardState &target, MoveCost atMost, std::size_t mostStates);
  // Returns a lower bound of the cost of all paths, without a search.
  double least(const ReshardState &source, const ReshardState &target);
  // Returns the least memory for a path, or nullopt if none is found, and a lower bound of the memory of all paths.
  std::pair<std::optional<Elements>, Elements> leastMemory(const ReshardState &source, const ReshardState &target,
                                                           std::size_t mostStates);

private:
  struct Node;
  using Nodes = std::unordered_map<ReshardState, Node, ReshardStateHash>;
  using Visited = Nodes::value_type;
  // A state on paths to one target: the lower bound of the remaining cost, and the best path to it in one search.
  struct Node {
    MoveCost remaining{-1, 0}; // Negative until it is needed.
    // The number of the last search that visited the state, and of the last one that found a path to it.
    std::uint64_t visitedBy = 0, reachedBy = 0;
    MoveCost cost{};
    const Visited *from = nullptr;
    MoveKind kind = MoveKind::Slice;
  };

  MoveCost leastBetween(const ReshardState &source, const ReshardState &target);
  double latencyToCombine(std::int64_t sources);

  ReshardMoves moves;
  std::int64_t keptCount;
  double leastLatency, leastSecondsPerByte;
  // The sizes of axes with the latencies of their rings.
  std::vector<std::pair<std::int64_t, double>> rings;
  std::unordered_map<std::int64_t, double> latencies;
  // The states on paths to each target, which searches share.
  std::unordered_map<ReshardState, Nodes, ReshardStateHash> paths;
  std::uint64_t searches = 0;
};

} // namespace mlir_shard
