// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/assignment_search.h"

#include <algorithm>
#include <stdexcept>

namespace mlir_shard {

namespace {

constexpr Elements mostElements = ~(Elements{1} << 127);

// Returns the product of numbers that are not negative, or the largest number if the product overflows.
Elements saturatedProduct(Elements one, Elements other) {
  // 128-bit products and quotients take several times as long, and are computed at every node.
  if (!((one | other) >> 63))
    return static_cast<Elements>(static_cast<std::uint64_t>(one)) * static_cast<std::uint64_t>(other);
  Elements product;
  return __builtin_mul_overflow(one, other, &product) ? mostElements : product;
}

bool begins(const GridAxes &axes, const GridAxes &with) { return axes.compare(0, with.size(), with) == 0; }

Elements fullShard(std::int64_t size, Elements count) {
  if (count >= size)
    return size > 0;
  const auto shards = static_cast<std::uint64_t>(count);
  const std::uint64_t elements = static_cast<std::uint64_t>(size) + (shards - 1);
  // Numbers of devices are powers of two as a rule, and a division takes much longer than a shift.
  return shards & (shards - 1) ? elements / shards : elements >> __builtin_ctzll(shards);
}

} // namespace

AssignmentSearch::AssignmentSearch(AssignmentProblem of, AskDim ask)
    : problem(std::move(of)), askDim(std::move(ask)), completed(problem.order.size() + 1),
      known(problem.tensors.size()), knownMoves(problem.tensors.size()), blocks(problem.order.size()),
      left(problem.order.size() + 1, problem.devices), chosen(problem.order.size()) {
  std::vector<std::size_t> depths(problem.order.size());
  for (std::size_t depth = 0; depth < problem.order.size(); ++depth)
    depths[problem.order[depth]] = depth;
  for (std::size_t number = 0; number < problem.tensors.size(); ++number) {
    const AssignedTensor &tensor = problem.tensors[number];
    std::vector<std::int32_t> &factors = factorsOf.emplace_back();
    for (const AssignedTensor::Dim &dim : tensor.dims)
      factors.insert(factors.end(), dim.factors.begin(), dim.factors.end());
    if (tensor.isResult)
      factors.insert(factors.end(), problem.reductionFactors.begin(), problem.reductionFactors.end());
    std::size_t last = factors.empty() ? problem.order.size() : 0;
    for (std::int32_t factor : factors)
      last = std::max(last, depths[factor] + 1);
    completed[last].push_back(static_cast<std::int32_t>(number));
    known[number].resize(tensor.dims.size());
  }
  for (const std::vector<ShardingAxes> &ofFactor : problem.candidates) {
    std::vector<std::uint64_t> &found = masks.emplace_back();
    for (const ShardingAxes &candidate : ofFactor) {
      found.push_back(0);
      for (char axis : candidate.axes)
        found.back() |= std::uint64_t{1} << axis;
    }
  }
  for (const AssignedTensor &tensor : problem.tensors) {
    auto &ofTensor = ofCandidates.emplace_back(tensor.dims.size());
    for (std::size_t i = 0; i < tensor.dims.size(); ++i)
      if (tensor.dims[i].factors.size() == 1)
        for (const ShardingAxes &candidate : problem.candidates[tensor.dims[i].factors[0]])
          ofTensor[i].push_back(alone(tensor.dims[i], candidate, tensor.isResult));
  }
}

// Returns the properties of a dimension with one factor that has these axes.
AssignedDim AssignmentSearch::alone(const AssignedTensor::Dim &dim, const ShardingAxes &taken, bool isResult) {
  const auto [before, after] = isResult ? std::pair{&taken, &dim.given} : std::pair{&dim.given, &taken};
  if (dim.size % before->devices || dim.size % after->devices)
    return {true, false, 0, 0};
  const bool continues = begins(before->axes, after->axes) || begins(after->axes, before->axes);
  return {true, true, dim.size / after->devices, continues ? dim.size / std::max(before->devices, after->devices) : 0};
}

std::pair<std::vector<AssignmentSearch::Bounded>, bool>
AssignmentSearch::below(double seconds, std::int64_t mostNodes, std::size_t most) {
  limit = seconds;
  nodesLeft = mostNodes;
  bounds.clear();
  found.clear();
  visit(0, {});
  const std::size_t count = std::min(bounds.size(), most);
  std::partial_sort(bounds.begin(), bounds.begin() + static_cast<std::ptrdiff_t>(count), bounds.end());
  std::vector<Bounded> first;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [bound, number] = bounds[i];
    const auto begin = found.begin() + static_cast<std::ptrdiff_t>(number * chosen.size());
    chosen.assign(begin, begin + static_cast<std::ptrdiff_t>(chosen.size()));
    for (std::size_t factor = 0; factor < chosen.size(); ++factor)
      blocks[factor] = problem.candidates[factor][chosen[factor]].devices;
    double least = leastCompute(problem.order.size());
    // Starts with the results, because their reduction costs most.
    for (std::size_t tensor = problem.tensors.size(); tensor-- > 0 && least < limit;)
      least += leastMoves(tensor) * (1 - rounding);
    first.push_back({bound, std::max(bound, least), chosen});
  }
  return {std::move(first), nodesLeft > 0};
}

