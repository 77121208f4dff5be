// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Branch and bound (Land, Doig 1960) over the axes that the factors of one op may get. Axes are numbers here: what a
// dimension of a tensor is like along them is decided elsewhere, and asked once for each choice along its factors.
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

// Axes along which a factor or a dimension may be sharded, up to 64 of them, and the number of devices along them.
struct ShardingAxes {
  GridAxes axes;
  std::int64_t devices;
};

// An operand or a result. What it costs to reshard it is bounded by 0 unless `isBounded`.
struct AssignedTensor {
  struct Dim {
    std::int64_t size;
    std::vector<std::int32_t> factors;
    ShardingAxes given; // Before the operand is resharded, or after the result is.
  };
  std::int64_t elementSize;
  std::vector<Dim> dims;
  bool isResult, isBounded;
  std::shared_ptr<ReshardSearch> search; // Bounds what its moves cost, on the grid of `searchAxes`; may be none.
};

// A dimension with some axes along its factors: whether it can be sharded so, whether both its shards before and after
// resharding are full, and if so the elements of a shard after it and those that a device has in common with its shard
// before.
struct AssignedDim {
  bool isPossible, isEven;
  std::int64_t elements, kept;
};

struct AssignmentProblem {
  std::vector<std::int64_t> factorSizes;
  std::vector<std::int32_t> reductionFactors;
  std::vector<AssignedTensor> tensors;
  std::vector<std::int32_t> order;                      // In which factors get their axes.
  std::vector<std::vector<ShardingAxes>> candidates; // That each factor may get.
  std::int64_t devices;                                 // Along all axes of all candidates.
  bool computes, indexes;                               // No operations are counted for an op that indexes.
  double operationRate, memoryRate, networkRate;        // A second.
  double moveLatency;                                   // The seconds that anything resharded waits at least.
  double knownCompute, knownLatency;                    // Computing for longer than the first one waits for the second.
  std::int32_t summands;                                // The partial sums that share what reducing them costs.
  std::vector<GridAxes> searchAxes;                     // The axes that each axis is on the grid of the searches.
};

class AssignmentSearch {
public:
  // The number of the candidate of each factor.
  using Assignment = std::vector<std::int32_t>;
  // The dimension of a tensor whose several factors, in their order, have the candidates of these numbers.
  using AskDim = std::function<AssignedDim(std::int32_t tensor, std::int32_t dim, const Assignment &candidates)>;

  AssignmentSearch(AssignmentProblem problem, AskDim askDim);

  // An assignment whose cost is at least `bound`, by what the search knows of it, and at least `least`, by the moves of its
  // tensors.
  struct Bounded {
    double bound, least;
    Assignment assignment;
  };

  // The assignments whose cost is bounded by less than so many seconds, the least bound first, at most `most` of them;
  // and whether the search has come to its end before it has reached `mostNodes` nodes.
  std::pair<std::vector<Bounded>, bool> below(double seconds, std::int64_t mostNodes, std::size_t most);

  // Of each tensor the seconds that its moves do not take less than.
  std::vector<double> leastMovesOf(const Assignment &assignment);

private:
  // Seconds to receive all bytes, and those waited besides.
  struct Price {
    double moving = 0, latency = 0;
  };
  // By the numbers of the candidates of a dimension's factors.
  using KnownDims = std::unordered_map<std::u32string, AssignedDim>;

  void visit(std::size_t depth, Price resharded);
  Price bound(std::size_t tensor);
  double leastCompute(std::size_t depth);
  double leastMoves(std::size_t tensor);
  GridAxes searched(const GridAxes &axes) const;
  bool isReduced(std::size_t tensor) const;
  AssignedDim dim(std::size_t tensor, std::size_t dim);
  bool isPossible();

  AssignmentProblem problem;
  AskDim askDim;
  std::vector<std::vector<std::int32_t>> completed; // The tensors whose last factor gets its axes at each depth.
  std::vector<std::vector<KnownDims>> known;
  std::vector<std::vector<std::int32_t>> factorsOf; // On which it depends what each tensor costs.
  std::vector<std::unordered_map<std::u32string, double>> knownMoves;
  std::vector<std::vector<std::uint64_t>> masks; // A bit for each axis of a candidate.
  std::vector<std::int64_t> blocks;
  Assignment chosen;
  std::uint64_t used = 0;
  double limit = 0;
  std::int64_t nodesLeft = 0;
  std::vector<Bounded> found;
};

} // namespace mlir_shard
