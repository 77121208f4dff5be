// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "capsules.h"
#include "example.h"
#include "repetitions.h"

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

// The repetitions in a module, and examples of what becomes of those that lead.
class Rehearsal {
public:
  Rehearsal(std::shared_ptr<const ModuleArrays> arrays, const std::string &capsulePrefix)
      : arrays(std::move(arrays)), host(capsulePrefix), repetitions(*this->arrays) {}

  void visit(const Capsule &first, std::int32_t context, const py::buffer &states, const Repetitions::Ask &ask) {
    const py::buffer_info info = states.request(true);
    if (!info.item_type_is_equivalent_to<std::int32_t>() || info.ndim != 1 ||
        static_cast<std::size_t>(info.size) != arrays->values.size())
      throw std::invalid_argument("there has to be a number of 32 bits for each value");
    const std::int32_t number = repetitions.numberOf(host.operation(first));
    if (number < 0)
      throw std::invalid_argument("the operation was not there when the module was read");
    repetitions.visit(number, context, static_cast<std::int32_t *>(info.ptr), ask);
  }

  std::vector<std::int32_t> carryOut(const Capsule &op, const py::function &change) const {
    const std::int32_t leader = repetitions.numberOf(host.operation(op));
    const std::vector<std::int32_t> &followers = repetitions.followersOf(leader);
    if (followers.empty()) {
      change();
      return {};
    }
    Example example(arrays->capi, arrays->ops.at(leader));
    change();
    if (!example.learn())
      return followers;
    for (std::int32_t follower : followers)
      example.follow(arrays->ops[follower]);
    return {};
  }

private:
  std::shared_ptr<const ModuleArrays> arrays;
  Capsules host;
  Repetitions repetitions;
};

} // namespace

void defineRepetitions(py::module_ &module) {
  py::class_<Rehearsal>(module, "Rehearsal", "Has what becomes of an operation become of all that are like it.")
      .def(py::init<std::shared_ptr<const ModuleArrays>, const std::string &>(), py::arg("arrays"),
           py::arg("capsule_prefix"))
      .def("visit", &Rehearsal::visit, py::arg("first"), py::arg("context"), py::arg("states"), py::arg("ask"),
           "Visits an operation and those behind it in its block but the last, with a state for each value of the\n"
           "module, in a buffer of 32-bit integers. `ask(operation, leader)` gives the states of the results and whether\n"
           "it is asked of all that are alike, or None: the operation stands alone, and has set the states itself. The\n"
           "leader is -1 for the first of those that are alike; it is not asked of others, unless it said so.")
      .def("carry_out", &Rehearsal::carryOut, py::arg("op"), py::arg("change"),
           "Has `change` change an operation, and changes all that follow it likewise; gives the followers, unchanged,\n"
           "where that cannot be.");
}

} // namespace mlir_shard
