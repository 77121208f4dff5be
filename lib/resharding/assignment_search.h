// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Branch and bound (Land, Doig 1960) over the axes that are assigned to the factors of one op. Axes are numbers; the
// properties of a dimension that is sharded along them are computed by a callback, once for each choice of its factors'
// axes.
#pragma once

#include "resharding/grid_placement.h"
#include "resharding/reshard_search.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// The axes along which a factor or a dimension may be sharded, at most 64, and the number of devices along them.
struct ShardingAxes {
  GridAxes axes;
  std::int64_t devices;
};

// An operand or a result. The bound of its resharding cost is 0 unless `isBounded` is set.
struct AssignedTensor {
  struct Dim {
    std::int64_t size;
    std::vector<std::int32_t> factors;
    ShardingAxes given; // The axes before the operand is resharded, or after the result is.
  };
  std::int64_t elementSize;
  std::vector<Dim> dims;
  bool isResult, isBounded;
  std::shared_ptr<ReshardSearch> search; // Bounds the cost of its moves, on the grid of `searchAxes`; may be null.
};

// The properties of a dimension with given axes along its factors: whether it can be sharded like this, whether its
// shards before and after resharding are all full, and if so the number of elements of a shard after resharding and the
// number of those that a device already has.
struct AssignedDim {
  bool isPossible, isEven;
  std::int64_t elements, kept;
};

struct AssignmentProblem {
  std::vector<std::int64_t> factorSizes;
  std::vector<std::int32_t> reductionFactors;
  std::vector<AssignedTensor> tensors;
  std::vector<std::int32_t> order;                      // The order in which factors get their axes.
  std::vector<std::vector<ShardingAxes>> candidates; // The candidates for each factor.
  std::int64_t devices;                                 // The number of devices along all axes of all candidates.
  bool computes, indexes;                               // An op that indexes reads and writes elements only.
  double operationRate, memoryRate, networkRate;        // Per second.
  double moveLatency;                                   // The least latency of any resharding in seconds.
  double knownCompute, knownLatency;                    // A device that computes for more than `knownCompute` waits for
                                                        // `knownLatency`.
  std::int32_t summands;                                // The number of partial sums that share the cost of their
                                                        // reduction.
  std::vector<GridAxes> searchAxes;                     // The axes of the searches' grid for each axis.
};

class AssignmentSearch {
public:
  // The number of the candidate of each factor.
  using Assignment = std::vector<std::int32_t>;
  // Returns the properties of a dimension of a tensor with several factors, given the numbers of their candidates in
  // order.
  using AskDim = std::function<AssignedDim(std::int32_t tensor, std::int32_t dim, const Assignment &candidates)>;

  AssignmentSearch(AssignmentProblem problem, AskDim askDim);

  // An assignment with a lower bound of its cost, `bound`, and a tighter one that includes the moves of its tensors,
  // `least`.
  struct Bounded {
    double bound, least;
    Assignment assignment;
  };

  // Returns at most `most` assignments whose cost bound is less than `seconds`, in ascending order of bounds, and
  // whether the search was complete before it reached `mostNodes` nodes.
  std::pair<std::vector<Bounded>, bool> below(double seconds, std::int64_t mostNodes, std::size_t most);

  // Returns a lower bound of the seconds that the moves of each tensor take.
  std::vector<double> leastMovesOf(const Assignment &assignment);

private:
  // The seconds to receive all bytes, and the additional latency.
  struct Price {
    double moving = 0, latency = 0;
  };
  // The properties of a dimension by the numbers of its factors' candidates.
  using KnownDims = std::unordered_map<std::u32string, AssignedDim>;

  void visit(std::size_t depth, Price resharded);
  Price bound(std::size_t tensor);
  double leastCompute(std::size_t depth);
  double leastMoves(std::size_t tensor);
  GridAxes searched(const GridAxes &axes) const;
  bool isReduced(std::size_t tensor) const;
  static AssignedDim alone(const AssignedTensor::Dim &dim, const ShardingAxes &taken, bool isResult);
  const AssignedDim &dim(std::size_t tensor, std::size_t dim);
  bool isPossible();

  AssignmentProblem problem;
  AskDim askDim;
  std::vector<std::vector<std::int32_t>> completed; // The tensors whose last factor gets its axes at each depth.
  std::vector<std::vector<KnownDims>> known;
  std::vector<std::vector<std::int32_t>> factorsOf; // The factors that the cost of each tensor depends on.
  std::vector<std::unordered_map<std::u32string, double>> knownMoves;
  std::vector<std::vector<std::uint64_t>> masks; // A bit for each axis of a candidate.
  std::vector<std::vector<std::vector<AssignedDim>>> ofCandidates; // The dimensions with one factor, by its candidate.
  std::vector<std::int64_t> blocks; // The number of shards of each factor.
  std::vector<std::int64_t> left;   // The devices that are left for the factors from each depth on.
  Assignment chosen;
  std::uint64_t used = 0;
  double limit = 0;
  std::int64_t nodesLeft = 0;
  // The bounds of the assignments that a search finds, with their numbers, and the assignments one after the other.
  std::vector<std::pair<double, std::size_t>> bounds;
  Assignment found;
};

} // namespace mlir_shard
