// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/reshard_search.h"

#include <algorithm>
#include <queue>
#include <set>

namespace mlir_shard {

namespace {

// The weight of the remaining cost in a large space, in which the search would take too long otherwise.
constexpr double greed = 3.0;
// The limits of the number of moves tried in a large space: the most if the known cost may be twice the lower bound.
constexpr double leastMoves = 100, mostMoves = 400;
// The number of device places on which a search counts uneven shards, which limits its time on many devices.
constexpr std::int64_t mostPlaces = 130000;

} // namespace

ReshardSearch::ReshardSearch(GridTensor tensor, GridLinks links, std::int64_t elementSize, bool countsBytes,
                             const GridAxes &kept, ReshardLimits limits)
    : moves(std::move(tensor), links, elementSize, countsBytes, kept, limits), keptCount(moves.tensor().count(kept)),
      leastLatency(0), leastSecondsPerByte(0) {
  std::set<std::pair<std::int64_t, double>> found;
  bool isFirst = true;
  for (std::size_t axis = 0; axis < moves.tensor().sizes().size(); ++axis) {
    std::int64_t size = moves.tensor().sizes()[axis];
    if (size <= 1)
      continue;
    leastLatency = isFirst ? links.latency[axis] : std::min(leastLatency, links.latency[axis]);
    leastSecondsPerByte = isFirst ? links.secondsPerByte[axis] : std::min(leastSecondsPerByte, links.secondsPerByte[axis]);
    isFirst = false;
    if (!hasAxis(kept, static_cast<char>(axis)))
      found.emplace(size, links.ringLatency[axis]);
  }
  rings.assign(found.begin(), found.end());
}

// Returns a lower bound of the cost of all paths.
MoveCost ReshardSearch::leastBetween(const ReshardState &source, const ReshardState &target) {
  Elements total;
  Elements most;
  double before = 0;
  if (source.unreduced.empty()) {
    std::tie(total, most) = moves.traffic().lacking(source.dims, target.dims);
  } else {
    const GridTensor &tensor = moves.tensor();
    total = tensor.heldByAll(target.dims) + tensor.numElements() * keptCount * (tensor.count(source.unreduced) - 2);
    // The device that receives most receives at least the mean.
    most = std::max(tensor.largestBox(target.dims), (total + tensor.numDevices() - 1) / tensor.numDevices());
    before = moves.ringLatency(source.unreduced);
  }
  if (total)
    before = std::max(leastLatency, before + latencyToCombine(moves.traffic().mostSenders(source.dims, target.dims)));
  return moves.cost(total, before + moves.inBytes(most) * leastSecondsPerByte);
}

// Returns the least latency of moves after which a device has elements of `sources` shards. A collective along an axis
// multiplies the number of shards by at most the size of the axis; a direct exchange, which is the last move, adds one
// per round.
double ReshardSearch::latencyToCombine(std::int64_t sources) {
  if (sources <= 1)
    return 0;
  auto known = latencies.find(sources);
  if (known != latencies.end())
    return known->second;
  double result = moves.limits().messages ? static_cast<double>(sources - 1) * leastLatency : infiniteCost;
  for (auto [size, ofRing] : rings)
    result = std::min(result, ofRing + latencyToCombine((sources + size - 1) / size));
  latencies.emplace(sources, result);
  return result;
}

double ReshardSearch::least(const ReshardState &source, const ReshardState &target) {
  return leastBetween(source, target).first;
}

ReshardPath ReshardSearch::find(const ReshardState &source, const ReshardState &target, MoveCost atMost,
                                std::size_t mostStates) {
  struct Open {
    MoveCost estimate;
    std::int64_t order;
    MoveCost cost;
    const Visited *state;
  };
  auto isLater = [](const Open &one, const Open &other) {
    return one.estimate != other.estimate ? one.estimate > other.estimate : one.order > other.order;
  };
  double weight = moves.isLarge() ? greed : 1.0;
  Nodes &toTarget = paths[target];
  // The cost of the best path, and of one with the moves that are to be followed next.
  MoveCost best = atMost, soon = atMost;
  std::priority_queue<Open, std::vector<Open>, decltype(isLater)> open(isLater);
  std::int64_t order = 0;
  std::size_t followed = 0, numVisited = 0;
  bool hasAllMoves = true;
  const std::uint64_t search = ++searches;

  auto reach = [&](ReshardState &&after, MoveCost price, const Visited *from, MoveKind kind) {
    Visited &entry = *toTarget.try_emplace(std::move(after)).first;
    const ReshardState &state = entry.first;
    Node &node = entry.second;
    if (node.reachedBy == search && node.cost <= price)
      return;
    numVisited += node.visitedBy != search;
    node.visitedBy = search;
    // Many states are too far to need a bound.
    if (price >= best || price > soon)
      return;
    if (node.remaining.first < 0)
      node.remaining = leastBetween(state, target);
    if (MoveCost{price.first + node.remaining.first, price.second + node.remaining.second} >= best)
      return;
    if (state == target)
      best = price;
    node.reachedBy = search;
    node.cost = price;
    node.from = from;
    node.kind = kind;
    // Of equal states the last one comes first, because it is nearer to the target.
    open.push({{price.first + weight * node.remaining.first, price.second + weight * node.remaining.second},
               --order,
               price,
               &entry});
  };

  reach(ReshardState(source), {0, 0}, nullptr, MoveKind::Slice);
  double fewest = least(source, target);
  double gap = fewest != 0 ? best.first / fewest - 1 : infiniteCost;
  double enoughMoves = std::min(static_cast<double>(mostStates), std::max(leastMoves, mostMoves * std::min(1.0, gap)));
  std::int64_t enoughPlaces = moves.traffic().placesCounted() + mostPlaces;
  double proved = infiniteCost;
  ReshardEdges edges;
  while (!open.empty()) {
    Open next = open.top();
    open.pop();
    const auto &[state, at] = *next.state;
    if (next.cost != at.cost)
      continue;
    bool isEnough = moves.isLarge() && static_cast<double>(followed) > enoughMoves;
    if (state == target || isEnough || numVisited > mostStates ||
        moves.traffic().placesCounted() > enoughPlaces) {
      proved = next.estimate.first;
      break;
    }
    bool isPermuted = at.from && at.kind == MoveKind::Permute;
    edges.clear();
    hasAllMoves = moves.add(state, target, !isPermuted, edges) && hasAllMoves;
    auto priceOf = [&](const ReshardEdge &edge) {
      return MoveCost{next.cost.first + edge.cost.first, next.cost.second + edge.cost.second};
    };
    auto follow = [&](ReshardEdge &edge) {
      ++followed;
      reach(std::move(edge.after), priceOf(edge), next.state, edge.kind);
    };
    for (const ReshardEdge &edge : edges)
      if (edge.after == target)
        soon = std::min(soon, priceOf(edge));
    for (ReshardEdge &edge : edges)
      follow(edge);
    MoveCost left{best.first - next.cost.first, best.first == next.cost.first ? best.second - next.cost.second : infiniteCost};
    if (std::optional<ReshardEdge> direct = moves.exchange(state, target, left))
      follow(*direct);
  }
  proved = std::min(proved, best.first);
  if (weight > 1 || !hasAllMoves)
    proved = std::min(proved, fewest);

  ReshardPath path{std::nullopt, infiniteCost};
  if (auto found = toTarget.find(target); found != toTarget.end() && found->second.reachedBy == search) {
    std::vector<std::pair<MoveKind, ReshardState>> steps;
    for (const Visited *at = &*found; !(at->first == source); at = at->second.from)
      steps.emplace_back(at->second.kind, at->first);
    std::reverse(steps.begin(), steps.end());
    // Merges consecutive slices if possible, and consecutive gathers if the merged one costs no more.
    path.steps.emplace();
    std::vector<ReshardState> befores;
    ReshardState before = source;
    for (auto &[kind, after] : steps) {
      if (!path.steps->empty() && path.steps->back().first == kind && moves.canBeOne(kind, befores.back(), before, after)) {
        path.steps->back().second = after;
      } else {
        befores.push_back(before);
        path.steps->emplace_back(kind, after);
      }
      before = after;
    }
  }
  if (path.steps || proved < infiniteCost)
    path.least = std::max(fewest, proved);
  return path;
}

std::pair<std::optional<Elements>, Elements>
ReshardSearch::leastMemory(const ReshardState &source, const ReshardState &target, std::size_t mostStates) {
  struct Open {
    Elements memory;
    std::int64_t order;
    const ReshardState *state;
  };
  auto isLater = [](const Open &one, const Open &other) {
    return one.memory != other.memory ? one.memory > other.memory : one.order > other.order;
  };
  Elements start = std::max(moves.localBytes(source.dims), moves.localBytes(target.dims));
  std::int64_t order = 0;
  bool hasAllMoves = true;
  std::unordered_map<ReshardState, Elements, ReshardStateHash> reached;
  std::priority_queue<Open, std::vector<Open>, decltype(isLater)> open(isLater);
  open.push({start, order, &reached.emplace(source, start).first->first});
  ReshardEdges edges;
  while (!open.empty()) {
    Open next = open.top();
    open.pop();
    const ReshardState &state = *next.state;
    if (state == target)
      return {next.memory, hasAllMoves ? next.memory : start};
    if (next.memory > reached.at(state))
      continue;
    if (reached.size() > mostStates)
      return {moves.limits().memory, hasAllMoves ? next.memory : start};
    edges.clear();
    hasAllMoves = moves.add(state, target, true, edges) && hasAllMoves;
    if (std::optional<ReshardEdge> direct = moves.exchange(state, target, {infiniteCost, infiniteCost}))
      edges.push_back(std::move(*direct));
    for (const ReshardEdge &edge : edges) {
      Elements held = next.memory;
      if (edge.kind != MoveKind::Slice)
        held = std::max(held, moves.localBytes(state.dims) + moves.localBytes(edge.after.dims));
      auto known = reached.find(edge.after);
      if (known != reached.end() && held >= known->second)
        continue;
      auto entry = reached.insert_or_assign(edge.after, held).first;
      open.push({held, --order, &entry->first});
    }
  }
  return {std::nullopt, start};
}

} // namespace mlir_shard
