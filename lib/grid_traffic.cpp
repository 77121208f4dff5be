// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "grid_traffic.h"

#include <algorithm>
#include <array>
#include <limits>

namespace mlir_shard {

namespace {

// The devices up to which messages are counted for each of them where shards are uneven.
constexpr std::int64_t mostCountedDevices = 4096;

// Goes over the places along some axes of a grid, with the indices of shards as sums of places times weights.
class Places {
public:
  // Each index has a weight for each axis.
  Places(const std::vector<std::int64_t> &sizes, const GridAxes &axes, const std::vector<std::vector<std::int64_t>> &weights)
      : indices(weights.size()), places(axes.size()), bounds(axes.size()), steps(axes.size()) {
    // Where an axis takes its next place, those after it begin again.
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

// Sizes go up to 2^63 - 1: adding to one of them may overflow.
std::int64_t ceilDivided(std::int64_t number, std::int64_t by) { return number / by + (number % by != 0); }

bool hasAxis(const GridAxes &axes, char axis) { return axes.find(axis) != GridAxes::npos; }

} // namespace

void appendKey(std::string &key, const GridDims &dims) {
  for (const GridAxes &axes : dims) {
    key += axes;
    key += '\xff';
  }
}

std::int64_t shardSize(std::int64_t size, std::int64_t count) { return ceilDivided(size, count); }

std::int64_t mostSources(std::int64_t size, std::int64_t oldCount, std::int64_t newCount) {
  if (!size)
    return 0;
  std::int64_t oldStep = shardSize(size, oldCount), newStep = shardSize(size, newCount), most = 0;
  for (std::int64_t left = size; left > 0; left -= std::min(left, newStep)) {
    std::int64_t begin = size - left, last = begin + std::min(left, newStep) - 1;
    most = std::max(most, last / oldStep - begin / oldStep + 1);
  }
  return most;
}

std::vector<std::int64_t> primeFactors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t factor = 2; factor * factor <= number; ++factor)
    for (; number % factor == 0; number /= factor)
      found.push_back(factor);
  if (number > 1)
    found.push_back(number);
  return found;
}

EvenGrid::EvenGrid(const std::vector<std::int64_t> &sizes) {
  std::int64_t only = 0;
  bool isOfOneSize = true;
  for (std::int64_t size : sizes) {
    devices *= size;
    if (size > 1) {
      isOfOneSize = isOfOneSize && (!only || only == size);
      only = size;
    }
  }
  for (std::int64_t size : sizes) {
    std::vector<std::int64_t> factors = primeFactors(size);
    if (only && isOfOneSize && size > 1)
      factors = {size};
    std::vector<std::uint8_t> ofAxis;
    for (std::int64_t radix : factors) {
      ofAxis.push_back(static_cast<std::uint8_t>(radices.size()));
      radices.push_back(radix);
    }
    digits.push_back(std::move(ofAxis));
  }
  for (std::int64_t radix : radices)
    isUniform = isUniform && radix == radices.front();
}

const EvenGrid::Change &EvenGrid::change(const GridAxes &before, const GridAxes &after) {
  std::string key = before + '\xff' + after;
  auto known = changes.find(key);
  if (known != changes.end())
    return known->second;
  std::vector<std::uint8_t> old, now;
  for (char axis : before)
    for (std::uint8_t digit : digits[static_cast<std::uint8_t>(axis)])
      old.push_back(digit);
  for (char axis : after)
    for (std::uint8_t digit : digits[static_cast<std::uint8_t>(axis)])
      now.push_back(digit);
  Change found;
  std::size_t common = std::min(old.size(), now.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (old[i] != now[i])
      found.equal.emplace_back(old[i], now[i]);
    found.shared.push_back(now[i]);
    found.isAlike = found.isAlike && radices[old[i]] == radices[now[i]];
  }
  for (std::size_t i = common; i < old.size(); ++i)
    found.moreBefore *= radices[old[i]];
  for (std::size_t i = common; i < now.size(); ++i)
    found.moreAfter *= radices[now[i]];
  for (std::uint8_t digit : now)
    found.after *= radices[digit];
  return changes.emplace(std::move(key), std::move(found)).first->second;
}

std::pair<Elements, Elements> EvenGrid::lacking(const std::vector<const Change *> &of, Elements elements) {
  std::int64_t now = 1, finer = 1, meeting = 1;
  bool isSame = true;
  std::array<std::uint8_t, 256> next;
  std::array<std::uint8_t, 256> isVisited{};
  next.fill(0xff);
  for (const Change *change : of) {
    now *= change->after;
    finer *= change->moreBefore;
    for (auto [digit, other] : change->equal) {
      isSame = false;
      next[digit] = other;
      meeting *= radices[digit];
    }
  }
  Elements box = elements / now, common = box / finer;
  if (isSame)
    return {devices * (box - common), box - common};
  // Of how many devices one meets the equations: an equation that closes a cycle says nothing.
  for (std::size_t first = 0; first < radices.size(); ++first) {
    std::size_t digit = first;
    while (digit != 0xff && !isVisited[digit]) {
      isVisited[digit] = static_cast<std::uint8_t>(first + 1);
      digit = next[digit];
    }
    if (digit != 0xff && next[first] != 0xff && isVisited[digit] == first + 1)
      meeting /= radices[digit];
  }
  return {devices * box - devices * common / meeting, box};
}

std::int64_t EvenGrid::exchangeRounds(const GridDims &before, const std::vector<const Change *> &of) {
  std::array<bool, 256> isUsed{};
  for (const GridAxes &axes : before)
    for (char axis : axes)
      for (std::uint8_t digit : digits[static_cast<std::uint8_t>(axis)])
        isUsed[digit] = true;
  std::int64_t senders = 1, free = 1;
  bool differs = false, differsInUsed = false;
  for (const Change *change : of) {
    senders *= change->moreBefore;
    free *= change->moreBefore;
    for (std::uint8_t digit : change->shared)
      if (!isUsed[digit])
        free *= radices[digit];
    for (auto [digit, other] : change->equal) {
      differs = true;
      differsInUsed = differsInUsed || isUsed[other];
    }
  }
  return std::max(senders - !differs, free - !differsInUsed);
}

GridTraffic::GridTraffic(std::vector<std::int64_t> sizes, std::vector<std::int64_t> shape)
    : axisSizes(std::move(sizes)), tensorShape(std::move(shape)), even(axisSizes) {
  for (std::int64_t size : axisSizes)
    devices *= size;
  for (std::int64_t size : tensorShape) {
    elements *= size;
    isAlwaysEven = isAlwaysEven && size % devices == 0;
  }
}

std::int64_t GridTraffic::count(const GridAxes &axes) const {
  std::int64_t result = 1;
  for (char axis : axes)
    result *= axisSizes[static_cast<std::uint8_t>(axis)];
  return result;
}

Elements GridTraffic::heldByAll(const GridDims &dims) const {
  std::int64_t shards = 1;
  for (const GridAxes &axes : dims)
    shards *= count(axes);
  return elements * (devices / shards);
}

Elements GridTraffic::largestBox(const GridDims &dims) const {
  Elements result = 1;
  for (std::size_t dim = 0; dim < dims.size(); ++dim)
    result *= shardSize(tensorShape[dim], count(dims[dim]));
  return result;
}

bool GridTraffic::isEven(const GridDims &dims) const {
  for (std::size_t dim = 0; dim < dims.size(); ++dim)
    if (tensorShape[dim] % count(dims[dim]))
      return false;
  return true;
}

bool GridTraffic::inDigits(const GridDims &before, const GridDims &after, std::vector<const EvenGrid::Change *> &found) {
  if (!isAlwaysEven && !(isEven(before) && isEven(after)))
    return false;
  for (std::size_t dim = 0; dim < before.size(); ++dim) {
    const EvenGrid::Change &change = even.change(before[dim], after[dim]);
    if (!change.isAlike)
      return false;
    found.push_back(&change);
  }
  return true;
}

std::pair<Elements, Elements> GridTraffic::lacking(const GridDims &before, const GridDims &after) {
  if (before == after)
    return {0, 0};
  std::vector<const EvenGrid::Change *> changes;
  if (inDigits(before, after, changes))
    return even.lacking(changes, elements);
  // The mean of what devices have in common with their boxes is a product of fractions, which is exact in the end.
  Elements common = heldByAll(after);
  Front best{{1, 1}};
  Elements held = 1;
  std::int64_t places = 1;
  for (const Part &part : independent(before, after)) {
    const Overlap &overlap = overlapIn(part);
    held *= overlap.common;
    places *= overlap.devices;
    best = products(best, overlap.boxes);
  }
  return {common - held * (devices / places), mostDifference(best)};
}

std::pair<Elements, Elements> GridTraffic::permuted(const GridDims &before, const GridDims &after) {
  std::vector<std::int64_t> counts;
  std::string key;
  for (const GridAxes &axes : before) {
    counts.push_back(count(axes));
    key += std::to_string(counts.back()) + ',';
  }
  std::unique_ptr<GridTraffic> &shards = ofShards[key];
  if (!shards) {
    shards = std::make_unique<GridTraffic>(axisSizes, counts);
    shards->counted = counted;
  }
  auto [moved, most] = shards->lacking(before, after);
  Elements box = largestBox(before);
  return {moved * box, most * box};
}

std::int64_t GridTraffic::exchangeRounds(const GridDims &before, const GridDims &after) {
  if (!elements)
    return 0;
  std::vector<const EvenGrid::Change *> changes;
  if (inDigits(before, after, changes))
    return even.exchangeRounds(before, changes);
  if (devices > mostCountedDevices)
    return roundsAtMost(before, after);
  Front sent{{replicas(before, after), 1}}, received{{1, 1}};
  for (const Part &part : independent(before, after)) {
    const Messages &found = messagesIn(part);
    sent = products(sent, found.sent);
    received = products(received, found.received);
  }
  return static_cast<std::int64_t>(std::max(mostDifference(sent), mostDifference(received)));
}

std::int64_t GridTraffic::mostSenders(const GridDims &before, const GridDims &after) const {
  std::int64_t senders = 1;
  for (std::size_t dim = 0; dim < before.size(); ++dim)
    if (before[dim] != after[dim])
      senders *= sourcesIn(dim, count(before[dim]), count(after[dim]));
  return senders;
}

std::int64_t GridTraffic::sourcesIn(std::size_t dim, std::int64_t oldCount, std::int64_t newCount) const {
  auto [known, isNew] = sources.try_emplace({dim, oldCount, newCount});
  if (isNew)
    known->second = mostSources(tensorShape[dim], oldCount, newCount);
  return known->second;
}

std::int64_t GridTraffic::roundsAtMost(const GridDims &before, const GridDims &after) const {
  GridAxes used;
  for (const GridAxes &axes : before)
    used += axes;
  std::int64_t askers = replicas(before, after);
  for (std::size_t dim = 0; dim < before.size(); ++dim) {
    GridAxes asked;
    for (char axis : after[dim])
      if (hasAxis(used, axis))
        asked += axis;
    askers *= std::min(count(asked), sourcesIn(dim, count(after[dim]), count(before[dim])));
  }
  return std::max(askers, mostSenders(before, after));
}

std::int64_t GridTraffic::replicas(const GridDims &before, const GridDims &after) const {
  GridAxes wanted, only;
  for (const GridAxes &axes : after)
    wanted += axes;
  for (const GridAxes &axes : before)
    for (char axis : axes)
      if (!hasAxis(wanted, axis))
        only += axis;
  return count(only);
}

std::vector<GridTraffic::Part> GridTraffic::independent(const GridDims &before, const GridDims &after) const {
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

namespace {

// The axes of dimensions, each once, and the weights by which places along them make the index of a shard.
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
    weight *= sizes[static_cast<std::uint8_t>(axes[number])];
  }
  return weights;
}

using Span = GridTraffic::Span;

// The elements of each shard of a dimension.
std::vector<Span> shardSpans(std::int64_t size, std::int64_t count) {
  std::vector<Span> found(static_cast<std::size_t>(count));
  std::int64_t step = shardSize(size, count), begin = 0;
  for (Span &span : found) {
    span = {begin, begin + std::min(step, size - begin)};
    begin = span.end;
  }
  return found;
}

} // namespace