std::vector<double> AssignmentSearch::leastMovesOf(const Assignment &assignment) {
  for (std::size_t factor = 0; factor < chosen.size(); ++factor) {
    if (assignment.at(factor) < 0 || static_cast<std::size_t>(assignment[factor]) >= problem.candidates[factor].size())
      throw std::out_of_range("an assignment has the number of a candidate of each factor");
    chosen[factor] = assignment[factor];
  }
  std::vector<double> seconds;
  for (std::size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
    seconds.push_back(leastMoves(tensor));
  return seconds;
}

void AssignmentSearch::visit(std::size_t depth, Price resharded) {
  if (--nodesLeft <= 0)
    return;
  for (std::int32_t tensor : completed[depth]) {
    const Price more = bound(static_cast<std::size_t>(tensor));
    resharded.moving += more.moving;
    resharded.latency += more.latency;
  }
  if (!(resharded.moving + resharded.latency < limit))
    return;
  const double compute = leastCompute(depth);
  const double waited = compute > problem.knownCompute ? problem.knownLatency : 0.0;
  const double bound = resharded.moving + compute + std::max(resharded.latency, waited);
  if (!(bound < limit))
    return;
  if (depth == problem.order.size()) {
    if (isPossible()) {
      bounds.emplace_back(bound, bounds.size());
      found.insert(found.end(), chosen.begin(), chosen.end());
    }
    return;
  }
  const std::int32_t factor = problem.order[depth];
  const std::uint64_t before = used;
  for (std::size_t number = 0; number < masks[factor].size(); ++number) {
    if (before & masks[factor][number])
      continue;
    chosen[factor] = static_cast<std::int32_t>(number);
    blocks[factor] = problem.candidates[factor][number].devices;
    left[depth + 1] = left[depth] / blocks[factor];
    used = before | masks[factor][number];
    visit(depth + 1, resharded);
  }
  used = before;
}

// Returns a lower bound of the cost of resharding a tensor. The device that receives most keeps no part of its shard if
// the axes of a dimension do not continue each other, and receives its entire shard if the tensor is reduced.
AssignmentSearch::Price AssignmentSearch::bound(std::size_t number) {
  const AssignedTensor &tensor = problem.tensors[number];
  if (!tensor.isBounded)
    return {};
  const bool reduces = isReduced(number);
  Elements elements = 1, kept = reduces ? 0 : 1;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    const AssignedDim &taken = dim(number, i);
    if (!taken.isEven)
      return {};
    elements = saturatedProduct(elements, taken.elements);
    kept = saturatedProduct(kept, taken.kept);
  }
  const Elements bytes = saturatedProduct(elements - kept, tensor.elementSize);
  const double shared = reduces ? problem.summands : 1;
  return {static_cast<double>(bytes) / problem.networkRate / shared, bytes ? problem.moveLatency / shared : 0.0};
}

// Returns whether a tensor is a result that is partial before its moves.
bool AssignmentSearch::isReduced(std::size_t number) const {
  return problem.tensors[number].isResult &&
         std::any_of(problem.reductionFactors.begin(), problem.reductionFactors.end(),
                     [&](std::int32_t factor) { return masks[factor][chosen[factor]] != 0; });
}

