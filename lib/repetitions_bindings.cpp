// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "capsules.h"
#include "repetitions.h"
#include "rewrite_template.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace py = pybind11;

namespace mlir_shard {
namespace {

using Capsule = Capsules::Capsule;

// The repetitions in a module; rewrites of operations are replayed on those that they represent.
class RepeatedRewrites {
public:
  RepeatedRewrites(std::shared_ptr<const ModuleArrays> arrays, const std::string &capsulePrefix)
      : arrays(std::move(arrays)), host(capsulePrefix), repetitions(*this->arrays) {}

  void visit(const Capsule &first, std::int32_t context, const py::buffer &states, const Repetitions::Plan &plan) {
    const py::buffer_info info = states.request(true);
    if (!info.item_type_is_equivalent_to<std::int32_t>() || info.ndim != 1 ||
        static_cast<std::size_t>(info.size) != arrays->values.size())
      throw std::invalid_argument("there has to be a number of 32 bits for each value");
    const std::int32_t number = repetitions.numberOf(host.operation(first));
    if (number < 0)
      throw std::invalid_argument("the operation was not there when the module was read");
    repetitions.visit(number, context, static_cast<std::int32_t *>(info.ptr), plan);
  }

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
  std::shared_ptr<const ModuleArrays> arrays;
  Capsules host;
  Repetitions repetitions;
};

} // namespace

void defineRepetitions(py::module_ &module) {
  py::class_<RepeatedRewrites>(module, "RepeatedRewrites", "Rewrites an operation and those that are isomorphic to it.")
      .def(py::init<std::shared_ptr<const ModuleArrays>, const std::string &>(), py::arg("arrays"),
           py::arg("capsule_prefix"))
      .def("visit", &RepeatedRewrites::visit, py::arg("first"), py::arg("context"), py::arg("states"), py::arg("plan"),
           "Visits an operation and those behind it in its block but the last, with a state for each value of the\n"
           "module, in a buffer of 32-bit integers. `plan(operation)`, called for the first of isomorphic operations,\n"
           "returns the states of the results of all of them, or None: then it has set the states itself, and is called\n"
           "for the next one too.")
      .def("rewrite", &RepeatedRewrites::rewrite, py::arg("op"), py::arg("change"),
           "Calls `change`, which rewrites an operation, and replays the rewrite on the operations that it represents.\n"
           "Returns those, unchanged, where it cannot be replayed.");
}

} // namespace mlir_shard