const GridTraffic::Overlap &GridTraffic::overlapIn(const Part &part) {
  std::string key = keyOf(part);
  auto known = overlaps.find(key);
  if (known != overlaps.end())
    return known->second;
  std::vector<const GridAxes *> ofIndices;
  for (const DimChange &change : part) {
    ofIndices.push_back(&change.before);
    ofIndices.push_back(&change.after);
  }
  // The major axes first: they decide where shards are.
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
    weights.push_back(weightsOf(*axes, along, axisSizes));
  // The elements of a part are those of its dimensions, which 64 bits mostly hold; 128 take several times as long.
  Elements most = 1;
  for (const DimChange &change : part)
    most *= std::max<std::int64_t>(tensorShape[change.dim], 1);
  bool isSmall = most <= std::numeric_limits<std::int64_t>::max();
  Overlap found = isSmall ? overlapOf<std::int64_t>(part, along, weights) : overlapOf<Elements>(part, along, weights);
  return overlaps.emplace(std::move(key), std::move(found)).first->second;
}

// The common elements and the boxes of devices, in numbers that hold the elements of the part.
template <typename Number>
GridTraffic::Overlap GridTraffic::overlapOf(const Part &part, const GridAxes &along,
                                            const std::vector<std::vector<std::int64_t>> &weights) const {
  // The spans of the shards before and after, in turn for each dimension.
  std::vector<std::vector<Span>> spans;
  for (const DimChange &change : part) {
    spans.push_back(shardSpans(tensorShape[change.dim], count(change.before)));
    spans.push_back(shardSpans(tensorShape[change.dim], count(change.after)));
  }
  // The places are the leaves of a tree that has a level for each axis. Of a subtree whose shards have nothing in common
  // only the largest box counts, which is the first. Each level has the indices of the first shards of the subtree that is
  // visited, how much they grow with the place along its axis, and how much at most in the subtree.
  std::size_t numAxes = along.size(), numIndices = spans.size();
  std::vector<std::int64_t> indices((numAxes + 1) * numIndices), steps(numAxes * numIndices), growth(indices);
  for (std::size_t axis = numAxes; axis--;)
    for (std::size_t i = 0; i < numIndices; ++i) {
      std::size_t at = axis * numIndices + i;
      steps[at] = weights[i][axis];
      growth[at] = growth[at + numIndices] + weights[i][axis] * (axisSizes[static_cast<std::uint8_t>(along[axis])] - 1);
    }
  Overlap found{0, count(along), {}};
  Number lastCommon = 0, lastBox = -1, boxOfNone = -1;
  std::int64_t numVisited = 0;
  auto visit = [&](auto &&visitBelow, std::size_t level) -> void {
    ++numVisited;
    const std::int64_t *first = &indices[level * numIndices], *more = &growth[level * numIndices];
    Number common = 1, box = 1;
    for (std::size_t i = 0; i < numIndices; i += 2) {
      const Span *olds = spans[i].data() + first[i], *nows = spans[i + 1].data() + first[i + 1];
      common *= std::max<std::int64_t>(std::min(olds[more[i]].end, nows[more[i + 1]].end) - std::max(olds->begin, nows->begin), 0);
      box *= nows->end - nows->begin;
    }
    if (!common) {
      boxOfNone = std::max(boxOfNone, box);
    } else if (level < numAxes) {
      std::int64_t *below = &indices[(level + 1) * numIndices];
      const std::int64_t *step = &steps[level * numIndices];
      std::copy(first, first + numIndices, below);
      for (std::int64_t place = axisSizes[static_cast<std::uint8_t>(along[level])]; place--;) {
        visitBelow(visitBelow, level + 1);
        for (std::size_t i = 0; i < numIndices; ++i)
          below[i] += step[i];
      }
    } else {
      found.common += common;
      // Most places are as good as the one before.
      if (box == lastBox && common >= lastCommon)
        return;
      lastBox = box;
      lastCommon = common;
      addToFront(found.boxes, box, common);
    }
  };
  visit(visit, 0);
  *counted += numVisited;
  if (boxOfNone >= 0)
    addToFront(found.boxes, boxOfNone, 0);
  return found;
}

