// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "capsules.h"
#include "verified_ops.h"

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

namespace py = pybind11;

namespace mlir_shard {
namespace {

// What is verified in the context of the operation that comes first.
class Verification {
public:
  Verification(const std::string &library, const std::string &capsulePrefix, std::vector<std::string> ignored)
      : capi(library), host(capsulePrefix), ignored(std::move(ignored)) {}

  std::optional<bool> verify(const py::capsule &op) {
    const VerifiedOps::Verdict verdict = known(op).verify(host.operation(op));
    return verdict == VerifiedOps::Verdict::Unknown ? std::nullopt
                                                    : std::optional(verdict == VerifiedOps::Verdict::Valid);
  }

  void accept(const py::capsule &op) { known(op).accept(host.operation(op)); }

private:
  VerifiedOps &known(const py::capsule &op) {
    if (!verified)
      verified.emplace(capi, capi.mlirOperationGetContext(host.operation(op)), ignored);
    return *verified;
  }

  Capi capi;
  Capsules host;
  std::vector<std::string> ignored;
  std::optional<VerifiedOps> verified;
};

} // namespace

void defineVerification(py::module_ &module) {
  py::class_<Verification>(module, "Verification", "What is known to be valid in one context, while that lives.")
      .def(py::init<const std::string &, const std::string &, std::vector<std::string>>(), py::arg("library"),
           py::arg("capsule_prefix"), py::arg("ignored"))
      .def("verify", &Verification::verify, py::arg("op"),
           "Whether all in an operation is valid; if not, the host has emitted an error. None where that is not known,\n"
           "and the host has to verify the whole.")
      .def("accept", &Verification::accept, py::arg("op"), "Remembers that the host has found an operation valid.");
}

} // namespace mlir_shard
