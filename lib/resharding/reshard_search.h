// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The cheapest path through the graph of placements: A* (Hart, Nilsson, Raphael 1968) with an admissible bound and a budget
// of states.
#pragma once

#include "resharding/reshard_moves.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// What a search found: the states on the path with the kind of the move to each, if there is one that is cheap enough,
// and what no path costs less than.
struct ReshardPath {
  std::optional<std::vector<std::pair<MoveKind, ReshardState>>> steps;
  double least;
};

class ReshardSearch {
public:
  // As for the moves.
  ReshardSearch(GridTensor tensor, GridLinks links, std::int64_t elementSize, bool countsBytes, const GridAxes &kept,
                ReshardLimits limits);

  // The cheapest path that costs less than `atMost`, of those found before so many states are looked at.
  ReshardPath find(const ReshardState &source, const ReshardState &target, MoveCost atMost, std::size_t mostStates);
  // What no path costs less than, without a search.
  double least(const ReshardState &source, const ReshardState &target);
  // The least memory for a path, none where none is found, and that with less than which there is none.
  std::pair<std::optional<Elements>, Elements> leastMemory(const ReshardState &source, const ReshardState &target,
                                                           std::size_t mostStates);

private:
  // The bound on what remains from states to one target.
  struct Remaining {
    Elements box;
    Elements reducedOnce;
    std::unordered_map<ReshardState, MoveCost, ReshardStateHash> known;
  };

  Remaining &remainingTo(const ReshardState &target);
  MoveCost remaining(Remaining &bound, const ReshardState &state, const ReshardState &target);
  double latencyToCombine(std::int64_t sources);

  ReshardMoves moves;
  std::int64_t keptCount;
  double leastLatency, leastSecondsPerByte;
  // The sizes of axes with the latencies of their rings.
  std::vector<std::pair<std::int64_t, double>> rings;
  std::unordered_map<std::int64_t, double> latencies;
  std::unordered_map<ReshardState, Remaining, ReshardStateHash> bounds;
};

} // namespace mlir_shard