// Returns a lower bound of the seconds that the moves of a tensor take when all factors have axes.
double AssignmentSearch::leastMoves(std::size_t number) {
  const AssignedTensor &tensor = problem.tensors[number];
  if (!tensor.search)
    return 0.0;
  std::u32string key;
  for (std::int32_t factor : factorsOf[number])
    key += static_cast<char32_t>(chosen[factor]);
  const auto [place, isNew] = knownMoves[number].emplace(std::move(key), 0.0);
  if (!isNew)
    return place->second;
  ReshardState given, taken;
  for (const AssignedTensor::Dim &dim : tensor.dims) {
    given.dims.push_back(searched(dim.given.axes));
    GridAxes &axes = taken.dims.emplace_back();
    for (std::int32_t factor : dim.factors)
      axes += searched(problem.candidates[factor][chosen[factor]].axes);
  }
  const bool reduces = isReduced(number);
  if (reduces)
    for (std::int32_t factor : problem.reductionFactors)
      taken.unreduced += searched(problem.candidates[factor][chosen[factor]].axes);
  std::sort(taken.unreduced.begin(), taken.unreduced.end());
  const double seconds = tensor.isResult ? tensor.search->least(taken, given) : tensor.search->least(given, taken);
  return place->second = seconds / (reduces ? problem.summands : 1);
}

GridAxes AssignmentSearch::searched(const GridAxes &axes) const {
  GridAxes found;
  for (char axis : axes)
    found += problem.searchAxes[axisNumber(axis)];
  return found;
}

// Returns the seconds that a device computes if the remaining factors get all remaining axes: a lower bound. The factors
// before `depth` have their blocks.
double AssignmentSearch::leastCompute(std::size_t depth) {
  if (!problem.computes)
    return 0.0;
  for (std::size_t i = depth; i < problem.order.size(); ++i)
    blocks[problem.order[i]] = left[depth];
  Elements operations = problem.indexes ? 0 : 1, bytes = 0;
  for (std::size_t factor = 0; factor < blocks.size(); ++factor)
    operations =
        saturatedProduct(operations, fullShard(std::max<std::int64_t>(problem.factorSizes[factor], 1), blocks[factor]));
  if (!problem.reductionFactors.empty())
    operations = saturatedProduct(operations, 2);
  const auto add = [&](Elements ofTensor) {
    if (__builtin_add_overflow(bytes, ofTensor, &bytes))
      bytes = mostElements;
  };
  // Of the first operand of an op that indexes. If it is not resharded, the op reads at most as much as it returns.
  Elements indexed = 0;
  bool isIndexed = false;
  for (const AssignedTensor &tensor : problem.tensors) {
    Elements ofTensor = tensor.elementSize;
    for (const AssignedTensor::Dim &dim : tensor.dims) {
      Elements count = 1;
      for (std::int32_t factor : dim.factors)
        count = saturatedProduct(count, blocks[factor]);
      ofTensor = saturatedProduct(ofTensor, fullShard(dim.size, count));
    }
    if (problem.indexes && &tensor == &problem.tensors.front()) {
      indexed = ofTensor;
      isIndexed = true;
      continue;
    }
    if (isIndexed && tensor.isResult) {
      add(std::min(indexed, ofTensor));
      isIndexed = false;
    }
    add(ofTensor);
  }
  return std::max(static_cast<double>(operations) / problem.operationRate, static_cast<double>(bytes) / problem.memoryRate);
}

const AssignedDim &AssignmentSearch::dim(std::size_t tensor, std::size_t number) {
  const std::vector<std::int32_t> &factors = problem.tensors[tensor].dims[number].factors;
  if (factors.size() == 1)
    return ofCandidates[tensor][number][chosen[factors[0]]];
  std::u32string key;
  for (std::int32_t factor : factors)
    key += static_cast<char32_t>(chosen[factor]);
  KnownDims &ofDim = known[tensor][number];
  const auto place = ofDim.find(key);
  if (place != ofDim.end())
    return place->second;
  const AssignedDim taken = askDim(static_cast<std::int32_t>(tensor), static_cast<std::int32_t>(number),
                                   Assignment(key.begin(), key.end()));
  return ofDim.emplace(std::move(key), taken).first->second;
}

// Returns whether all tensors can be sharded like this, which may fail for dimensions of several factors.
bool AssignmentSearch::isPossible() {
  for (std::size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
    for (std::size_t i = 0; i < problem.tensors[tensor].dims.size(); ++i)
      if (problem.tensors[tensor].dims[i].factors.size() > 1 && !dim(tensor, i).isPossible)
        return false;
  return true;
}

} // namespace mlir_shard
