// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "reshard_search.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>

namespace mlir_shard {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// A tensor with more placements than these has a large space, in which states have likely moves alone.
constexpr double mostPlacements = 2000;
// By how much equal sums of seconds may differ.
constexpr double rounding = 1e-9;
// How much dearer what remains is taken to be in a large space, whose search comes to no end.
constexpr double greed = 3.0;
// The moves that are tried in a large space: most where what is known may cost twice as much as is needed.
constexpr double leastMoves = 100, mostMoves = 400;
// The places of devices that a search counts uneven shards on, which keeps its time flat in their number.
constexpr std::int64_t mostPlaces = 130000;

std::uint8_t numberOf(char axis) { return static_cast<std::uint8_t>(axis); }

GridDims withDim(GridDims dims, std::size_t dim, GridAxes axes) {
  dims[dim] = std::move(axes);
  return dims;
}

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
  std::sort(axes.begin(), axes.end(), [](char one, char other) { return numberOf(one) < numberOf(other); });
  return axes;
}

// Calls `use` with the selections of `count` axes in lexicographic order of their places; as ordered ones or as sets.
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

// Calls `use` with the placements along some of `axes` with so many shards in each dimension, those first that begin as
// `preferred`, until it returns false. Returns whether it never did.
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
    std::int64_t size = sizes[numberOf(axis)];
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

// Calls `use` with what all-to-alls between pairs of the dimensions in `left` make, and the axes moved; first that of
// none. Each set of pairs is there once, as the smaller dimensions of the pairs ascend.
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

// Calls `use` with the dimensions after the axes were added in this order, the first few at the end of the first one,
// the next of the second, and so on.
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

// How many ways there are to give some axes, in some order, to the dimensions.
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

} // namespace

std::size_t ReshardStateHash::operator()(const ReshardState &state) const {
  std::string key;
  appendKey(key, state.dims);
  return std::hash<std::string>()(key + state.unreduced);
}

ReshardSearch::ReshardSearch(std::vector<std::int64_t> sizes, GridLinks links, std::vector<std::int64_t> shape,
                             std::int64_t elementSize, bool countsBytes, const GridAxes &kept, ReshardLimits limits)
    : traffic(std::move(sizes), std::move(shape)), links(std::move(links)), elementSize(elementSize), countsBytes(countsBytes),
      limits(limits), keptCount(traffic.count(kept)), isEven(true), hasOneLink(true), leastLatency(infinite),
      leastSecondsPerByte(infinite), onlyLatency(0), onlySecondsPerByte(0) {
  std::set<std::pair<std::int64_t, double>> found;
  std::optional<std::size_t> only;
  for (std::size_t axis = 0; axis < traffic.sizes().size(); ++axis) {
    if (traffic.sizes()[axis] <= 1)
      continue;
    leastLatency = std::min(leastLatency, this->links.latency[axis]);
    leastSecondsPerByte = std::min(leastSecondsPerByte, this->links.secondsPerByte[axis]);
    if (only && (this->links.latency[*only] != this->links.latency[axis] ||
                 this->links.secondsPerByte[*only] != this->links.secondsPerByte[axis]))
      hasOneLink = false;
    only = axis;
    if (kept.find(static_cast<char>(axis)) == GridAxes::npos) {
      axes += static_cast<char>(axis);
      found.emplace(traffic.sizes()[axis], this->links.ringLatency[axis]);
    }
  }
  hasOneLink = hasOneLink && only;
  if (only) {
    onlyLatency = this->links.latency[*only];
    onlySecondsPerByte = this->links.secondsPerByte[*only];
  } else {
    leastLatency = leastSecondsPerByte = 0;
  }
  rings.assign(found.begin(), found.end());
  axesCount = traffic.count(axes);
  for (std::int64_t size : traffic.shape())
    isEven = isEven && size % axesCount == 0;
  isLarge = numPlacements(axes.size(), traffic.shape().size()) > mostPlacements;
}

MoveCost ReshardSearch::cost(Elements total, double seconds) const {
  double bytes = static_cast<double>(total * elementSize);
  return countsBytes ? MoveCost{bytes, seconds} : MoveCost{seconds, bytes};
}

MoveCost ReshardSearch::costOfAll(Elements most, double seconds) const {
  return cost(most * traffic.numDevices(), seconds);
}

bool ReshardSearch::hasRoom(const GridDims &before, const GridDims &after) const {
  return limits.memory < 0 || localBytes(before) + localBytes(after) <= limits.memory;
}