const GridTraffic::Messages &GridTraffic::messagesIn(const Part &part) {
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
    return messages.emplace(std::move(key), Messages{{{1, 1}}, {{1, 1}}}).first->second;
  // Those who ask a device are where it is along all axes that are not used before. Each dimension has its own axes, before
  // as after, so that how many ask, and how many are asked, are products, and the most are products of the most.
  std::vector<AskersOfShards> ofDims;
  std::vector<const GridAxes *> ofIndices;
  std::int64_t mostAskers = 1, mostSenders = 1;
  for (const DimChange &change : part) {
    ofDims.push_back(askersOf(change, used));
    mostAskers *= ofDims.back().most;
    mostSenders *= sourcesIn(change.dim, count(change.before), count(change.after));
  }
  for (std::size_t i = 0; i < part.size(); ++i) {
    ofIndices.push_back(&part[i].before);
    ofIndices.push_back(&part[i].after);
    ofIndices.push_back(&ofDims[i].own);
  }
  GridAxes along = distinctAxes(ofIndices);
  std::vector<std::vector<std::int64_t>> weights;
  for (const GridAxes *axes : ofIndices)
    weights.push_back(weightsOf(*axes, along, axisSizes));
  Places places(axisSizes, along, weights);
  // A device sends nothing to itself: is there one with the most messages that has nothing in common with its box?
  Messages all{{{mostAskers, 1}}, {{mostSenders, 1}}};
  for (std::int64_t place = 0; place < places.size(); ++place, places.next()) {
    ++*counted;
    std::int64_t askers = 1, senders = 1;
    bool isOwn = true;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const AskersOfShards &ofDim = ofDims[i];
      std::int64_t oldIndex = places.index(3 * i), newIndex = places.index(3 * i + 1);
      const Span &old = ofDim.olds[oldIndex], &now = ofDim.nows[newIndex];
      askers *= ofDim.askers[oldIndex * ofDim.numOwn + places.index(3 * i + 2)];
      senders *= ofDim.senders[newIndex];
      isOwn = isOwn && std::max(old.begin, now.begin) < std::min(old.end, now.end);
    }
    if (isOwn)
      continue;
    if (askers == mostAskers)
      all.sent.front().second = 0;
    if (senders == mostSenders)
      all.received.front().second = 0;
    if (!all.sent.front().second && !all.received.front().second)
      break;
  }
  return messages.emplace(std::move(key), std::move(all)).first->second;
}

