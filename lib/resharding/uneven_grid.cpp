// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/uneven_grid.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace mlir_shard {

namespace {

// The largest number of devices for which messages of uneven shards are counted individually.
constexpr std::int64_t mostCountedDevices = 4096;

// Iterates over the places along some axes of a grid, with the indices of shards as weighted sums of places.
class Places {
public:
  // `weights` contains for each index a weight for each axis.
  Places(const std::vector<std::int64_t> &sizes, const GridAxes &axes, const std::vector<std::vector<std::int64_t>> &weights)
      : indices(weights.size()), places(axes.size()), bounds(axes.size()), steps(axes.size()) {
    // When an axis advances to its next place, the axes after it restart from 0.
    std::vector<std::int64_t> last(weights.size());
    for (std::size_t axis = axes.size(); axis--;) {
      bounds[axis] = sizes[static_cast<std::uint8_t>(axes[axis])];
      total *= bounds[axis];
      for (std::size_t i = 0; i < weights.size(); ++i) {
        steps[axis].push_back(weights[i][axis] - last[i]);
        last[i] += weights[i][axis] * (bounds[axis] - 1);
      }
    }
  }

  std::int64_t size() const { return total; }
  std::int64_t index(std::size_t number) const { return indices[number]; }

  void next() {
    std::size_t axis = places.size();
    while (axis && ++places[axis - 1] == bounds[axis - 1])
      places[--axis] = 0;
    if (!axis)
      return;
    const std::int64_t *more = steps[axis - 1].data();
    for (std::size_t i = 0; i < indices.size(); ++i)
      indices[i] += more[i];
  }

private:
  std::vector<std::int64_t> indices, places, bounds;
  std::vector<std::vector<std::int64_t>> steps;
  std::int64_t total = 1;
};

// The distinct axes of dimensions, and the weights with which places along them add up to the index of a shard.
GridAxes distinctAxes(const std::vector<const GridAxes *> &ofIndices) {
  GridAxes found;
  for (const GridAxes *axes : ofIndices)
    for (char axis : *axes)
      if (!hasAxis(found, axis))
        found += axis;
  return found;
}

std::vector<std::int64_t> weightsOf(const GridAxes &axes, const GridAxes &along, const std::vector<std::int64_t> &sizes) {
  std::vector<std::int64_t> weights(along.size(), 0);
  std::int64_t weight = 1;
  for (std::size_t number = axes.size(); number--;) {
    std::size_t place = along.find(axes[number]);
    if (place != GridAxes::npos)
      weights[place] = weight;
    weight *= sizes[axisNumber(axes[number])];
  }
  return weights;
}

} // namespace

UnevenGrid::UnevenGrid(GridTensor tensor, std::shared_ptr<std::int64_t> counted)
    : tensor(std::move(tensor)), counted(std::move(counted)) {}

std::pair<Elements, Elements> UnevenGrid::lacking(const GridDims &before, const GridDims &after) {
  // The mean overlap of devices with their boxes is a product of fractions; the total over all devices is an exact
  // number.
  ParetoFront best(1, 1);
  Elements held = 1;
  std::int64_t places = 1;
  for (const Part &part : independent(before, after)) {
    const Overlap &overlap = overlapIn(part);
    held *= overlap.common;
    places *= overlap.devices;
    best = best * overlap.boxes;
  }
  return {tensor.heldByAll(after) - held * (tensor.numDevices() / places), best.mostDifference()};
}

std::int64_t UnevenGrid::exchangeRounds(const GridDims &before, const GridDims &after) {
  if (tensor.numDevices() > mostCountedDevices)
    return roundsAtMost(before, after);
  ParetoFront sent(replicas(before, after), 1), received(1, 1);
  for (const Part &part : independent(before, after)) {
    const Messages &found = messagesIn(part);
    sent = sent * found.sent;
    received = received * found.received;
  }
  return static_cast<std::int64_t>(std::max(sent.mostDifference(), received.mostDifference()));
}

std::int64_t UnevenGrid::mostSenders(const GridDims &before, const GridDims &after) const {
  std::int64_t senders = 1;
  for (std::size_t dim = 0; dim < before.size(); ++dim)
    if (before[dim] != after[dim])
      senders *= sourcesIn(dim, tensor.count(before[dim]), tensor.count(after[dim]));
  return senders;
}