// Whether each shard of the coarser of two placements is what the next few shards of the finer one make.
bool ReshardSearch::nests(std::size_t dim, const GridAxes &before, const GridAxes &after) const {
  std::int64_t size = traffic.shape()[dim], one = traffic.count(before), other = traffic.count(after);
  std::int64_t few = std::min(one, other), many = std::max(one, other);
  if (many % few)
    return false;
  std::int64_t coarse = shardSize(size, few), fine = shardSize(size, many);
  return few == 1 || coarse >= size || fine * (many / few) == coarse;
}

bool ReshardSearch::canBe(const GridDims &before, const GridDims &after, bool isSlice) const {
  if (!isEven)
    for (std::size_t dim = 0; dim < before.size(); ++dim)
      if (before[dim] != after[dim] && !nests(dim, before[dim], after[dim]))
        return false;
  return isSlice ? limits.memory < 0 || localBytes(before) <= limits.memory : hasRoom(before, after);
}

GridAxes ReshardSearch::freeAxes(const ReshardState &state) const {
  GridAxes used = state.unreduced;
  for (const GridAxes &ofDim : state.dims)
    used += ofDim;
  return without(axes, used);
}

GridAxes ReshardSearch::permutable(const ReshardState &state) const { return without(axes, state.unreduced); }

std::vector<std::int64_t> ReshardSearch::countsOf(const GridDims &dims) const {
  std::vector<std::int64_t> counts;
  for (const GridAxes &ofDim : dims)
    counts.push_back(traffic.count(ofDim));
  return counts;
}

double ReshardSearch::ringLatency(const GridAxes &along) const {
  double result = 0;
  for (char axis : along)
    result += links.ringLatency[numberOf(axis)];
  return result;
}

double ReshardSearch::latency(const GridAxes &along) const {
  double most = 0;
  for (char axis : along)
    if (traffic.sizes()[numberOf(axis)] > 1)
      most = std::max(most, links.latency[numberOf(axis)]);
  return most;
}

double ReshardSearch::secondsPerByte(const GridAxes &along) const {
  double most = 0;
  for (char axis : along)
    if (traffic.sizes()[numberOf(axis)] > 1)
      most = std::max(most, links.secondsPerByte[numberOf(axis)]);
  return most;
}

double ReshardSearch::messagesTime(const GridAxes &along, std::int64_t count, double bytes) const {
  return static_cast<double>(count) * latency(along) + bytes * secondsPerByte(along);
}

// Along the axes that a change of dimensions has to do with: all but those that both begin with.
double ReshardSearch::messagesBetween(const GridDims &before, const GridDims &after, std::int64_t count, double bytes) const {
  if (hasOneLink && before != after)
    return static_cast<double>(count) * onlyLatency + bytes * onlySecondsPerByte;
  GridAxes along;
  for (std::size_t dim = 0; dim < before.size(); ++dim) {
    std::size_t common = commonLength(before[dim], after[dim]);
    along += before[dim].substr(common) + after[dim].substr(common);
  }
  return messagesTime(along, count, bytes);
}

