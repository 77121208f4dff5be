// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/reshard_moves.h"

#include "resharding/grid_enumeration.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace mlir_shard {

namespace {

// The space of a tensor with more placements is large: states only have likely moves.
constexpr double mostPlacements = 2000;

GridDims withDim(GridDims dims, std::size_t dim, GridAxes axes) {
  dims[dim] = std::move(axes);
  return dims;
}

} // namespace

std::size_t ReshardStateHash::operator()(const ReshardState &state) const {
  // FNV-1a (Fowler, Noll, Vo) of the axes, with a separator after each dimension.
  std::uint64_t hash = 14695981039346656037ull;
  auto add = [&](char byte) { hash = (hash ^ axisNumber(byte)) * 1099511628211ull; };
  for (const GridAxes &axes : state.dims) {
    std::for_each(axes.begin(), axes.end(), add);
    add('\xff');
  }
  std::for_each(state.unreduced.begin(), state.unreduced.end(), add);
  return static_cast<std::size_t>(hash);
}

ReshardMoves::ReshardMoves(GridTensor tensor, GridLinks links, std::int64_t elementSize, bool countsBytes,
                           const GridAxes &kept, ReshardLimits limits)
    : deviceTraffic(std::move(tensor)), links(std::move(links)), elementSize(elementSize), countsBytes(countsBytes),
      given(limits) {
  std::optional<std::size_t> only;
  const std::vector<std::int64_t> &sizes = this->tensor().sizes();
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] <= 1)
      continue;
    if (only && (this->links.latency[*only] != this->links.latency[axis] ||
                 this->links.secondsPerByte[*only] != this->links.secondsPerByte[axis]))
      hasOneLink = false;
    only = axis;
    if (!hasAxis(kept, static_cast<char>(axis)))
      movable += static_cast<char>(axis);
  }
  hasOneLink = hasOneLink && only;
  if (only) {
    onlyLatency = this->links.latency[*only];
    onlySecondsPerByte = this->links.secondsPerByte[*only];
  }
  movableCount = this->tensor().count(movable);
  for (std::int64_t size : this->tensor().shape())
    isEven = isEven && size % movableCount == 0;
  hasManyPlacements = numPlacements(movable.size(), this->tensor().shape().size()) > mostPlacements;
}

bool ReshardMoves::add(const ReshardState &state, const ReshardState &target, bool mayPermute, ReshardEdges &edges) {
  addSlices(state, edges);
  addGathers(state, edges);
  addAllToAlls(state, edges);
  if (!state.unreduced.empty()) {
    addAllReduces(state, edges);
    addReduceScatters(state, edges);
  }
  if (isLarge())
    addMovesTowards(state, target, edges);
  return !mayPermute || addPermutations(state, target, edges);
}

MoveCost ReshardMoves::cost(Elements total, double seconds) const {
  double bytes = static_cast<double>(total * elementSize);
  return countsBytes ? MoveCost{bytes, seconds} : MoveCost{seconds, bytes};
}

MoveCost ReshardMoves::costOfAll(Elements most, double seconds) const {
  return cost(most * tensor().numDevices(), seconds);
}

bool ReshardMoves::hasRoom(const GridDims &before, const GridDims &after) const {
  return given.memory < 0 || localBytes(before) + localBytes(after) <= given.memory;
}

// Returns whether each shard of the coarser placement of a dimension consists of consecutive shards of the finer one.
bool ReshardMoves::nests(std::size_t dim, const GridAxes &before, const GridAxes &after) const {
  std::int64_t size = tensor().shape()[dim], one = tensor().count(before), other = tensor().count(after);
  std::int64_t few = std::min(one, other), many = std::max(one, other);
  if (many % few)
    return false;
  std::int64_t coarse = shardSize(size, few), fine = shardSize(size, many);
  return few == 1 || coarse >= size || fine * (many / few) == coarse;
}