std::int64_t UnevenGrid::sourcesIn(std::size_t dim, std::int64_t oldCount, std::int64_t newCount) const {
  const std::int64_t size = tensor.shape()[dim];
  // Full shards nest as a rule.
  if (size && size % std::max(oldCount, newCount) == 0) {
    if (newCount % oldCount == 0)
      return 1;
    if (oldCount % newCount == 0)
      return oldCount / newCount;
  }
  auto [known, isNew] = sources.try_emplace({dim, oldCount, newCount});
  if (isNew)
    known->second = mostSources(size, oldCount, newCount);
  return known->second;
}

std::int64_t UnevenGrid::roundsAtMost(const GridDims &before, const GridDims &after) const {
  GridAxes used;
  for (const GridAxes &axes : before)
    used += axes;
  std::int64_t askers = replicas(before, after);
  for (std::size_t dim = 0; dim < before.size(); ++dim) {
    GridAxes asked;
    for (char axis : after[dim])
      if (hasAxis(used, axis))
        asked += axis;
    askers *= std::min(tensor.count(asked), sourcesIn(dim, tensor.count(after[dim]), tensor.count(before[dim])));
  }
  return std::max(askers, mostSenders(before, after));
}

std::int64_t UnevenGrid::replicas(const GridDims &before, const GridDims &after) const {
  GridAxes wanted, only;
  for (const GridAxes &axes : after)
    wanted += axes;
  for (const GridAxes &axes : before)
    for (char axis : axes)
      if (!hasAxis(wanted, axis))
        only += axis;
  return tensor.count(only);
}

std::vector<UnevenGrid::Part> UnevenGrid::independent(const GridDims &before, const GridDims &after) const {
  std::vector<std::pair<GridAxes, Part>> parts;
  for (std::size_t dim = 0; dim < before.size(); ++dim) {
    GridAxes axes = before[dim] + after[dim];
    Part together;
    std::vector<std::pair<GridAxes, Part>> apart;
    for (auto &part : parts) {
      if (std::any_of(part.first.begin(), part.first.end(), [&](char axis) { return hasAxis(axes, axis); })) {
        axes += part.first;
        together.insert(together.end(), part.second.begin(), part.second.end());
      } else {
        apart.push_back(std::move(part));
      }
    }
    together.push_back({dim, before[dim], after[dim]});
    std::sort(together.begin(), together.end(), [](const DimChange &one, const DimChange &other) { return one.dim < other.dim; });
    apart.emplace_back(std::move(axes), std::move(together));
    parts = std::move(apart);
  }
  std::vector<Part> found;
  for (auto &part : parts)
    found.push_back(std::move(part.second));
  return found;
}

const UnevenGrid::Overlap &UnevenGrid::overlapIn(const Part &part) {
  std::string key = keyOf(part);
  auto known = overlaps.find(key);
  if (known != overlaps.end())
    return known->second;
  std::vector<const GridAxes *> ofIndices;
  for (const DimChange &change : part) {
    ofIndices.push_back(&change.before);
    ofIndices.push_back(&change.after);
  }
  // The major axes come first, because they determine the positions of shards.
  GridAxes along = distinctAxes(ofIndices);
  auto place = [&](char axis) {
    std::size_t least = GridAxes::npos;
    for (const GridAxes *axes : ofIndices)
      least = std::min(least, axes->find(axis));
    return least;
  };
  std::stable_sort(along.begin(), along.end(), [&](char one, char other) { return place(one) < place(other); });
  std::vector<std::vector<std::int64_t>> weights;
  for (const GridAxes *axes : ofIndices)
    weights.push_back(weightsOf(*axes, along, tensor.sizes()));
  // The number of elements of a part is the product of its dimensions, which mostly fits into 64 bits; 128-bit
  // arithmetic takes several times as long.
  Elements most = 1;
  for (const DimChange &change : part)
    most *= std::max<std::int64_t>(tensor.shape()[change.dim], 1);
  bool isSmall = most <= std::numeric_limits<std::int64_t>::max();
  Overlap found = isSmall ? overlapOf<std::int64_t>(part, along, weights) : overlapOf<Elements>(part, along, weights);
  return overlaps.emplace(std::move(key), std::move(found)).first->second;
}