void ReshardSearch::addSlices(const ReshardState &state, Edges &edges) const {
  GridAxes free = freeAxes(state);
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim) {
    std::size_t longest = isLarge || isEven || traffic.shape()[dim] % axesCount == 0 ? 1 : free.size();
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

void ReshardSearch::addGathers(const ReshardState &state, Edges &edges) const {
  auto add = [&](GridDims after) {
    if (canBe(state.dims, after)) {
      MoveCost price = gatherCost(state.dims, after);
      edges.push_back({{std::move(after), state.unreduced}, price, MoveKind::Gather});
    }
  };
  if ((isEven && limits.memory < 0) || isLarge) {
    for (std::size_t dim = 0; dim < state.dims.size(); ++dim) {
      std::size_t length = state.dims[dim].size();
      for (std::size_t left = isEven && limits.memory < 0 && length ? length - 1 : 0; left < length; ++left)
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

MoveCost ReshardSearch::gatherCost(const GridDims &before, const GridDims &after) const {
  GridAxes gathered;
  for (std::size_t dim = 0; dim < before.size(); ++dim)
    gathered += before[dim].substr(after[dim].size());
  gathered = sortedAxes(std::move(gathered));
  Elements most = traffic.largestBox(before) * (traffic.count(gathered) - 1);
  return costOfAll(most, ring(gathered, inBytes(most)));
}

void ReshardSearch::addAllToAlls(const ReshardState &state, Edges &edges) const {
  std::vector<std::size_t> all;
  for (std::size_t dim = 0; dim < state.dims.size(); ++dim)
    all.push_back(dim);
  forMoved(state.dims, all, {}, [&](const GridDims &dims, const GridAxes &moved) {
    if (moved.empty() || !canBe(state.dims, dims))
      return;
    GridAxes along = sortedAxes(moved);
    std::int64_t count = traffic.count(along);
    Elements most = count - 1;
    for (std::size_t dim = 0; dim < dims.size(); ++dim)
      most *= shardSize(traffic.shape()[dim], std::max(traffic.count(state.dims[dim]), traffic.count(dims[dim])));
    edges.push_back(
        {{dims, state.unreduced}, costOfAll(most, messagesTime(along, count - 1, inBytes(most))), MoveKind::AllToAll});
  });
}

void ReshardSearch::addAllReduces(const ReshardState &state, Edges &edges) const {
  if (!hasRoom(state.dims, state.dims))
    return;
  for (std::size_t count = 1; count <= state.unreduced.size(); ++count)
    forSelections(state.unreduced, count, false, [&](const GridAxes &reduced) {
      Elements box = traffic.largestBox(state.dims);
      std::int64_t devices = traffic.count(reduced);
      // A device reduces a part, and gets the others.
      Elements most = (box + devices - 1) / devices * (devices - 2) + box;
      double seconds = ring(reduced, inBytes(most)) + ringLatency(reduced);
      edges.push_back({{state.dims, without(state.unreduced, reduced)}, costOfAll(most, seconds), MoveKind::AllReduce});
    });
}

void ReshardSearch::addReduceScatters(const ReshardState &state, Edges &edges) const {
  for (std::size_t count = 1; count <= state.unreduced.size(); ++count)
    forSelections(state.unreduced, count, true, [&](const GridAxes &order) {
      GridDims dims = state.dims;
      forDistributed(dims, 0, order, [&](const GridDims &after) {
        if (!canBe(state.dims, after))
          return;
        GridAxes along = sortedAxes(order);
        Elements most = traffic.largestBox(after) * (traffic.count(along) - 1);
        edges.push_back({{after, without(state.unreduced, order)},
                         costOfAll(most, ring(along, inBytes(most))),
                         MoveKind::ReduceScatter});
      });
    });
}

// Slices of several axes to those of a dimension of the target, and a gather of all that precedes these.
void ReshardSearch::addMovesTowards(const ReshardState &state, const ReshardState &target, Edges &edges) const {
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

bool ReshardSearch::addPermutations(const ReshardState &state, const ReshardState &target, Edges &edges) {
  std::vector<std::int64_t> counts = countsOf(state.dims);
  GridAxes along = permutable(state);
  GridDims dims(state.dims.size());
  if (!isLarge) {
    std::vector<GridDims> found;
    GridDims none(state.dims.size());
    bool areAll = forOrders(counts, along, traffic.sizes(), none, 0, dims, [&](const GridDims &order) {
      found.push_back(order);
      return found.size() <= limits.permutations;
    });
    if (areAll) {
      for (GridDims &order : found)
        addPermutation(state, std::move(order), edges);
      return true;
    }
    counts = countsOf(state.dims);
    dims.assign(state.dims.size(), {});
  }
  // Dimensions begin as the target's do, or stay as they are, as far as may be.
  std::set<GridDims> likely;
  GridDims preferred(state.dims.size());
  std::function<void(std::size_t)> prefer = [&](std::size_t dim) {
    if (dim == preferred.size()) {
      forOrders(counts, along, traffic.sizes(), preferred, 0, dims, [&](const GridDims &order) {
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

void ReshardSearch::addPermutation(const ReshardState &state, GridDims dims, Edges &edges) {
  if (dims == state.dims || !hasRoom(state.dims, dims))
    return;
  auto [total, most] = traffic.permuted(state.dims, dims);
  MoveCost price = cost(total, messagesBetween(state.dims, dims, 1, inBytes(most)));
  edges.push_back({{std::move(dims), state.unreduced}, price, MoveKind::Permute});
}

std::optional<ReshardSearch::Edge> ReshardSearch::exchange(const ReshardState &state, const ReshardState &target,
                                                           MoveCost atMost) {
  if (!limits.messages || state.unreduced != target.unreduced || !hasRoom(state.dims, target.dims))
    return std::nullopt;
  auto [total, most] = traffic.lacking(state.dims, target.dims);
  if (!total && isEven)
    return std::nullopt; // Slices do that.
  std::int64_t mostRounds = limits.messages / std::max<std::int64_t>(1, traffic.numDevices());
  auto price = [&, total = total, most = most](std::int64_t rounds) {
    return cost(total, messagesBetween(state.dims, target.dims, std::max<std::int64_t>(1, rounds), inBytes(most)));
  };
  std::int64_t fewest = traffic.mostSenders(state.dims, target.dims) - 1;
  if (fewest > mostRounds || price(fewest) >= atMost)
    return std::nullopt;
  std::int64_t rounds = traffic.exchangeRounds(state.dims, target.dims);
  if (rounds > mostRounds)
    return std::nullopt;
  return Edge{target, price(rounds), MoveKind::Exchange};
}

// Whether two slices, or two gathers, can be one that costs no more than both.
bool ReshardSearch::canBeOne(MoveKind kind, const ReshardState &before, const ReshardState &between,
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

ReshardSearch::Remaining &ReshardSearch::remainingTo(const ReshardState &target) {
  auto known = bounds.find(target);
  if (known != bounds.end())
    return known->second;
  Remaining bound{traffic.largestBox(target.dims), traffic.heldByAll(target.dims), {}};
  bound.known.emplace(target, MoveCost{0, 0});
  return bounds.emplace(target, std::move(bound)).first->second;
}

MoveCost ReshardSearch::remaining(Remaining &bound, const ReshardState &state, const ReshardState &target) {
  auto known = bound.known.find(state);
  if (known != bound.known.end())
    return known->second;
  Elements total;
  Elements most;
  double before = 0;
  if (state.unreduced.empty()) {
    std::tie(total, most) = traffic.lacking(state.dims, target.dims);
  } else {
    std::int64_t partials = traffic.count(state.unreduced);
    total = bound.reducedOnce + traffic.numElements() * keptCount * (partials - 2);
    most = bound.box;
    before = ringLatency(state.unreduced);
  }
  if (total)
    before = std::max(leastLatency, before + latencyToCombine(traffic.mostSenders(state.dims, target.dims)));
  MoveCost found = cost(total, before + inBytes(most) * leastSecondsPerByte);
  bound.known.emplace(state, found);
  return found;
}

// The least latency of moves after which a device has something of so many shards. A collective along an axis multiplies
// what a device has something of by the size of the axis at most; a direct exchange, which is last, adds one a round.
double ReshardSearch::latencyToCombine(std::int64_t sources) {
  if (sources <= 1)
    return 0;
  auto known = latencies.find(sources);
  if (known != latencies.end())
    return known->second;
  double result = limits.messages ? static_cast<double>(sources - 1) * leastLatency : infinite;
  for (auto [size, ofRing] : rings)
    result = std::min(result, ofRing + latencyToCombine((sources + size - 1) / size));
  latencies.emplace(sources, result);
  return result;
}

double ReshardSearch::least(const ReshardState &source, const ReshardState &target) {
  return remaining(remainingTo(target), source, target).first;
}

ReshardPath ReshardSearch::find(const ReshardState &source, const ReshardState &target, MoveCost atMost,
                                std::size_t mostStates) {
  struct Reached {
    MoveCost cost;
    const ReshardState *from = nullptr;
    MoveKind kind = MoveKind::Slice;
  };
  struct Open {
    MoveCost estimate;
    std::int64_t order;
    MoveCost cost;
    const ReshardState *state;
  };
  auto isLater = [](const Open &one, const Open &other) {
    return one.estimate != other.estimate ? one.estimate > other.estimate : one.order > other.order;
  };
  double weight = isLarge ? greed : 1.0;
  Remaining &bound = remainingTo(target);
  MoveCost best = atMost;
  std::unordered_map<ReshardState, Reached, ReshardStateHash> reached;
  std::unordered_set<ReshardState, ReshardStateHash> lookedAt;
  std::priority_queue<Open, std::vector<Open>, decltype(isLater)> open(isLater);
  std::int64_t order = 0;
  std::size_t followed = 0;
  bool hasAllMoves = true;

  auto reach = [&](const ReshardState &state, MoveCost price, const ReshardState *from, MoveKind kind) {
    auto known = reached.find(state);
    if (known != reached.end() && known->second.cost <= price)
      return;
    lookedAt.insert(state);
    MoveCost more = remaining(bound, state, target);
    if (MoveCost{price.first + more.first, price.second + more.second} >= best)
      return;
    if (state == target)
      best = price;
    auto entry = reached.insert_or_assign(state, Reached{price, from, kind}).first;
    // Of equals the last one first, which is nearer to the target.
    open.push({{price.first + weight * more.first, price.second + weight * more.second}, --order, price, &entry->first});
  };

  reach(source, {0, 0}, nullptr, MoveKind::Slice);
  double fewest = remaining(bound, source, target).first;
  double gap = fewest != 0 ? best.first / fewest - 1 : infinite;
  double enoughMoves = std::min(static_cast<double>(mostStates), std::max(leastMoves, mostMoves * std::min(1.0, gap)));
  std::int64_t enoughPlaces = traffic.placesCounted() + mostPlaces;
  double proved = infinite;
  Edges edges;
  while (!open.empty()) {
    Open next = open.top();
    open.pop();
    const Reached &at = reached.at(*next.state);
    if (next.cost != at.cost)
      continue;
    bool isEnough = isLarge && static_cast<double>(followed) > enoughMoves;
    if (*next.state == target || isEnough || lookedAt.size() > mostStates ||
        traffic.placesCounted() > enoughPlaces) {
      proved = next.estimate.first;
      break;
    }
    bool isPermuted = at.from && at.kind == MoveKind::Permute;
    const ReshardState &state = *next.state;
    edges.clear();
    addSlices(state, edges);
    addGathers(state, edges);
    addAllToAlls(state, edges);
    if (!state.unreduced.empty()) {
      addAllReduces(state, edges);
      addReduceScatters(state, edges);
    }
    if (isLarge)
      addMovesTowards(state, target, edges);
    if (!isPermuted)
      hasAllMoves = addPermutations(state, target, edges) && hasAllMoves;
    auto follow = [&](const Edge &edge) {
      ++followed;
      reach(edge.after, {next.cost.first + edge.cost.first, next.cost.second + edge.cost.second}, next.state, edge.kind);
    };
    for (const Edge &edge : edges)
      follow(edge);
    MoveCost left{best.first - next.cost.first, best.first == next.cost.first ? best.second - next.cost.second : infinite};
    if (std::optional<Edge> direct = exchange(state, target, left))
      follow(*direct);
  }
  proved = std::min(proved, best.first);
  if (weight > 1 || !hasAllMoves)
    proved = std::min(proved, fewest);

  ReshardPath path{std::nullopt, infinite};
  if (auto found = reached.find(target); found != reached.end()) {
    std::vector<std::pair<MoveKind, ReshardState>> steps;
    for (const ReshardState *state = &found->first; !(*state == source);) {
      const Reached &at = reached.at(*state);
      steps.emplace_back(at.kind, *state);
      state = at.from;
    }
    std::reverse(steps.begin(), steps.end());
    // Slices in a row that can be one are one, and gathers where that costs no more.
    path.steps.emplace();
    std::vector<ReshardState> befores;
    ReshardState before = source;
    for (auto &[kind, after] : steps) {
      if (!path.steps->empty() && path.steps->back().first == kind && canBeOne(kind, befores.back(), before, after)) {
        path.steps->back().second = after;
      } else {
        befores.push_back(before);
        path.steps->emplace_back(kind, after);
      }
      before = after;
    }
  }
  if (path.steps || proved < infinite)
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
  Elements start = std::max(localBytes(source.dims), localBytes(target.dims));
  std::int64_t order = 0;
  bool hasAllMoves = true;
  std::unordered_map<ReshardState, Elements, ReshardStateHash> reached;
  std::priority_queue<Open, std::vector<Open>, decltype(isLater)> open(isLater);
  open.push({start, order, &reached.emplace(source, start).first->first});
  Edges edges;
  while (!open.empty()) {
    Open next = open.top();
    open.pop();
    const ReshardState &state = *next.state;
    if (state == target)
      return {next.memory, hasAllMoves ? next.memory : start};
    if (next.memory > reached.at(state))
      continue;
    if (reached.size() > mostStates)
      return {limits.memory, hasAllMoves ? next.memory : start};
    edges.clear();
    addSlices(state, edges);
    addGathers(state, edges);
    addAllToAlls(state, edges);
    if (!state.unreduced.empty()) {
      addAllReduces(state, edges);
      addReduceScatters(state, edges);
    }
    if (isLarge)
      addMovesTowards(state, target, edges);
    hasAllMoves = addPermutations(state, target, edges) && hasAllMoves;
    if (std::optional<Edge> direct = exchange(state, target, {infinite, infinite}))
      edges.push_back(std::move(*direct));
    for (const Edge &edge : edges) {
      Elements held = next.memory;
      if (edge.kind != MoveKind::Slice)
        held = std::max(held, localBytes(state.dims) + localBytes(edge.after.dims));
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
