// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "resharding/assignment_search.h"
#include "resharding/exchange_rounds.h"
#include "resharding/reshard_search.h"

#include <pybind11/stl.h>

#include <utility>

namespace py = pybind11;

namespace mlir_shard {

namespace {

using AxisNumbers = std::vector<int>;
using DimNumbers = std::vector<AxisNumbers>;

GridAxes axesOf(const AxisNumbers &numbers) {
  GridAxes axes;
  for (int number : numbers)
    axes += static_cast<char>(number);
  return axes;
}

GridDims dimsOf(const DimNumbers &numbers) {
  GridDims dims;
  for (const AxisNumbers &axes : numbers)
    dims.push_back(axesOf(axes));
  return dims;
}

ReshardState stateOf(const std::pair<DimNumbers, AxisNumbers> &state) { return {dimsOf(state.first), axesOf(state.second)}; }

py::tuple numbersOf(const GridAxes &axes) {
  py::tuple numbers(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    numbers[i] = static_cast<int>(axisNumber(axes[i]));
  return numbers;
}

py::tuple numbersOf(const GridDims &dims) {
  py::tuple numbers(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i)
    numbers[i] = numbersOf(dims[i]);
  return numbers;
}

// Combines numbers of more than 64 bits from two integers.
py::object integerOf(Elements number) {
  if (number <= std::numeric_limits<std::int64_t>::max())
    return py::int_(static_cast<std::int64_t>(number));
  py::object high = py::int_(static_cast<std::int64_t>(number >> 64));
  return high.attr("__lshift__")(64).attr("__or__")(py::int_(static_cast<std::uint64_t>(number)));
}

Elements elementsOf(const py::int_ &number) {
  auto high = number.attr("__rshift__")(64).cast<std::int64_t>();
  return (static_cast<Elements>(high) << 64) | number.attr("__and__")(~std::uint64_t{0}).cast<std::uint64_t>();
}

using AxesValues = std::pair<AxisNumbers, std::int64_t>;
using DimValues = std::tuple<std::int64_t, std::vector<std::int32_t>, AxesValues>;
using TensorValues = std::tuple<std::int64_t, std::vector<DimValues>, bool, bool, std::shared_ptr<ReshardSearch>>;

ShardingAxes shardingAxesOf(const AxesValues &values) { return {axesOf(values.first), values.second}; }

std::vector<AssignedTensor> tensorsOf(const std::vector<TensorValues> &values) {
  std::vector<AssignedTensor> tensors;
  for (const auto &[elementSize, dims, isResult, isBounded, search] : values) {
    tensors.push_back({elementSize, {}, isResult, isBounded, search});
    for (const auto &[size, factors, given] : dims)
      tensors.back().dims.push_back({size, factors, shardingAxesOf(given)});
  }
  return tensors;
}

std::vector<std::vector<ShardingAxes>> candidatesOf(const std::vector<std::vector<AxesValues>> &values) {
  std::vector<std::vector<ShardingAxes>> candidates;
  for (const auto &ofFactor : values) {
    auto &found = candidates.emplace_back();
    for (const AxesValues &axes : ofFactor)
      found.push_back(shardingAxesOf(axes));
  }
  return candidates;
}

AssignmentSearch::AskDim dimAsker(py::function ask) {
  return [ask = std::move(ask)](std::int32_t tensor, std::int32_t dim, const AssignmentSearch::Assignment &candidates) {
    auto [isPossible, isEven, elements, kept] =
        ask(tensor, dim, candidates).cast<std::tuple<bool, bool, std::int64_t, std::int64_t>>();
    return AssignedDim{isPossible, isEven, elements, kept};
  };
}

py::tuple totalAndMost(std::pair<Elements, Elements> received) {
  return py::make_tuple(integerOf(received.first), integerOf(received.second));
}

} // namespace

void defineResharding(py::module_ &module) {
  py::class_<GridTraffic>(module, "GridTraffic", "What devices receive between placements of a tensor on a grid, in elements.")
      .def(py::init([](std::vector<std::int64_t> sizes, std::vector<std::int64_t> shape) {
             return GridTraffic(GridTensor(std::move(sizes), std::move(shape)));
           }),
           py::arg("sizes"), py::arg("shape"))
      .def_property_readonly("is_always_in_digits", &GridTraffic::isAlwaysInDigits)
      .def("lacking",
           [](GridTraffic &traffic, const DimNumbers &before, const DimNumbers &after) {
             return totalAndMost(traffic.lacking(dimsOf(before), dimsOf(after)));
           })
      .def("permuted",
           [](GridTraffic &traffic, const DimNumbers &before, const DimNumbers &after) {
             return totalAndMost(traffic.permuted(dimsOf(before), dimsOf(after)));
           })
      .def("exchange_rounds",
           [](GridTraffic &traffic, const DimNumbers &before, const DimNumbers &after) {
             return traffic.exchangeRounds(dimsOf(before), dimsOf(after));
           })
      .def("most_senders", [](GridTraffic &traffic, const DimNumbers &before, const DimNumbers &after) {
        return traffic.mostSenders(dimsOf(before), dimsOf(after));
      });

  py::class_<ReshardSearch, std::shared_ptr<ReshardSearch>>(module, "ReshardSearch", "The cheapest path between placements of a tensor on a grid.")
      .def(py::init([](std::vector<std::int64_t> sizes, std::vector<double> latency, std::vector<double> secondsPerByte,
                       std::vector<double> ringLatency, std::vector<std::int64_t> shape, std::int64_t elementSize,
                       bool countsBytes, const AxisNumbers &kept, std::optional<py::int_> memoryLimit,
                       std::size_t mostPermutations, std::int64_t mostMessages) {
             return ReshardSearch(GridTensor(std::move(sizes), std::move(shape)),
                                  {std::move(latency), std::move(secondsPerByte), std::move(ringLatency)}, elementSize,
                                  countsBytes, axesOf(kept), {memoryLimit ? elementsOf(*memoryLimit) : -1, mostPermutations, mostMessages});
           }),
           py::arg("sizes"), py::arg("latency"), py::arg("seconds_per_byte"), py::arg("ring_latency"), py::arg("shape"),
           py::arg("element_size"), py::arg("counts_bytes"), py::arg("kept"), py::arg("memory_limit"),
           py::arg("most_permutations"), py::arg("most_messages"))
      .def(
          "find",
          [](ReshardSearch &search, const std::pair<DimNumbers, AxisNumbers> &source,
             const std::pair<DimNumbers, AxisNumbers> &target, MoveCost atMost, std::size_t mostStates) -> py::tuple {
            ReshardPath path = search.find(stateOf(source), stateOf(target), atMost, mostStates);
            if (!path.steps)
              return py::make_tuple(py::none(), path.least);
            py::list steps;
            for (auto &[kind, state] : *path.steps)
              steps.append(py::make_tuple(static_cast<int>(kind), numbersOf(state.dims), numbersOf(state.unreduced)));
            return py::make_tuple(steps, path.least);
          },
          py::arg("source"), py::arg("target"), py::arg("at_most"), py::arg("most_states"),
          "The kind of the move to each state on the path, and its dimensions and unreduced axes, None where no path costs\n"
          "less than `at_most`; and what no path costs less than.")
      .def(
          "least",
          [](ReshardSearch &search, const std::pair<DimNumbers, AxisNumbers> &source,
             const std::pair<DimNumbers, AxisNumbers> &target) { return search.least(stateOf(source), stateOf(target)); },
          py::arg("source"), py::arg("target"), "What no path costs less than, without a search.")
      .def(
          "least_memory",
          [](ReshardSearch &search, const std::pair<DimNumbers, AxisNumbers> &source,
             const std::pair<DimNumbers, AxisNumbers> &target,
             std::size_t mostStates) {
            auto [limit, least] = search.leastMemory(stateOf(source), stateOf(target), mostStates);
            return py::make_tuple(limit ? integerOf(*limit) : py::none(), integerOf(least));
          },
          py::arg("source"), py::arg("target"), py::arg("most_states"),
          "The least bytes of a device for a path, None where none is found, and the bytes that every path needs.");

  py::class_<AssignmentSearch>(module, "AssignmentSearch", "The axes of each factor of an op, by a bound on their cost.")
      .def(py::init([](std::vector<std::int64_t> factorSizes, std::vector<std::int32_t> reductionFactors,
                       const std::vector<TensorValues> &tensors, std::vector<std::int32_t> order,
                       const std::vector<std::vector<AxesValues>> &candidates, std::int64_t devices, bool computes,
                       bool indexes, std::tuple<double, double, double> rates, double moveLatency,
                       std::pair<double, double> known, std::int32_t summands, const DimNumbers &searchAxes,
                       py::function askDim) {
             const auto [operationRate, memoryRate, networkRate] = rates;
             return AssignmentSearch({std::move(factorSizes), std::move(reductionFactors), tensorsOf(tensors),
                                      std::move(order), candidatesOf(candidates), devices, computes, indexes,
                                      operationRate, memoryRate, networkRate, moveLatency, known.first, known.second,
                                      summands, dimsOf(searchAxes)},
                                     dimAsker(std::move(askDim)));
           }),
           py::kw_only(), py::arg("factor_sizes"), py::arg("reduction_factors"), py::arg("tensors"), py::arg("order"),
           py::arg("candidates"), py::arg("devices"), py::arg("computes"), py::arg("indexes"), py::arg("rates"),
           py::arg("move_latency"), py::arg("known"), py::arg("summands"), py::arg("search_axes"), py::arg("ask_dim"))
      .def("below",
           [](AssignmentSearch &search, double seconds, std::int64_t mostNodes, std::size_t most) {
             auto [found, isWhole] = search.below(seconds, mostNodes, most);
             std::vector<std::tuple<double, double, AssignmentSearch::Assignment>> assignments;
             for (AssignmentSearch::Bounded &one : found)
               assignments.emplace_back(one.bound, one.least, std::move(one.assignment));
             return std::make_pair(std::move(assignments), isWhole);
           },
           py::arg("seconds"), py::arg("most_nodes"), py::arg("most"),
           "Up to `most` assignments whose cost is bounded by less than so many seconds, the least bound first: that bound,\n"
           "one by the moves of the tensors, and the number of the candidate of each factor. And whether no more than\n"
           "`most_nodes` nodes were needed.")
      .def("least_moves", &AssignmentSearch::leastMovesOf, py::arg("assignment"),
           "Of each tensor the seconds that its moves do not take less than, but for rounding.");

  module.def("exchange_rounds", &exchangeRounds, py::arg("messages"), py::arg("count"),
             "The round of each message, a sender and a receiver, such that a device sends one in a round at most, and receives\n"
             "one. `count` is the most messages that one device sends or receives.");
}

} // namespace mlir_shard
