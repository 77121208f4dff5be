// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "arrays/array_bindings.h"
#include "bindings.h"
#include "propagation/fixpoint.h"
#include "propagation/nodes.h"

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace mlir_shard {
namespace {

void addOperations(Nodes &nodes, const Operations &ops,
                   const py::dict &moved,
                   const std::vector<std::optional<Nodes::Numbers>> &watched,
                   const std::function<std::int32_t(std::int32_t, bool)> &kindOf,
                   const std::function<std::vector<Nodes::Node>(std::int32_t)> &nodesOf) {
  std::vector<std::pair<std::int32_t, std::int32_t>> places;
  places.reserve(moved.size());
  for (const auto &[value, place] : moved)
    places.emplace_back(value.cast<std::int32_t>(), place.cast<std::int32_t>());
  nodes.addOperations(*ops.arrays, ops.numbers, places, {watched, kindOf, nodesOf});
}

void runFixpoint(Fixpoint &fixpoint, const py::buffer &states, const std::vector<std::int32_t> &behaviours,
                 const Fixpoint::Step &step,
                 const std::function<std::vector<std::tuple<std::int32_t, std::int32_t, bool, bool>>(
                     std::int32_t, std::int32_t)> &follow,
                 const Fixpoint::Observe &observe) {
  const auto [pointer, count] = integers(states, true);
  if (count != fixpoint.valueCount())
    throw std::invalid_argument("there has to be a state for each value");
  const auto following = [&](std::int32_t value, std::int32_t state) {
    std::vector<Fixpoint::Following> followings;
    for (const auto &[other, otherState, onlyIfUnknown, visits] : follow(value, state))
      followings.push_back({other, otherState, onlyIfUnknown, visits});
    return followings;
  };
  fixpoint.run(pointer, behaviours, step, following, observe);
}

} // namespace

void definePropagation(py::module_ &module) {
  py::class_<Nodes>(module, "Nodes", "Nodes of some kind, each with the values it uses and those it defines.")
      .def(py::init<>())
      .def("__len__", &Nodes::size)
      .def("__getitem__",
           [](const Nodes &nodes, std::size_t node) {
             if (node >= nodes.size())
               throw py::index_error("there are " + std::to_string(nodes.size()) + " nodes");
             return nodes.at(node);
           }, py::arg("node"), "The kind of a node, the values it uses and those it defines.")
      .def("add", &Nodes::add, py::arg("kind"), py::arg("uses"), py::arg("definitions"))
      .def("add_operations", &addOperations, py::arg("operations"), py::arg("moved"),
           py::arg("watched"), py::arg("kind_of"), py::arg("nodes_of"),
           "Adds a node for each operation, of the places of its operands and results: the number of a result and one\n"
           "more, and 0 for a block argument, but for the values in `moved`.\n\n"
           "`watched` has for each signature the operands that count for the question whether one has other uses, and\n"
           "`kind_of(signature, shared)` says of what kind the node is then; asked once for each. Where it has None,\n"
           "`nodes_of(operation)` gives the nodes, as (kind, uses, definitions).");

  py::class_<Fixpoint>(module, "Fixpoint", "Steps over nodes that share values, until none changes a value's state.")
      .def(py::init<const Nodes &, const Nodes &, std::size_t, std::int32_t, const std::vector<std::int32_t> &,
                    const std::vector<std::int32_t> &, const std::vector<std::int32_t> &,
                    const std::vector<std::int32_t> &>(),
           py::arg("nodes"), py::arg("boundary"), py::arg("value_count"), py::arg("constant"), py::arg("tied"),
           py::arg("deferred"), py::arg("loops"), py::arg("elsewhere"), py::keep_alive<1, 2>(), py::keep_alive<1, 3>(),
           "The nodes of `boundary` are stepped through once before the others and once after. The value `constant`\n"
           "never changes; changes of the values in `tied` are followed. Nodes of the kinds in `deferred` wait, where a\n"
           "value that they use has changed, until nothing else is left. Where a value changes that a node of the kinds\n"
           "in `loops` defines, the nodes before that one that use it, but for those of the kinds in `elsewhere`, come\n"
           "last of those around it.")
      .def("run", &runFixpoint, py::arg("states"), py::arg("behaviours"), py::arg("step"), py::arg("follow"),
           py::arg("observe") = py::none(),
           "Brings the states of all values, a writable buffer of 32-bit integers, to the fixpoint.\n\n"
           "`behaviours` has what nodes of each kind do, -1 for nothing. `step(behaviour, states)` gives the states\n"
           "of a node's values after it, or None where all stay; it is asked once for each distinct input in all runs,\n"
           "and not where all states are -1. `follow(value, state)` gives what the values tied to one do:\n"
           "(value, state, only if its state is -1, whether nodes around it are visited). `observe(node, behaviour,\n"
           "states)` is told of each step before it changes something; boundary nodes are -1, -2, ...");
}

} // namespace mlir_shard