GridTraffic::AskersOfShards GridTraffic::askersOf(const DimChange &change, const GridAxes &used) const {
  AskersOfShards found;
  std::int64_t size = tensorShape[change.dim];
  found.olds = shardSpans(size, count(change.before));
  found.nows = shardSpans(size, count(change.after));
  // The shards after that are at a device whose places along the axes that are not used before are all 0, and how much
  // more the numbers of shards are by these places.
  std::vector<std::int64_t> shards{0}, offsets{0};
  std::int64_t weight = 1;
  for (std::size_t number = change.after.size(); number--;) {
    char axis = change.after[number];
    std::int64_t ofAxis = axisSizes[static_cast<std::uint8_t>(axis)];
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
  std::int64_t newStep = shardSize(size, count(change.after)), oldStep = found.olds.front().end;
  for (const Span &old : found.olds)
    for (std::int64_t offset : offsets) {
      std::int64_t askers = 0;
      if (old.begin < old.end)
        askers = std::lower_bound(shards.begin(), shards.end(), ceilDivided(old.end, newStep) - offset) -
                 std::lower_bound(shards.begin(), shards.end(), old.begin / newStep - offset);
      found.askers.push_back(askers);
      found.most = std::max(found.most, askers);
    }
  for (const Span &now : found.nows)
    found.senders.push_back(oldStep && now.begin < now.end ? (now.end - 1) / oldStep - now.begin / oldStep + 1 : 0);
  return found;
}

std::string GridTraffic::keyOf(const Part &part) {
  std::string key;
  for (const DimChange &change : part) {
    key += static_cast<char>(change.dim);
    key += change.before + '\xff' + change.after + '\xff';
  }
  return key;
}

void GridTraffic::addToFront(Front &front, Elements wanted, Elements spared) {
  for (const auto &[most, least] : front)
    if (most >= wanted && least <= spared)
      return;
  front.erase(std::remove_if(front.begin(), front.end(),
                             [&](const auto &one) { return one.first <= wanted && one.second >= spared; }),
              front.end());
  front.emplace_back(wanted, spared);
}

GridTraffic::Front GridTraffic::products(const Front &one, const Front &other) {
  Front found;
  for (const auto &[first, less] : one)
    for (const auto &[second, least] : other)
      addToFront(found, first * second, less * least);
  return found;
}

Elements GridTraffic::mostDifference(const Front &front) {
  Elements most = front.front().first - front.front().second;
  for (const auto &[first, second] : front)
    most = std::max(most, first - second);
  return most;
}

} // namespace mlir_shard
