// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "arrays/array_bindings.h"
#include "bindings.h"
#include "ir/host_library.h"
#include "repetition/insertion.h"
#include "repetition/repetitions.h"
#include "repetition/rewrite_template.h"
#include "repetition/sharded_ops.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace py = pybind11;

namespace mlir_shard {
namespace {

using Capsule = Capsules::Capsule;

std::int32_t *valueNumbers(const py::buffer &numbers, const ModuleArrays &arrays) {
  const auto [values, count] = integers(numbers, true);
  if (count != arrays.values.size())
    throw std::invalid_argument("there has to be a number for each value");
  return values;
}

// The repetitions in a module; rewrites of operations are replayed on the operations that they represent.
class RepeatedRewrites {
public:
  RepeatedRewrites(std::shared_ptr<const ModuleArrays> arrays, SharedLibrary library,
                   const std::vector<std::tuple<bool, bool, bool>> &ignored, const std::vector<bool> &kept)
      : arrays(std::move(arrays)), library(std::move(library)),
        repetitions(*this->arrays, ignoredOf(ignored), kept) {}

  using Plan = std::function<std::optional<std::pair<std::vector<std::int32_t>, bool>>(std::int32_t op)>;

  Capsule visit(const Capsule &first, std::int32_t context, const py::buffer &states, const Plan &plan,
                const Repetitions::ContextKey &contextKey, const Repetitions::Shards &shards) {
    std::int32_t *const numbers = valueNumbers(states, *arrays);
    const std::int32_t number = repetitions.numberOf(host.operation(first));
    if (number < 0)
      throw std::invalid_argument("the operation was not there when the module was read");
    const auto planned = [&](std::int32_t op) -> std::optional<Repetitions::Planned> {
      auto found = plan(op);
      if (!found)
        return std::nullopt;
      return Repetitions::Planned{std::move(found->first), found->second};
    };
    return host.capsule(arrays->ops.at(repetitions.visit(number, context, numbers, planned, contextKey, shards)));
  }

  void localize(const py::buffer &states) { repetitions.localize(valueNumbers(states, *arrays)); }

  std::vector<std::int32_t> rewrite(const Capsule &op, const py::function &change) const {
    const std::int32_t number = repetitions.numberOf(host.operation(op));
    const std::vector<std::int32_t> &others = repetitions.representedBy(number);
    if (others.empty()) {
      change();
      return {};
    }
    RewriteTemplate rewrite(arrays->capi, arrays->ops.at(number));
    change();
    if (!rewrite.capture())
      return others;
    for (std::int32_t other : others)
      rewrite.replay(arrays->ops[other]);
    return {};
  }

private:
  static std::vector<Repetitions::Ignored> ignoredOf(const std::vector<std::tuple<bool, bool, bool>> &ignored) {
    std::vector<Repetitions::Ignored> found;
    for (const auto &[name, constants, sizes] : ignored)
      found.push_back({name, constants, sizes});
    return found;
  }

