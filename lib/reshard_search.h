// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The placements of a tensor on a grid as a graph whose edges are moves, and the cheapest path through it: A* (Hart,
// Nilsson, Raphael 1968) with an admissible bound and a budget of states.
#pragma once

#include "grid_traffic.h"

#include <limits>
#include <map>
#include <optional>
#include <unordered_set>

namespace mlir_shard {

// The axes of each dimension, and those along which values are still to be reduced, in ascending order.
struct ReshardState {
  GridDims dims;
  GridAxes unreduced;

  bool operator==(const ReshardState &other) const { return unreduced == other.unreduced && dims == other.dims; }
};

struct ReshardStateHash {
  std::size_t operator()(const ReshardState &state) const;
};

enum class MoveKind { Slice, Gather, AllToAll, Permute, AllReduce, ReduceScatter, Exchange };

// What the objective counts, then what decides among equals.
using MoveCost = std::pair<double, double>;

// The latency in seconds, the seconds a byte, and the latency of a ring, along each axis of a grid.
struct GridLinks {
  std::vector<double> latency, secondsPerByte, ringLatency;
};

struct ReshardLimits {
  Elements memory;          // Bytes of a device, -1 for no limit.
  std::size_t permutations; // A state with more permutations of devices has likely ones alone.
  std::int64_t messages;    // Of a direct exchange, counting one for each device in a round; 0 for no exchange.
};

// What a search found: the states on the path with the kind of the move to each, if there is one that is cheap enough,
// and what no path costs less than.
struct ReshardPath {
  std::optional<std::vector<std::pair<MoveKind, ReshardState>>> steps;
  double least;
};

class ReshardSearch {
public:
  // Values stay partial along the axes in `kept`. `countsBytes` says that the objective is bytes, and not seconds.
  ReshardSearch(std::vector<std::int64_t> sizes, GridLinks links, std::vector<std::int64_t> shape, std::int64_t elementSize,
                bool countsBytes, const GridAxes &kept, ReshardLimits limits);

  // The cheapest path that costs less than `atMost`, of those found before so many states are looked at.
  ReshardPath find(const ReshardState &source, const ReshardState &target, MoveCost atMost, std::size_t mostStates);
  // What no path costs less than, without a search.
  double least(const ReshardState &source, const ReshardState &target);
  // The least memory for a path, none where none is found, and that with less than which there is none.
  std::pair<std::optional<Elements>, Elements> leastMemory(const ReshardState &source, const ReshardState &target,
                                                           std::size_t mostStates);

private:
  struct Edge {
    ReshardState after;
    MoveCost cost;
    MoveKind kind;
  };
  using Edges = std::vector<Edge>;
  // The bound on what remains from states to one target.
  struct Remaining {
    Elements box;
    Elements reducedOnce;
    std::unordered_map<ReshardState, MoveCost, ReshardStateHash> known;
  };

  MoveCost cost(Elements total, double seconds) const;
  MoveCost costOfAll(Elements most, double seconds) const;
  double inBytes(Elements elements) const { return static_cast<double>(elements * elementSize); }
  Elements localBytes(const GridDims &dims) const { return traffic.largestBox(dims) * elementSize; }
  bool hasRoom(const GridDims &before, const GridDims &after) const;
  bool nests(std::size_t dim, const GridAxes &before, const GridAxes &after) const;
  bool canBe(const GridDims &before, const GridDims &after, bool isSlice = false) const;
  GridAxes freeAxes(const ReshardState &state) const;
  GridAxes permutable(const ReshardState &state) const;
  std::vector<std::int64_t> countsOf(const GridDims &dims) const;

  double ringLatency(const GridAxes &axes) const;
  double latency(const GridAxes &axes) const;
  double secondsPerByte(const GridAxes &axes) const;
  double ring(const GridAxes &axes, double bytes) const { return ringLatency(axes) + bytes * secondsPerByte(axes); }
  double messagesTime(const GridAxes &axes, std::int64_t count, double bytes) const;
  double messagesBetween(const GridDims &before, const GridDims &after, std::int64_t count, double bytes) const;

  void addSlices(const ReshardState &state, Edges &edges) const;
  void addGathers(const ReshardState &state, Edges &edges) const;
  void addAllToAlls(const ReshardState &state, Edges &edges) const;
  void addAllReduces(const ReshardState &state, Edges &edges) const;
  void addReduceScatters(const ReshardState &state, Edges &edges) const;
  void addMovesTowards(const ReshardState &state, const ReshardState &target, Edges &edges) const;
  // Adds permutations of devices; whether these are all there are.
  bool addPermutations(const ReshardState &state, const ReshardState &target, Edges &edges);
  void addPermutation(const ReshardState &state, GridDims dims, Edges &edges);
  std::optional<Edge> exchange(const ReshardState &state, const ReshardState &target, MoveCost atMost);
  MoveCost gatherCost(const GridDims &before, const GridDims &after) const;
  bool canBeOne(MoveKind kind, const ReshardState &before, const ReshardState &between, const ReshardState &after) const;

  Remaining &remainingTo(const ReshardState &target);
  MoveCost remaining(Remaining &bound, const ReshardState &state, const ReshardState &target);
  double latencyToCombine(std::int64_t sources);

  GridTraffic traffic;
  GridLinks links;
  std::int64_t elementSize;
  bool countsBytes;
  ReshardLimits limits;
  GridAxes axes;
  std::int64_t keptCount, axesCount;
  bool isEven, isLarge, hasOneLink;
  double leastLatency, leastSecondsPerByte, onlyLatency, onlySecondsPerByte;
  std::vector<std::pair<std::int64_t, double>> rings;
  std::unordered_map<std::int64_t, double> latencies;
  std::unordered_map<ReshardState, Remaining, ReshardStateHash> bounds;
};

} // namespace mlir_shard