bool ReshardMoves::canBe(const GridDims &before, const GridDims &after, bool isSlice) const {
  if (!isEven)
    for (std::size_t dim = 0; dim < before.size(); ++dim)
      if (before[dim] != after[dim] && !nests(dim, before[dim], after[dim]))
        return false;
  return isSlice ? given.memory < 0 || localBytes(before) <= given.memory : hasRoom(before, after);
}

GridAxes ReshardMoves::freeAxes(const ReshardState &state) const {
  GridAxes used = state.unreduced;
  for (const GridAxes &ofDim : state.dims)
    used += ofDim;
  return without(movable, used);
}

std::vector<std::int64_t> ReshardMoves::countsOf(const GridDims &dims) const {
  std::vector<std::int64_t> counts;
  for (const GridAxes &ofDim : dims)
    counts.push_back(tensor().count(ofDim));
  return counts;
}

double ReshardMoves::ringLatency(const GridAxes &along) const {
  double result = 0;
  for (char axis : along)
    result += links.ringLatency[axisNumber(axis)];
  return result;
}

double ReshardMoves::latency(const GridAxes &along) const {
  double most = 0;
  for (char axis : along)
    if (tensor().sizes()[axisNumber(axis)] > 1)
      most = std::max(most, links.latency[axisNumber(axis)]);
  return most;
}

double ReshardMoves::secondsPerByte(const GridAxes &along) const {
  double most = 0;
  for (char axis : along)
    if (tensor().sizes()[axisNumber(axis)] > 1)
      most = std::max(most, links.secondsPerByte[axisNumber(axis)]);
  return most;
}

double ReshardMoves::messagesTime(const GridAxes &along, std::int64_t count, double bytes) const {
  return static_cast<double>(count) * latency(along) + bytes * secondsPerByte(along);
}

// Returns the time of messages along the axes that a change of dimensions involves: all except the common leading axes.
double ReshardMoves::messagesBetween(const GridDims &before, const GridDims &after, std::int64_t count, double bytes) const {
  if (hasOneLink && before != after)
    return static_cast<double>(count) * onlyLatency + bytes * onlySecondsPerByte;
  GridAxes along;
  for (std::size_t dim = 0; dim < before.size(); ++dim) {
    std::size_t common = commonLength(before[dim], after[dim]);
    along += before[dim].substr(common) + after[dim].substr(common);
  }
  return messagesTime(along, count, bytes);
}

void ReshardMoves::addSlices(const ReshardState &state, ReshardEdges &edges) const {
  GridAxes free = freeAxes(state);
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim) {
    std::size_t longest = isLarge() || isEven || tensor().shape()[dim] % movableCount == 0 ? 1 : free.size();
    for (std::size_t count = 1; count <= std::min(longest, free.size()); ++count)
      forSelections(free, count, true, [&](const GridAxes &added) {
        GridAxes beforeLast = state.dims[dim] + added.substr(0, count - 1), last = state.dims[dim] + added;
        if (count > 1 && nests(dim, beforeLast, last))
          return;
        GridDims after = withDim(state.dims, dim, std::move(last));
        if (canBe(state.dims, after, true))
          edges.push_back({{std::move(after), state.unreduced}, {0, 0}, MoveKind::Slice});
      });
  }
}

void ReshardMoves::addGathers(const ReshardState &state, ReshardEdges &edges) const {
  auto add = [&](GridDims after) {
    if (canBe(state.dims, after)) {
      MoveCost price = gatherCost(state.dims, after);
      edges.push_back({{std::move(after), state.unreduced}, price, MoveKind::Gather});
    }
  };
  if ((isEven && given.memory < 0) || isLarge()) {
    for (std::size_t dim = 0; dim < state.dims.size(); ++dim) {
      std::size_t length = state.dims[dim].size();
      for (std::size_t left = isEven && given.memory < 0 && length ? length - 1 : 0; left < length; ++left)
        add(withDim(state.dims, dim, state.dims[dim].substr(0, left)));
    }
    return;
  }
  GridDims after = state.dims;
  std::function<void(std::size_t)> shorten = [&](std::size_t dim) {
    if (dim == after.size()) {
      if (after != state.dims)
        add(after);
      return;
    }
    for (std::size_t left = 0; left <= state.dims[dim].size(); ++left) {
      after[dim] = state.dims[dim].substr(0, left);
      shorten(dim + 1);
    }
  };
  shorten(0);
}

