// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The placements of a tensor on a grid as a graph: its states, and the moves from each state with their costs.
#pragma once

#include "resharding/grid_traffic.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace mlir_shard {

// The axes of each dimension, and the axes along which values are unreduced, in ascending order.
struct ReshardState {
  GridDims dims;
  GridAxes unreduced;

  bool operator==(const ReshardState &other) const { return unreduced == other.unreduced && dims == other.dims; }
};

struct ReshardStateHash {
  std::size_t operator()(const ReshardState &state) const;
};

enum class MoveKind { Slice, Gather, AllToAll, Permute, AllReduce, ReduceScatter, Exchange };

// The cost by the objective, and a tie breaker.
using MoveCost = std::pair<double, double>;
// The relative tolerance of equal sums of seconds.
constexpr double rounding = 1e-9;
constexpr double infiniteCost = std::numeric_limits<double>::infinity();

struct ReshardEdge {
  ReshardState after;
  MoveCost cost;
  MoveKind kind;
};
using ReshardEdges = std::vector<ReshardEdge>;

// The latency in seconds, the seconds per byte, and the latency of a ring, along each axis of a grid.
struct GridLinks {
  std::vector<double> latency, secondsPerByte, ringLatency;
};

struct ReshardLimits {
  Elements memory;          // Bytes of a device; -1 for no limit.
  std::size_t permutations; // A state with more permutations of devices only has likely ones.
  std::int64_t messages;    // Of a direct exchange, one for each device in a round; 0 to disable exchanges.
};

class ReshardMoves {
public:
  // Values stay partial along the axes in `kept`. The objective is bytes if `countsBytes` is set, and seconds
  // otherwise.
  ReshardMoves(GridTensor tensor, GridLinks links, std::int64_t elementSize, bool countsBytes, const GridAxes &kept,
               ReshardLimits limits);

  // Adds the moves from a state except for direct exchanges; in a large space only likely ones on paths to the target.
  // Returns whether all permutations of devices were added, or `mayPermute` is false.
  bool add(const ReshardState &state, const ReshardState &target, bool mayPermute, ReshardEdges &edges);
  // Returns the direct exchange to the target if it costs less than `atMost`.
  std::optional<ReshardEdge> exchange(const ReshardState &state, const ReshardState &target, MoveCost atMost);
  // Returns whether two slices, or two gathers, can be merged into one that costs no more than both.
  bool canBeOne(MoveKind kind, const ReshardState &before, const ReshardState &between, const ReshardState &after) const;

  GridTraffic &traffic() { return deviceTraffic; }
  const GridTensor &tensor() const { return deviceTraffic.tensor(); }
  const ReshardLimits &limits() const { return given; }
  // Returns whether there are so many placements that states only have likely moves.
  bool isLarge() const { return hasManyPlacements; }

  // Returns the cost of moves in which all devices together receive `total` elements in `seconds`.
  MoveCost cost(Elements total, double seconds) const;
  double inBytes(Elements elements) const { return static_cast<double>(elements * elementSize); }
  Elements localBytes(const GridDims &dims) const { return tensor().largestBox(dims) * elementSize; }
  double ringLatency(const GridAxes &along) const;

private:
  MoveCost costOfAll(Elements most, double seconds) const;
  MoveCost gatherCost(const GridDims &before, const GridDims &after) const;
  double latency(const GridAxes &along) const;
  double secondsPerByte(const GridAxes &along) const;
  double ring(const GridAxes &along, double bytes) const { return ringLatency(along) + bytes * secondsPerByte(along); }
  double messagesTime(const GridAxes &along, std::int64_t count, double bytes) const;
  double messagesBetween(const GridDims &before, const GridDims &after, std::int64_t count, double bytes) const;

  bool hasRoom(const GridDims &before, const GridDims &after) const;
  bool nests(std::size_t dim, const GridAxes &before, const GridAxes &after) const;
  bool canBe(const GridDims &before, const GridDims &after, bool isSlice = false) const;
  GridAxes freeAxes(const ReshardState &state) const;
  std::vector<std::int64_t> countsOf(const GridDims &dims) const;

  void addSlices(const ReshardState &state, ReshardEdges &edges) const;
  void addGathers(const ReshardState &state, ReshardEdges &edges) const;
  void addAllToAlls(const ReshardState &state, ReshardEdges &edges) const;
  void addAllReduces(const ReshardState &state, ReshardEdges &edges) const;
  void addReduceScatters(const ReshardState &state, ReshardEdges &edges) const;
  void addMovesTowards(const ReshardState &state, const ReshardState &target, ReshardEdges &edges) const;
  // Adds permutations of devices. Returns whether all were added.
  bool addPermutations(const ReshardState &state, const ReshardState &target, ReshardEdges &edges);
  void addPermutation(const ReshardState &state, GridDims dims, ReshardEdges &edges);

  GridTraffic deviceTraffic;
  GridLinks links;
  std::int64_t elementSize;
  bool countsBytes;
  ReshardLimits given;
  // The axes along which values must be reduced.
  GridAxes movable;
  std::int64_t movableCount;
  bool isEven = true, hasManyPlacements;
  // The links of all axes, if they are equal.
  bool hasOneLink = true;
  double onlyLatency = 0, onlySecondsPerByte = 0;
};

} // namespace mlir_shard