  std::shared_ptr<const ModuleArrays> arrays;
  SharedLibrary library;
  const Capsules &host = library->capsules;
  Repetitions repetitions;
};

using Attributes = std::vector<std::pair<std::string, Capsule>>;
using Made = std::vector<std::tuple<std::int32_t, std::string, Attributes>>;

std::shared_ptr<Insertion> insertion(const HostLibrary &library, const Made &before, const Made &behind,
                                     const Attributes &attributes,
                                     std::vector<std::pair<std::int32_t, std::int32_t>> numbers) {
  const Capsules &host = library.capsules;
  const auto read = [&](const Attributes &of) {
    std::vector<std::pair<std::string, MlirAttribute>> found;
    for (const auto &[name, capsule] : of)
      found.emplace_back(name, host.attribute(capsule));
    return found;
  };
  const auto readMade = [&](const Made &of) {
    std::vector<Insertion::Made> found;
    for (const auto &[value, name, own] : of)
      found.push_back({value, name, read(own)});
    return found;
  };
  return std::make_shared<Insertion>(
      Insertion{readMade(before), readMade(behind), read(attributes), std::move(numbers)});
}

// Sharded operations with the arrays that contain them, which are kept alive.
struct HeldShardedOps {
  std::shared_ptr<ModuleArrays> arrays;
  ShardedOps ops;
};

void defineShardedOps(py::module_ &module) {
  py::class_<Insertion, std::shared_ptr<Insertion>>(module, "Insertion",
                                                    "What is inserted around an operation: see lib/repetition/insertion.h.")
      .def(py::init(&insertion), py::arg("library"), py::arg("before"), py::arg("behind"), py::arg("attributes"),
           py::arg("numbers"));
  py::class_<HeldShardedOps> held(module, "ShardedOps", "Operations by kind, visited once for those whose values have equal numbers.");
  py::enum_<ShardedOps::Use>(held, "Use")
      .value("IGNORED", ShardedOps::Use::Ignored)
      .value("WEIGHED", ShardedOps::Use::Weighed)
      .value("RESHARDS", ShardedOps::Use::Reshards)
      .value("RETURNS", ShardedOps::Use::Returns);
  held.def(py::init([](std::shared_ptr<ModuleArrays> arrays, const std::vector<std::int32_t> &ops,
                       const std::unordered_map<std::int32_t, std::int32_t> &tags, std::vector<std::int32_t> forms) {
             ShardedOps made(*arrays, ops, tags, std::move(forms));
             return HeldShardedOps{std::move(arrays), std::move(made)};
           }),
           py::arg("arrays"), py::arg("ops"), py::arg("tags"), py::arg("forms"))
      .def("keep",
           [](HeldShardedOps &held, std::int32_t op, const py::buffer &numbers,
              std::vector<std::pair<std::int32_t, std::int32_t>> factors, std::vector<std::int64_t> factorShards,
              std::vector<std::int64_t> elementSizes, std::vector<std::vector<std::int64_t>> tensorShards,
              std::int64_t operationsPerElement, std::pair<double, double> rates, double moveLatency) {
             held.ops.keep(op, valueNumbers(numbers, *held.arrays),
                           {std::move(factors), std::move(factorShards), std::move(elementSizes),
                            std::move(tensorShards), operationsPerElement, rates.first, rates.second, moveLatency});
           },
           py::arg("op"), py::arg("numbers"), py::kw_only(), py::arg("factors"), py::arg("factor_shards"),
           py::arg("element_sizes"), py::arg("tensor_shards"), py::arg("operations_per_element"), py::arg("rates"),
           py::arg("move_latency"),
           "Records that nothing is resharded around an operation: `visit` and `settle` do not ask for others of its form\n"
           "with the same numbers, if this is proved for their sizes.")
      .def_property_readonly("kinds", [](const HeldShardedOps &held) { return held.ops.kinds; })
      .def_property_readonly("representatives", [](const HeldShardedOps &held) { return held.ops.representatives; })
      .def("alike",
           [](const HeldShardedOps &held, const std::vector<std::int32_t> &ops, const py::buffer &numbers) {
             return held.ops.alike(ops, valueNumbers(numbers, *held.arrays));
           },
           py::arg("ops"), py::arg("numbers"),
           "For each operation the first of them that is of its kind and whose operands and results have the same numbers.")
      .def("visit",
           [](HeldShardedOps &held, const std::vector<std::int32_t> &ops, const py::buffer &numbers,
              const std::function<std::pair<std::shared_ptr<Insertion>, bool>(std::int32_t)> &visit) {
             return held.ops.visit(ops, valueNumbers(numbers, *held.arrays), [&](std::int32_t op) {
               const auto [insertion, isAll] = visit(op);
               return ShardedOps::Visited{insertion, isAll};
             });
           },
           py::arg("ops"), py::arg("numbers"), py::arg("visit"),
           "Visits operations in order; `visit` returns what to insert around one, or None, and whether that is all that has\n"
           "to be done for its equivalence class. The arrays list what was inserted as made. Returns the operations that\n"
           "got other attributes.")
      .def("settle",
           [](HeldShardedOps &held, const std::vector<std::int32_t> &ops, const py::buffer &numbers,
              const std::vector<ShardedOps::Use> &uses, const std::vector<std::int32_t> &returned,
              const ShardedOps::WhereResharded &whereResharded, const std::function<void(std::int32_t)> &settle) {
             return held.ops.settle(ops, valueNumbers(numbers, *held.arrays), uses, returned, whereResharded, settle);
           },
           py::arg("ops"), py::arg("numbers"), py::arg("uses"), py::arg("returned"), py::arg("where_resharded"),
           py::arg("settle"),
           "Calls `settle`, which may change the numbers of the results of an operation, for the weighed operations of which\n"
           "a result is resharded; `where_resharded` returns where an operation is. Others that are alike and used alike\n"
           "get the same numbers. Returns the operations whose results have other numbers.");
}

} // namespace

void defineRepetitions(py::module_ &module) {
  defineShardedOps(module);
  py::class_<RepeatedRewrites>(module, "RepeatedRewrites", "Rewrites an operation and those that are isomorphic to it.")
      .def(py::init<std::shared_ptr<const ModuleArrays>, SharedLibrary, const std::vector<std::tuple<bool, bool, bool>> &,
                    const std::vector<bool> &>(),
           py::arg("arrays"), py::arg("library"), py::arg("ignored"), py::arg("kept"),
           "`ignored` has for each signature whether isomorphic operations may differ in their names, and in the\n"
           "constants that they use, and whether operations of different sizes may share a plan; or is empty. `kept` has\n"
           "for each signature whether operations are not visited while the states of all operands are negative; or is\n"
           "empty.")
      .def("visit", &RepeatedRewrites::visit, py::arg("first"), py::arg("context"), py::arg("states"), py::arg("plan"),
           py::arg("context_key"), py::arg("shards"),
           "Visits an operation and those behind it in its block but the last, which it returns, with a state for each\n"
           "value of the module, in a buffer of 32-bit integers. `plan(operation)`, called for the first of isomorphic\n"
           "operations, returns the states of the results of all of them, and whether the plan only sets local types and\n"
           "applies to all sizes with even shards; or None: then it has set the states itself, and is called for the next\n"
           "one too. Isomorphic operations have equal `context_key(operation)`, a number, or None for all of a signature.\n"
           "`shards(state)` returns the number of shards of each dimension of a value in a state.")
      .def("localize", &RepeatedRewrites::localize, py::arg("states"),
           "Gives the results of operations that share a plan for any sizes with an earlier one their local types.")
      .def("rewrite", &RepeatedRewrites::rewrite, py::arg("op"), py::arg("change"),
           "Calls `change`, which rewrites an operation, and replays the rewrite on the operations that it represents.\n"
           "Returns those, unchanged, where it cannot be replayed.");
}

} // namespace mlir_shard