MoveCost ReshardMoves::gatherCost(const GridDims &before, const GridDims &after) const {
  GridAxes gathered;
  for (std::size_t dim = 0; dim < before.size(); ++dim)
    gathered += before[dim].substr(after[dim].size());
  gathered = sortedAxes(std::move(gathered));
  Elements most = tensor().largestBox(before) * (tensor().count(gathered) - 1);
  return costOfAll(most, ring(gathered, inBytes(most)));
}

void ReshardMoves::addAllToAlls(const ReshardState &state, ReshardEdges &edges) const {
  std::vector<std::size_t> all;
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim)
    all.push_back(dim);
  forMoved(state.dims, all, {}, [&](const GridDims &dims, const GridAxes &moved) {
    if (moved.empty() || !canBe(state.dims, dims))
      return;
    GridAxes along = sortedAxes(moved);
    std::int64_t count = tensor().count(along);
    Elements most = count - 1;
    for (std::size_t dim = 0; dim < dims.size(); ++dim)
      most *= shardSize(tensor().shape()[dim], std::max(tensor().count(state.dims[dim]), tensor().count(dims[dim])));
    edges.push_back(
        {{dims, state.unreduced}, costOfAll(most, messagesTime(along, count - 1, inBytes(most))), MoveKind::AllToAll});
  });
}

void ReshardMoves::addAllReduces(const ReshardState &state, ReshardEdges &edges) const {
  if (!hasRoom(state.dims, state.dims))
    return;
  for (std::size_t count = 1; count <= state.unreduced.size(); ++count)
    forSelections(state.unreduced, count, false, [&](const GridAxes &reduced) {
      Elements box = tensor().largestBox(state.dims);
      std::int64_t devices = tensor().count(reduced);
      // A device reduces one part and receives the others.
      Elements most = (box + devices - 1) / devices * (devices - 2) + box;
      double seconds = ring(reduced, inBytes(most)) + ringLatency(reduced);
      edges.push_back({{state.dims, without(state.unreduced, reduced)}, costOfAll(most, seconds), MoveKind::AllReduce});
    });
}

void ReshardMoves::addReduceScatters(const ReshardState &state, ReshardEdges &edges) const {
  for (std::size_t count = 1; count <= state.unreduced.size(); ++count)
    forSelections(state.unreduced, count, true, [&](const GridAxes &order) {
      GridDims dims = state.dims;
      forDistributed(dims, 0, order, [&](const GridDims &after) {
        if (!canBe(state.dims, after))
          return;
        GridAxes along = sortedAxes(order);
        Elements most = tensor().largestBox(after) * (tensor().count(along) - 1);
        edges.push_back({{after, without(state.unreduced, order)},
                         costOfAll(most, ring(along, inBytes(most))),
                         MoveKind::ReduceScatter});
      });
    });
}

// Adds slices of several axes towards those of a dimension of the target, and a gather of all axes that precede these.
void ReshardMoves::addMovesTowards(const ReshardState &state, const ReshardState &target, ReshardEdges &edges) const {
  GridAxes free = freeAxes(state);
  GridDims kept;
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim)
    kept.push_back(state.dims[dim].substr(0, commonLength(state.dims[dim], target.dims[dim])));
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim) {
    const GridAxes &own = state.dims[dim], &wanted = target.dims[dim];
    if (own != kept[dim] || wanted.size() <= own.size() + 1 || !without(wanted.substr(own.size()), free).empty())
      continue;
    GridDims after = withDim(state.dims, dim, wanted);
    if (canBe(state.dims, after, true))
      edges.push_back({{std::move(after), state.unreduced}, {0, 0}, MoveKind::Slice});
  }
  if (kept != state.dims && canBe(state.dims, kept)) {
    MoveCost price = gatherCost(state.dims, kept);
    edges.push_back({{std::move(kept), state.unreduced}, price, MoveKind::Gather});
  }
}