// Returns the common elements and the boxes of devices, computed with a type that can represent the elements of the
// part.
template <typename Number>
UnevenGrid::Overlap UnevenGrid::overlapOf(const Part &part, const GridAxes &along,
                                          const std::vector<std::vector<std::int64_t>> &weights) const {
  // The spans of the shards before and after, alternating for each dimension.
  std::vector<std::vector<ShardSpan>> spans;
  for (const DimChange &change : part) {
    spans.push_back(shardSpans(tensor.shape()[change.dim], tensor.count(change.before)));
    spans.push_back(shardSpans(tensor.shape()[change.dim], tensor.count(change.after)));
  }
  // The places are the leaves of a tree with a level for each axis. Of a subtree whose shards have no common elements
  // only the largest box matters, which is the first. Each level stores the indices of the first shards of the visited
  // subtree, their growth per place along its axis, and their largest growth in the subtree.
  std::size_t numAxes = along.size(), numIndices = spans.size();
  std::vector<std::int64_t> indices((numAxes + 1) * numIndices), steps(numAxes * numIndices), growth(indices);
  for (std::size_t axis = numAxes; axis--;)
    for (std::size_t i = 0; i < numIndices; ++i) {
      std::size_t at = axis * numIndices + i;
      steps[at] = weights[i][axis];
      growth[at] = growth[at + numIndices] + weights[i][axis] * (tensor.sizeOf(along[axis]) - 1);
    }
  Overlap found{0, tensor.count(along), {}};
  Number lastCommon = 0, lastBox = -1, boxOfNone = -1;
  std::int64_t numVisited = 0;
  auto visit = [&](auto &&visitBelow, std::size_t level) -> void {
    ++numVisited;
    const std::int64_t *first = &indices[level * numIndices], *more = &growth[level * numIndices];
    Number common = 1, box = 1;
    for (std::size_t i = 0; i < numIndices; i += 2) {
      const ShardSpan *olds = spans[i].data() + first[i], *nows = spans[i + 1].data() + first[i + 1];
      common *= std::max<std::int64_t>(std::min(olds[more[i]].end, nows[more[i + 1]].end) - std::max(olds->begin, nows->begin), 0);
      box *= nows->end - nows->begin;
    }
    if (!common) {
      boxOfNone = std::max(boxOfNone, box);
    } else if (level < numAxes) {
      std::int64_t *below = &indices[(level + 1) * numIndices];
      const std::int64_t *step = &steps[level * numIndices];
      std::copy(first, first + numIndices, below);
      for (std::int64_t place = tensor.sizeOf(along[level]); place--;) {
        visitBelow(visitBelow, level + 1);
        for (std::size_t i = 0; i < numIndices; ++i)
          below[i] += step[i];
      }
    } else {
      found.common += common;
      // Most places equal the one before.
      if (box == lastBox && common >= lastCommon)
        return;
      lastBox = box;
      lastCommon = common;
      found.boxes.add(box, common);
    }
  };
  visit(visit, 0);
  *counted += numVisited;
  if (boxOfNone >= 0)
    found.boxes.add(boxOfNone, 0);
  return found;
}