bool ReshardMoves::addPermutations(const ReshardState &state, const ReshardState &target, ReshardEdges &edges) {
  std::vector<std::int64_t> counts = countsOf(state.dims);
  GridAxes along = without(movable, state.unreduced);
  GridDims dims(state.dims.size());
  if (!isLarge()) {
    std::vector<GridDims> found;
    GridDims none(state.dims.size());
    bool areAll = forOrders(counts, along, tensor().sizes(), none, 0, dims, [&](const GridDims &order) {
      found.push_back(order);
      return found.size() <= given.permutations;
    });
    if (areAll) {
      for (GridDims &order : found)
        addPermutation(state, std::move(order), edges);
      return true;
    }
    counts = countsOf(state.dims);
    dims.assign(state.dims.size(), {});
  }
  // Dimensions begin with the axes of the target or keep their own axes, as far as possible.
  std::set<GridDims> likely;
  GridDims preferred(state.dims.size());
  std::function<void(std::size_t)> prefer = [&](std::size_t dim) {
    if (dim == preferred.size()) {
      forOrders(counts, along, tensor().sizes(), preferred, 0, dims, [&](const GridDims &order) {
        likely.insert(order);
        return false;
      });
      counts = countsOf(state.dims);
      dims.assign(state.dims.size(), {});
      return;
    }
    const GridAxes &own = state.dims[dim], &wanted = target.dims[dim];
    preferred[dim] = wanted + without(own, wanted);
    bool isOther = preferred[dim] != own && !own.empty();
    prefer(dim + 1);
    if (isOther) {
      preferred[dim] = own;
      prefer(dim + 1);
    }
  };
  prefer(0);
  for (const GridDims &order : likely)
    addPermutation(state, order, edges);
  return false;
}

void ReshardMoves::addPermutation(const ReshardState &state, GridDims dims, ReshardEdges &edges) {
  if (dims == state.dims || !hasRoom(state.dims, dims))
    return;
  auto [total, most] = deviceTraffic.permuted(state.dims, dims);
  MoveCost price = cost(total, messagesBetween(state.dims, dims, 1, inBytes(most)));
  edges.push_back({{std::move(dims), state.unreduced}, price, MoveKind::Permute});
}

std::optional<ReshardEdge> ReshardMoves::exchange(const ReshardState &state, const ReshardState &target,
                                                  MoveCost atMost) {
  if (!given.messages || state.unreduced != target.unreduced || !hasRoom(state.dims, target.dims))
    return std::nullopt;
  auto [total, most] = deviceTraffic.lacking(state.dims, target.dims);
  if (!total && isEven)
    return std::nullopt; // Slices are sufficient.
  std::int64_t mostRounds = given.messages / std::max<std::int64_t>(1, tensor().numDevices());
  auto price = [&, total = total, most = most](std::int64_t rounds) {
    return cost(total, messagesBetween(state.dims, target.dims, std::max<std::int64_t>(1, rounds), inBytes(most)));
  };
  std::int64_t fewest = deviceTraffic.mostSenders(state.dims, target.dims) - 1;
  if (fewest > mostRounds || price(fewest) >= atMost)
    return std::nullopt;
  std::int64_t rounds = deviceTraffic.exchangeRounds(state.dims, target.dims);
  if (rounds > mostRounds)
    return std::nullopt;
  return ReshardEdge{target, price(rounds), MoveKind::Exchange};
}

bool ReshardMoves::canBeOne(MoveKind kind, const ReshardState &before, const ReshardState &between,
                            const ReshardState &after) const {
  if (kind == MoveKind::Slice)
    return canBe(before.dims, after.dims, true);
  if (kind != MoveKind::Gather || !canBe(before.dims, after.dims))
    return false;
  MoveCost first = gatherCost(before.dims, between.dims), second = gatherCost(between.dims, after.dims);
  MoveCost both = gatherCost(before.dims, after.dims);
  return both.first <= (first.first + second.first) * (1 + rounding) &&
         both.second <= (first.second + second.second) * (1 + rounding);
}

} // namespace mlir_shard