const UnevenGrid::Messages &UnevenGrid::messagesIn(const Part &part) {
  std::string key = keyOf(part);
  auto known = messages.find(key);
  if (known != messages.end())
    return known->second;
  GridAxes used;
  bool isSame = true;
  for (const DimChange &change : part) {
    used += change.before;
    isSame = isSame && change.before == change.after;
  }
  if (isSame)
    return messages.emplace(std::move(key), Messages{ParetoFront(1, 1), ParetoFront(1, 1)}).first->second;
  // The devices that receive from a device have the same place as it along all axes that are unused before. Each
  // dimension has its own axes, before and after, so the numbers of receivers and of senders are products over the
  // dimensions, and so are their maxima.
  std::vector<AskersOfShards> ofDims;
  std::vector<const GridAxes *> ofIndices;
  std::int64_t mostAskers = 1, mostSenders = 1;
  for (const DimChange &change : part) {
    ofDims.push_back(askersOf(change, used));
    mostAskers *= ofDims.back().most;
    mostSenders *= sourcesIn(change.dim, tensor.count(change.before), tensor.count(change.after));
  }
  for (std::size_t i = 0; i < part.size(); ++i) {
    ofIndices.push_back(&part[i].before);
    ofIndices.push_back(&part[i].after);
    ofIndices.push_back(&ofDims[i].own);
  }
  GridAxes along = distinctAxes(ofIndices);
  std::vector<std::vector<std::int64_t>> weights;
  for (const GridAxes *axes : ofIndices)
    weights.push_back(weightsOf(*axes, along, tensor.sizes()));
  Places places(tensor.sizes(), along, weights);
  // A device sends nothing to itself, so the maximum depends on whether all devices with the most messages overlap with
  // their own boxes.
  bool areAskedByOwn = true, areSentOwn = true;
  for (std::int64_t place = 0; place < places.size(); ++place, places.next()) {
    ++*counted;
    std::int64_t askers = 1, senders = 1;
    bool isOwn = true;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const AskersOfShards &ofDim = ofDims[i];
      std::int64_t oldIndex = places.index(3 * i), newIndex = places.index(3 * i + 1);
      const ShardSpan &old = ofDim.olds[oldIndex], &now = ofDim.nows[newIndex];
      askers *= ofDim.askers[oldIndex * ofDim.numOwn + places.index(3 * i + 2)];
      senders *= ofDim.senders[newIndex];
      isOwn = isOwn && std::max(old.begin, now.begin) < std::min(old.end, now.end);
    }
    if (isOwn)
      continue;
    areAskedByOwn = areAskedByOwn && askers != mostAskers;
    areSentOwn = areSentOwn && senders != mostSenders;
    if (!areAskedByOwn && !areSentOwn)
      break;
  }
  Messages found{ParetoFront(mostAskers, areAskedByOwn), ParetoFront(mostSenders, areSentOwn)};
  return messages.emplace(std::move(key), std::move(found)).first->second;
}

UnevenGrid::AskersOfShards UnevenGrid::askersOf(const DimChange &change, const GridAxes &used) const {
  AskersOfShards found;
  std::int64_t size = tensor.shape()[change.dim];
  found.olds = shardSpans(size, tensor.count(change.before));
  found.nows = shardSpans(size, tensor.count(change.after));
  // The shards of the placement after on the devices whose places along the axes unused before are all 0, and the
  // offsets that these places add to the numbers of shards.
  std::vector<std::int64_t> shards{0}, offsets{0};
  std::int64_t weight = 1;
  for (std::size_t number = change.after.size(); number--;) {
    char axis = change.after[number];
    std::int64_t ofAxis = tensor.sizeOf(axis);
    std::vector<std::int64_t> &grown = hasAxis(used, axis) ? shards : offsets, more;
    for (std::int64_t place = 0; place < ofAxis; ++place)
      for (std::int64_t one : grown)
        more.push_back(one + place * weight);
    grown = std::move(more);
    if (!hasAxis(used, axis))
      found.own.insert(found.own.begin(), axis);
    weight *= ofAxis;
  }
  found.numOwn = static_cast<std::int64_t>(offsets.size());
  std::int64_t newStep = shardSize(size, tensor.count(change.after)), oldStep = found.olds.front().end;
  for (const ShardSpan &old : found.olds)
    for (std::int64_t offset : offsets) {
      std::int64_t askers = 0;
      if (old.begin < old.end)
        askers = std::lower_bound(shards.begin(), shards.end(), ceilDivided(old.end, newStep) - offset) -
                 std::lower_bound(shards.begin(), shards.end(), old.begin / newStep - offset);
      found.askers.push_back(askers);
      found.most = std::max(found.most, askers);
    }
  for (const ShardSpan &now : found.nows)
    found.senders.push_back(oldStep && now.begin < now.end ? (now.end - 1) / oldStep - now.begin / oldStep + 1 : 0);
  return found;
}

std::string UnevenGrid::keyOf(const Part &part) {
  std::string key;
  for (const DimChange &change : part) {
    key += static_cast<char>(change.dim);
    key += change.before + '\xff' + change.after + '\xff';
  }
  return key;
}

} // namespace mlir_shard
